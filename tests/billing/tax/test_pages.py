"""Billing details, taxed invoices and rates as people meet them: on pages, and over the API."""

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from django.test import Client

from billing.models import BillingDetails, Invoice, TaxRate
from billing.services import drafts, rating
from billing.services.tax import standings
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.walls import as_staff, as_tenant
from tests.billing.histories import sold
from tests.billing.pages import words
from tests.billing.payments.bills import NOW
from tests.billing.tax.papers import ATELIER, LUMEN, SWISS, closed, taxed, told, used
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db
FORM = {
    "name": "Kestrel GmbH",
    "street": "Gasse 1",
    "city": "Wien",
    "country": "AT",
    "vat_id": "ATU 1358 5627",
}


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


@pytest.fixture
def payer(kestrel: Home) -> Client:
    return visitor(kestrel, Role.BILLING)


def visitor(kestrel: Home, role: Role) -> Client:
    client = Client()
    client.force_login(kestrel.member(role))
    return client


def october(kestrel: Home) -> Invoice:
    used(kestrel.project, 200, 105)
    return closed(kestrel.tenant)


def test_whoever_pays_says_who_the_tenant_is_and_drafts_follow(kestrel: Home, payer: Client) -> None:
    taxed("DE", 19)
    used(kestrel.project, 200)
    rating.rate(now=NOW)
    drafts.refresh(kestrel.tenant, now=NOW)
    shown = words(payer.get("/invoices/details/"))
    assert "Nobody has said yet who Kestrel is on paper" in shown
    assert "VAT of Germany is added to what you use. 19 % today" in shown
    assert "Lumen Compute GmbH Lichtweg 7 10115 Berlin Germany VAT DE136695976" in shown
    assert payer.post("/invoices/details/", {**FORM, "seen": "0"}).status_code == 302
    shown = words(payer.get("/invoices/details/"))
    assert "Your next invoices are made out to this" in shown
    assert "Reverse charge: the customer owes the VAT" in shown
    with as_tenant(kestrel.tenant.pk):
        draft = Invoice.objects.get()
        assert (draft.tax, draft.treatment) == (0, "reverse_charge")
        event = AuditEvent.objects.get(action="billing.details")
        assert event.detail["vat_id"] == "ATU13585627"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"vat_id": "ATU13585626"},
            "ATU13585626 is no VAT number of Austria: its length or its check digits are wrong",
        ),
        ({"vat_id": "DE136695976"}, "A VAT number of Austria begins with AT"),
        ({"name": " "}, "An invoice needs it. Fill it in."),
        ({"country": "XX"}, "There is no such country."),
        ({"email": "odd"}, "It is no e-mail address."),
        ({"street": "x" * 121}, "It is longer than 120 letters."),
        ({"city": "Wi\u202een"}, "It holds a character that nobody sees."),
    ],
)
def test_what_cannot_stand_on_paper_is_told_beside_its_field_and_loses_nothing(
    kestrel: Home, payer: Client, change: dict[str, str], said: str
) -> None:
    answer = payer.post("/invoices/details/", {**FORM, **change, "seen": "0"})
    shown = words(answer, 400)
    assert said in shown
    assert 'value="Gasse 1"' in answer.content.decode() or "street" in change
    with as_tenant(kestrel.tenant.pk):
        assert not BillingDetails.objects.exists()


def test_who_saves_an_old_page_is_told_so_and_changes_nothing(kestrel: Home, payer: Client) -> None:
    payer.post("/invoices/details/", {**FORM, "seen": "0"})
    shown = words(payer.post("/invoices/details/", {**FORM, "name": "Other", "seen": "0"}))
    assert "Somebody has changed the billing details since you opened this page." in shown
    with as_tenant(kestrel.tenant.pk):
        assert standings.customer(kestrel.tenant).name == "Kestrel GmbH"


def test_an_admin_reads_the_details_and_does_not_change_them(kestrel: Home) -> None:
    admin = visitor(kestrel, Role.ADMIN)
    assert "An owner, or whoever pays, may change it." in words(admin.get("/invoices/details/"))
    assert admin.post("/invoices/details/", {**FORM, "seen": "0"}).status_code == 403


