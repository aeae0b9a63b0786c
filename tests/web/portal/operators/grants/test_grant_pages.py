"""Credit on the tenants' and the operators' pages, and over the API."""

from collections.abc import Iterator

import pytest
from django.test import Client

from billing.models import Grant, Invoice
from billing.services.invoicing.month_close import close_month
from billing.services.payments import payment_creation
from billing.services.rating import lease_rating
from ports import clock
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.grants.grant_setup import WHY, create_grant, expire_grants
from tests.billing.histories import HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW, process_payment, request_payment
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.page_text import page_words

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


def october(kestrel: TenantContext, cents: int = 200) -> Invoice:
    add_ended_lease(kestrel.project, create_priced_offering(cents * 10**7), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def test_a_tenant_sees_its_grants_with_expiry_and_paid_amounts(payer: Client, kestrel: TenantContext) -> None:
    assert "No credit" in page_words(payer.get("/wallet/"))
    grant = create_grant(kestrel.tenant, 500, expires_at=utc("2026-12-24 00:00:00"))
    create_grant(kestrel.tenant, 300, project=kestrel.project, offering=create_priced_offering(), priority=200)
    october(kestrel)
    shown = page_words(payer.get("/wallet/"))
    assert "Credits €6.00 first expires" in shown
    assert f"{WHY} {grant.pk} everything ends" in shown
    assert "€2.00 of €5.00 used" in shown
    assert "in Kestrel and subprojects" in shown
    assert "Credit usage most recent Credit usage Invoice Line Credit Time Amount October 2026" in shown


def test_the_wallet_page_shows_the_state_of_each_grant(payer: Client, kestrel: TenantContext) -> None:
    create_grant(kestrel.tenant, 50, priority=1, now=utc("2026-10-02 00:00:00"))
    create_grant(kestrel.tenant, 500, expires_at=utc("2026-10-20 00:00:00"))
    create_grant(kestrel.tenant, 70, expires_at=utc("2026-11-01 00:05:01"))
    october(kestrel)
    expire_grants(NOW)
    with clock.frozen_at(utc("2026-11-02 00:00:00")):
        shown = page_words(payer.get("/wallet/"))
    for state in (
        "used up",
        "€3.50 lapsed",
        "expired; its month is still open",
        "none",
    ):
        assert state in shown


def test_an_invoice_shows_the_amount_paid_by_credit(payer: Client, kestrel: TenantContext) -> None:
    create_grant(kestrel.tenant, 150)
    invoice = october(kestrel)
    shown = page_words(payer.get(f"/invoices/{invoice.pk}/"))
    assert "€1.50 paid by credit" in shown
    assert f"Paid by credit {WHY} − €1.50" in shown
    process_payment(request_payment(invoice))
    issue_note(invoice)
    shown = page_words(payer.get(f"/invoices/{invoice.pk}/"))
    assert "€0.50 added to the balance; €1.50 returned to credits" in shown
    assert "To credits" in shown


def test_an_invoice_paid_in_full_by_credit_shows_no_amount_due(payer: Client, kestrel: TenantContext) -> None:
    create_grant(kestrel.tenant, 500)
    invoice = october(kestrel)
    payment_creation.open_due_payments(now=NOW)
    assert "no amount due after credits" in page_words(payer.get(f"/invoices/{invoice.pk}/"))


def test_the_api_shows_grants_with_their_draws_and_returns(kestrel: TenantContext) -> None:
    grant = create_grant(kestrel.tenant, 500)
    invoice = october(kestrel)
    issue_note(invoice)
    api = ApiClient(kestrel.token(Role.BILLING))
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


def test_a_grant_form_sent_twice_grants_credit_once(operator: Client, kestrel: TenantContext) -> None:
    address = f"/ops/tenants/{kestrel.tenant.pk}/grants/new/"
    page = operator.get(address)
    name = page.context["page"].form.name
    offering = create_priced_offering()
    form = FORM | {
        "name": name,
        "project": kestrel.project.pk,
        "offering": offering.pk,
        "last_day": "2026-12-31",
    }
    for _ in range(2):
        answer = operator.post(address, form)
        assert (answer.status_code, answer["Location"]) == (302, f"/ops/grants/?tenant={kestrel.tenant.pk}")
    with tenant_scope(kestrel.tenant.pk):
        grant = Grant.objects.get()
    assert (grant.minor, grant.project_id, grant.offering_id) == (10_000, kestrel.project.pk, offering.pk)
    assert grant.expires_at == utc("2027-01-01 00:00:00")
    shown = page_words(operator.get(answer["Location"]))
    assert "€100.00 of credit granted to Kestrel." in shown
    assert f"{WHY} {grant.pk}" in shown
    assert "Kestrel" in page_words(operator.get("/ops/grants/"))
    assert operator.get("/ops/grants/?tenant=ten_x").context["rows"] == []


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"amount": "0"}, "The amount must be above zero"),
        ({"amount": "1.005"}, "'1.005' is not an amount in EUR"),
        ({"reason": " "}, "A reason must have 1 to 150 characters."),
        ({"project": "prj_x"}, "The project was not found in this tenant."),
        ({"offering": "off_x"}, "The offering was not found."),
        ({"priority": "first"}, "The priority is not a whole number."),
        ({"priority": "1001"}, "The priority must be 0 to 1000"),
        ({"last_day": "soon"}, "The date is not valid."),
        ({"last_day": "9999-12-31"}, "The date is not valid."),
        ({"last_day": "2026-10-01"}, "The expiry is in the past."),
        ({"name": ""}, "The form is incomplete."),
    ],
)
def test_an_invalid_grant_shows_a_field_error_and_keeps_the_input(
    operator: Client, kestrel: TenantContext, typed: dict[str, str], said: str
) -> None:
    address = f"/ops/tenants/{kestrel.tenant.pk}/grants/new/"
    answer = operator.post(address, FORM | {"name": "gra_1", "amount": "12.34"} | typed)
    assert said in page_words(answer, 400)
    if "amount" not in typed:
        assert b'value="12.34"' in answer.content
    with tenant_scope(kestrel.tenant.pk):
        assert not Grant.objects.exists()


def test_a_grant_form_sent_again_with_another_amount_is_refused(operator: Client, kestrel: TenantContext) -> None:
    address = f"/ops/tenants/{kestrel.tenant.pk}/grants/new/"
    assert operator.post(address, FORM | {"name": "gra_1"}).status_code == 302
    assert "Another grant already uses this name." in page_words(
        operator.post(address, FORM | {"name": "gra_1", "amount": "101"}), 409
    )
    assert operator.get("/ops/tenants/ten_x/grants/new/").status_code == 404


def test_operators_read_the_grants_of_all_tenants_over_the_api(operator: Client, kestrel: TenantContext) -> None:
    grant = create_grant(kestrel.tenant, 500)
    create_grant(create_customer()[0], 300)
    assert len(operator.get("/api/v1/ops/grants").json()["items"]) == 2
    (row,) = operator.get(f"/api/v1/ops/grants?tenant={kestrel.tenant.pk}").json()["items"]
    assert (row["id"], row["tenant"]["name"]) == (grant.pk, "Kestrel")
    assert operator.get(f"/api/v1/ops/grants/{grant.pk}").json()["left"]["amount"] == "5.000000"
