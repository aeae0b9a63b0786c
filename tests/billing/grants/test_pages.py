"""Credit on the tenants' and the operators' pages, and over the API."""

from collections.abc import Iterator

import pytest
from django.test import Client

from billing.models import Grant, Invoice
from billing.services import closing, rating
from billing.services.payments import opening
from ports import clock
from tenants.domain.roles import Role
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit
from tests.billing.grants.gifts import WHY, give, lapse
from tests.billing.histories import HOUR, at, customer, ran, sold
from tests.billing.pages import words
from tests.billing.payments.bills import NOW, collect, pay
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


def october(kestrel: Home, cents: int = 200) -> Invoice:
    ran(kestrel.project, sold(cents * 10**7), at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=NOW)
    found = closing.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def test_a_tenant_reads_what_credit_it_has_when_it_ends_and_what_it_paid(
    payer: Client, kestrel: Home
) -> None:
    assert "No credit" in words(payer.get("/wallet/"))
    grant = give(kestrel.tenant, 500, expires_at=at("2026-12-24 00:00:00"))
    give(kestrel.tenant, 300, project=kestrel.project, offering=sold(), priority=200)
    october(kestrel)
    shown = words(payer.get("/wallet/"))
    assert "Credit €6.00 the first of it ends" in shown
    assert f"{WHY} {grant.pk} everything ends" in shown
    assert "€2.00 paid of €5.00" in shown
    assert "in Kestrel and below" in shown
    assert (
        "What credit paid the latest What credit paid Invoice Line Credit When Amount October 2026" in shown
    )


def test_each_state_of_a_grant_is_said(payer: Client, kestrel: Home) -> None:
    give(kestrel.tenant, 50, priority=1, now=at("2026-10-02 00:00:00"))
    give(kestrel.tenant, 500, expires_at=at("2026-10-20 00:00:00"))
    give(kestrel.tenant, 70, expires_at=at("2026-11-01 00:05:01"))
    october(kestrel)
    lapse(NOW)
    with clock.standing_at(at("2026-11-02 00:00:00")):
        shown = words(payer.get("/wallet/"))
    for state in (
        "used up",
        "€3.50 lapsed",
        "ended; its month is still open",
        "nothing is left or was given",
    ):
        assert state in shown


def test_the_invoice_tells_what_credit_paid_of_it(payer: Client, kestrel: Home) -> None:
    give(kestrel.tenant, 150)
    invoice = october(kestrel)
    shown = words(payer.get(f"/invoices/{invoice.pk}/"))
    assert "€1.50 paid by credit" in shown
    assert f"Paid by credit {WHY} − €1.50" in shown
    collect(pay(invoice))
    credit(invoice)
    shown = words(payer.get(f"/invoices/{invoice.pk}/"))
    assert "€0.50 of it, which was paid, is on the balance; €1.50 of it is credit again" in shown
    assert "Credit again" in shown


def test_an_invoice_that_credit_paid_whole_says_so(payer: Client, kestrel: Home) -> None:
    give(kestrel.tenant, 500)
    invoice = october(kestrel)
    opening.open_due(now=NOW)
    assert "nothing was left to be paid, after what credit paid" in words(
        payer.get(f"/invoices/{invoice.pk}/")
    )


def test_the_api_tells_of_grants_as_the_page_does(kestrel: Home) -> None:
    grant = give(kestrel.tenant, 500)
    invoice = october(kestrel)
    credit(invoice)
    api = Api(kestrel.token(Role.BILLING))
    (row,) = api.get("/api/v1/grants").json()["items"]
    assert row == api.get(f"/api/v1/grants/{grant.pk}").json()
    assert (row["state"], row["left"]["amount"], row["paid"]["amount"]) == ("usable", "5.000000", "0.000000")
    assert [(each["invoice"], each["line"], each["amount"]["amount"]) for each in row["draws"]] == [
        (invoice.pk, 1, "2.000000")
    ]
    assert [each["amount"]["amount"] for each in row["returns"]] == ["2.000000"]
    (note,) = api.get("/api/v1/credit-notes").json()["items"]
    assert (note["to_grants"]["amount"], note["to_balance"]["amount"]) == ("2.000000", "0.000000")