def test_the_same_over_the_api_needs_the_version_that_was_read(kestrel: Home) -> None:
    api = Api(kestrel.token(Role.OWNER))
    first = api.get("/api/v1/billing-details")
    assert first.json()["customer"]["name"] == "Kestrel"
    assert first.json()["supplier"] == LUMEN.as_dict()
    bare = api.ask("PUT", "billing-details", FORM)
    assert bare.status_code == 428
    kept = api.ask("PUT", "billing-details", FORM, If_Match=first["ETag"])
    assert kept.status_code == 200, kept.content
    assert kept.json()["customer"]["vat_id"] == "ATU13585627"
    assert kept.json()["treatment"] == "reverse_charge"
    again = api.ask("PUT", "billing-details", {**FORM, "name": "Other"}, If_Match=first["ETag"])
    assert again.status_code == 412
    odd = api.ask("PUT", "billing-details", {**FORM, "vat_id": "AT1"}, If_Match=kept["ETag"])
    assert (odd.status_code, odd.json()["errors"][0]["field"]) == (400, "vat_id")


def test_saying_the_same_again_changes_nothing(kestrel: Home) -> None:
    told(kestrel.tenant, ATELIER)
    told(kestrel.tenant, ATELIER)
    with as_tenant(kestrel.tenant.pk):
        assert BillingDetails.objects.get().version == 1
        assert AuditEvent.objects.filter(action="billing.details").count() == 1


def test_an_invoice_shows_its_tax_and_who_is_who(kestrel: Home, payer: Client) -> None:
    taxed("DE", 19)
    invoice = october(kestrel)
    shown = words(payer.get(f"/invoices/{invoice.pk}/"))
    assert "Before VAT €3.05 VAT 19 %, Germany €0.58 Total €3.63" in shown
    assert "Made out to Kestrel" in shown
    assert "From Lumen Compute GmbH" in shown
    assert "to be paid by" in shown
    found = Api(kestrel.token(Role.OWNER)).get(f"/api/v1/invoices/{invoice.pk}").json()
    assert [found[name]["amount"] for name in ("subtotal", "tax", "total")] == [
        "3.050000",
        "0.580000",
        "3.630000",
    ]
    assert [(each["category"], each["per_cent"]) for each in found["taxes"]] == [("standard", "19")]
    assert found["supplier"]["vat_id"] == "DE136695976"


def test_who_owes_none_reads_why(kestrel: Home, payer: Client) -> None:
    told(kestrel.tenant, SWISS)
    shown = words(payer.get(f"/invoices/{october(kestrel).pk}/"))
    assert "VAT 0 % €0.00" in shown
    assert "Not subject to VAT here" in shown


def test_a_draft_whose_rate_nobody_knows_says_so(kestrel: Home, payer: Client) -> None:
    used(kestrel.project, 200)
    rating.rate(now=NOW)
    drafts.refresh(kestrel.tenant, now=NOW)
    with as_tenant(kestrel.tenant.pk):
        draft = Invoice.objects.get()
    assert "VAT not known yet" in words(payer.get(f"/invoices/{draft.pk}/"))
    found = Api(kestrel.token(Role.OWNER)).get(f"/api/v1/invoices/{draft.pk}").json()
    assert found["taxes"][0]["per_cent"] is None


def test_operators_add_rates_and_read_where_one_is_missing(operator: Client) -> None:
    shown = words(operator.get("/ops/taxes/"))
    assert "No standard rate today for 27 countries." in shown
    form = {"jurisdiction": "DE", "category": "standard", "rate": "19", "since": "2026-01-01"}
    assert operator.post("/ops/taxes/", form).status_code == 302
    shown = words(operator.get("/ops/taxes/"))
    assert "Germany: 19 % from 01 Jan 2026 on." in shown
    assert "No standard rate today for 26 countries." in shown
    operator.post("/ops/taxes/", {**form, "rate": "20.5", "since": "2027-01-01"})
    shown = words(operator.get("/ops/taxes/"))
    assert "from then on" in shown
    assert "1 Jan 2027" in shown
    assert [f"{rate.valid.lower}" for rate in TaxRate.objects.order_by("valid")] == [
        "2026-01-01",
        "2027-01-01",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate": "odd"}, "A rate is a number such as 19 or 7.7"),
        ({"rate": "1E+999999"}, "A rate is a number such as 19 or 7.7"),
        ({"rate": "19.001"}, "A rate is a number such as 19 or 7.7"),
        ({"rate": "9" * 13}, "A rate is a number such as 19 or 7.7"),
        ({"rate": "101"}, "A rate is from 0 to 100 per cent."),
        ({"since": "odd"}, "A day looks like 2026-12-01."),
        ({"jurisdiction": "XX"}, "There is no such country."),
    ],
)
def test_a_rate_that_cannot_be_meant_is_told_why(operator: Client, change: dict[str, str], said: str) -> None:
    form = {"jurisdiction": "DE", "category": "standard", "rate": "19", "since": "2026-01-01"}
    assert said in words(operator.post("/ops/taxes/", {**form, **change}), 400)
    assert not TaxRate.objects.exists()


def test_without_a_supplier_the_pages_say_that_no_tax_is_charged(
    operator: Client, kestrel: Home, payer: Client, settings: Any
) -> None:
    settings.SUPPLIER = {**LUMEN.as_dict(), "name": ""}
    assert "Nobody is named as the supplier" in words(operator.get("/ops/taxes/"))
    assert "No tax is charged here" in words(payer.get("/invoices/details/"))


def test_a_supplier_outside_of_the_union_needs_one_rate(operator: Client, settings: Any) -> None:
    settings.SUPPLIER = SWISS.as_dict()
    assert "No standard rate today for 1 country." in words(operator.get("/ops/taxes/"))


def test_rates_over_the_api_stand_once(operator: Client) -> None:
    body = {"jurisdiction": "DE", "per_cent": "7.7", "category": "reduced", "since": "2026-01-01"}

    def send(**changed: str) -> Any:
        said = json.dumps(body | changed)
        return operator.put("/api/v1/ops/tax-rates", said, content_type="application/json")

    first, second = send(), send()
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert (first.json()["per_cent"], first.json()["until"]) == ("7.7", None)
    corrected = send(per_cent="8").json()  # no invoice was taxed by it
    assert (corrected["id"], corrected["per_cent"], corrected["used"]) == (first.json()["id"], "8", False)
    assert send(jurisdiction="XX").status_code == 400
    assert len(operator.get("/api/v1/ops/tax-rates?jurisdiction=DE").json()["items"]) == 1


def test_an_offering_is_put_into_a_category_over_the_api(operator: Client) -> None:
    offering = sold()
    address = f"/api/v1/ops/offerings/{offering.pk}/tax-category"
    found = operator.put(address, json.dumps({"category": "reduced"}), content_type="application/json")
    assert found.json() == {"category": "reduced"}
    with as_staff():
        assert AuditEvent.objects.filter(action="tax.categorize", subject_id=offering.pk).exists()


@pytest.mark.parametrize(("change", "why"), [({"country": "XX"}, "COUNTRY"), ({"vat_id": "DE1"}, "VAT_ID")])
def test_settings_that_name_no_real_supplier_stop_the_start(
    settings: Any, change: dict[str, str], why: str
) -> None:
    from django.apps import apps
    from django.core.exceptions import ImproperlyConfigured

    settings.SUPPLIER = LUMEN.as_dict() | change
    with pytest.raises(ImproperlyConfigured, match=why):
        apps.get_app_config("billing").ready()


def test_the_rate_of_a_day_is_the_one_that_holds_then() -> None:
    taxed("DE", 19)
    taxed("DE", 16, since=date(2026, 11, 2))
    at_home = standings.Standing(standings.tax.Treatment.DOMESTIC, "DE")
    assert standings.rate_on(at_home, NOW) == 1900