FORM = {"amount": "100.00", "reason": WHY, "project": "", "offering": "", "priority": "100", "last_day": ""}


def test_an_operator_gives_credit_once_however_often_the_form_is_sent(
    operator: Client, kestrel: Home
) -> None:
    address = f"/ops/grants/{kestrel.tenant.pk}/give/"
    page = operator.get(address)
    name = page.context["form"].name
    offering = sold()
    form = FORM | {
        "name": name,
        "project": kestrel.project.pk,
        "offering": offering.pk,
        "last_day": "2026-12-31",
    }
    for _ in range(2):
        answer = operator.post(address, form)
        assert (answer.status_code, answer["Location"]) == (302, f"/ops/grants/?tenant={kestrel.tenant.pk}")
    with as_tenant(kestrel.tenant.pk):
        grant = Grant.objects.get()
    assert (grant.minor, grant.project_id, grant.offering_id) == (10_000, kestrel.project.pk, offering.pk)
    assert grant.expires_at == at("2027-01-01 00:00:00")
    shown = words(operator.get(answer["Location"]))
    assert "Kestrel has €100.00 of credit more." in shown
    assert f"{WHY} {grant.pk}" in shown
    assert "Kestrel" in words(operator.get("/ops/grants/"))
    assert operator.get("/ops/grants/?tenant=ten_x").context["rows"] == []


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"amount": "0"}, "Credit is more than nothing"),
        ({"amount": "1.005"}, "'1.005' is no amount of EUR"),
        ({"reason": " "}, "A reason has 1 to 150 characters."),
        ({"project": "prj_x"}, "There is no such project of this tenant."),
        ({"offering": "off_x"}, "There is no such offering."),
        ({"priority": "first"}, "A priority is a whole number."),
        ({"priority": "1001"}, "A priority is from 0 to 1000"),
        ({"last_day": "soon"}, "That is no day."),
        ({"last_day": "9999-12-31"}, "That is no day."),
        ({"last_day": "2026-10-01"}, "That moment is over."),
        ({"name": ""}, "The form does not say which grant it is."),
    ],
)
def test_what_cannot_be_given_is_said_beside_what_was_typed(
    operator: Client, kestrel: Home, typed: dict[str, str], said: str
) -> None:
    address = f"/ops/grants/{kestrel.tenant.pk}/give/"
    answer = operator.post(address, FORM | {"name": "gra_1", "amount": "12.34"} | typed)
    assert said in words(answer, 400)
    if "amount" not in typed:
        assert b'value="12.34"' in answer.content
    with as_tenant(kestrel.tenant.pk):
        assert not Grant.objects.exists()


def test_a_form_that_is_sent_again_with_another_amount_gives_nothing(operator: Client, kestrel: Home) -> None:
    address = f"/ops/grants/{kestrel.tenant.pk}/give/"
    assert operator.post(address, FORM | {"name": "gra_1"}).status_code == 302
    assert "Under this name another grant was given." in words(
        operator.post(address, FORM | {"name": "gra_1", "amount": "101"}), 409
    )
    assert operator.get("/ops/grants/ten_x/give/").status_code == 404


def test_operators_read_the_grants_of_all_over_the_api(operator: Client, kestrel: Home) -> None:
    grant = give(kestrel.tenant, 500)
    give(customer()[0], 300)
    assert len(operator.get("/api/v1/ops/grants").json()["items"]) == 2
    (row,) = operator.get(f"/api/v1/ops/grants?tenant={kestrel.tenant.pk}").json()["items"]
    assert (row["id"], row["tenant"]["name"]) == (grant.pk, "Kestrel")
    assert operator.get(f"/api/v1/ops/grants/{grant.pk}").json()["left"]["amount"] == "5.000000"
