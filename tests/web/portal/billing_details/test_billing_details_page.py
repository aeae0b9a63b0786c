"""Billing details, taxed invoices and rates on pages and API."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from django.test import Client

from billing.models import BillingDetails, Invoice, TaxRate
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from billing.services.tax import tax_determination
from broker.models import Offering
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import create_priced_offering
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import (
    ATELIER,
    LUMEN,
    SWISS,
    charge_amounts,
    close_taxed_month,
    set_billing_details,
    set_tax_rate,
)
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.keyed_requests import patch_json, post_keyed
from tests.web.portal.page_text import page_words

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
    with clock.frozen_at(NOW):
        yield


@pytest.fixture
def payer(kestrel: TenantContext) -> Client:
    return visitor(kestrel, Role.BILLING)


def visitor(kestrel: TenantContext, role: Role) -> Client:
    client = Client()
    client.force_login(kestrel.create_member(role))
    return client


def october(kestrel: TenantContext) -> Invoice:
    charge_amounts(kestrel.project, 200, 105)
    return close_taxed_month(kestrel.tenant)


def test_a_payer_saves_billing_details_and_draft_invoices_follow(kestrel: TenantContext, payer: Client) -> None:
    set_tax_rate("DE", 19)
    charge_amounts(kestrel.project, 200)
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(kestrel.tenant, now=NOW)
    shown = page_words(payer.get("/billing-details/"))
    assert "Billing details are missing." in shown
    assert "VAT of Germany is added to your charges. 19 % today" in shown
    assert "Lumen Compute GmbH Lichtweg 7 10115 Berlin Germany VAT DE136695976" in shown
    assert payer.post("/billing-details/", {**FORM, "seen": "0"}).status_code == 302
    shown = page_words(payer.get("/billing-details/"))
    assert "Billing details saved." in shown
    assert "Reverse charge: the customer owes the VAT" in shown
    with tenant_scope(kestrel.tenant.pk):
        draft = Invoice.objects.get()
        assert (draft.tax, draft.treatment) == (0, "reverse_charge")
        event = AuditEvent.objects.get(action="billing.details")
        assert event.detail["vat_id"] == "ATU13585627"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"vat_id": "ATU13585626"},
            "ATU13585626 is not a valid VAT number for Austria: its length or its check digits are wrong",
        ),
        ({"vat_id": "DE136695976"}, "A VAT number of Austria begins with AT"),
        ({"name": " "}, "This field is required on invoices. Fill in the field."),
        ({"country": "XX"}, "The country was not found."),
        ({"email": "odd"}, "The value is not an e-mail address."),
        ({"street": "x" * 121}, "The value is longer than 120 characters."),
        ({"city": "Wi\u202een"}, "The value contains an invisible character."),
    ],
)
def test_invalid_billing_details_show_a_field_error_and_keep_the_input(
    kestrel: TenantContext, payer: Client, change: dict[str, str], said: str
) -> None:
    answer = payer.post("/billing-details/", {**FORM, **change, "seen": "0"})
    shown = page_words(answer, 400)
    assert said in shown
    assert 'value="Gasse 1"' in answer.content.decode() or "street" in change
    with tenant_scope(kestrel.tenant.pk):
        assert not BillingDetails.objects.exists()


def test_saving_an_outdated_page_is_refused_and_changes_nothing(kestrel: TenantContext, payer: Client) -> None:
    payer.post("/billing-details/", {**FORM, "seen": "0"})
    shown = page_words(payer.post("/billing-details/", {**FORM, "name": "Other", "seen": "0"}))
    assert "The billing details were changed since you opened this page." in shown
    with tenant_scope(kestrel.tenant.pk):
        assert tax_determination.get_customer(kestrel.tenant).name == "Kestrel GmbH"


def test_an_admin_reads_the_details_and_does_not_change_them(kestrel: TenantContext) -> None:
    admin = visitor(kestrel, Role.ADMIN)
    assert "Only owners and billing members can change this." in page_words(admin.get("/billing-details/"))
    assert admin.post("/billing-details/", {**FORM, "seen": "0"}).status_code == 403


def test_saving_billing_details_over_the_api_requires_the_current_etag(kestrel: TenantContext) -> None:
    api = ApiClient(kestrel.token(Role.OWNER))
    first = api.get("/api/v1/billing-details")
    assert first.json()["customer"]["name"] == "Kestrel"
    assert first.json()["supplier"] == LUMEN.as_dict()
    bare = api.send("PUT", "billing-details", FORM)
    assert bare.status_code == 428
    kept = api.send("PUT", "billing-details", FORM, If_Match=first["ETag"])
    assert kept.status_code == 200, kept.content
    assert kept.json()["customer"]["vat_id"] == "ATU13585627"
    assert kept.json()["treatment"] == "reverse_charge"
    again = api.send("PUT", "billing-details", {**FORM, "name": "Other"}, If_Match=first["ETag"])
    assert again.status_code == 412
    odd = api.send("PUT", "billing-details", {**FORM, "vat_id": "AT1"}, If_Match=kept["ETag"])
    assert (odd.status_code, odd.json()["errors"][0]["field"]) == (400, "vat_id")


def test_saving_unchanged_billing_details_changes_nothing(kestrel: TenantContext) -> None:
    set_billing_details(kestrel.tenant, ATELIER)
    set_billing_details(kestrel.tenant, ATELIER)
    with tenant_scope(kestrel.tenant.pk):
        assert BillingDetails.objects.get().version == 1
        assert AuditEvent.objects.filter(action="billing.details").count() == 1


def test_an_invoice_shows_its_tax_customer_and_supplier(kestrel: TenantContext, payer: Client) -> None:
    set_tax_rate("DE", 19)
    invoice = october(kestrel)
    shown = page_words(payer.get(f"/invoices/{invoice.pk}/"))
    assert "Before VAT €3.05 VAT 19 %, Germany €0.58 Total €3.63" in shown
    assert "Billed to Kestrel" in shown
    assert "From Lumen Compute GmbH" in shown
    assert "due by" in shown
    found = ApiClient(kestrel.token(Role.OWNER)).get(f"/api/v1/invoices/{invoice.pk}").json()
    assert [found[name]["amount"] for name in ("subtotal", "tax", "total")] == [
        "3.050000",
        "0.580000",
        "3.630000",
    ]
    assert [(each["category"], each["percent"]) for each in found["taxes"]] == [("standard", "19")]
    assert found["supplier"]["vat_id"] == "DE136695976"


def test_an_untaxed_invoice_shows_the_reason(kestrel: TenantContext, payer: Client) -> None:
    set_billing_details(kestrel.tenant, SWISS)
    shown = page_words(payer.get(f"/invoices/{october(kestrel).pk}/"))
    assert "VAT 0 % €0.00" in shown
    assert "Not subject to VAT here" in shown


def test_a_draft_without_a_tax_rate_shows_that_vat_is_not_determined(kestrel: TenantContext, payer: Client) -> None:
    charge_amounts(kestrel.project, 200)
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(kestrel.tenant, now=NOW)
    with tenant_scope(kestrel.tenant.pk):
        draft = Invoice.objects.get()
    assert "VAT not determined yet" in page_words(payer.get(f"/invoices/{draft.pk}/"))
    found = ApiClient(kestrel.token(Role.OWNER)).get(f"/api/v1/invoices/{draft.pk}").json()
    assert found["taxes"][0]["percent"] is None


def test_operators_add_tax_rates_and_see_how_many_are_missing(operator: Client) -> None:
    shown = page_words(operator.get("/ops/tax-rates/"))
    assert "No current standard rate for 27 countries." in shown
    form = {"jurisdiction": "DE", "category": "standard", "rate": "19", "since": "2026-01-01"}
    assert operator.post("/ops/tax-rates/", form).status_code == 302
    shown = page_words(operator.get("/ops/tax-rates/"))
    assert "Germany: 19 % from 01 Jan 2026." in shown
    assert "No current standard rate for 26 countries." in shown
    operator.post("/ops/tax-rates/", {**form, "rate": "20.5", "since": "2027-01-01"})
    shown = page_words(operator.get("/ops/tax-rates/"))
    assert "scheduled" in shown
    assert "1 Jan 2027" in shown
    assert [f"{rate.valid.lower}" for rate in TaxRate.objects.order_by("valid")] == [
        "2026-01-01",
        "2027-01-01",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate": "odd"}, "The rate is not a number such as 19 or 7.7"),
        ({"rate": "1E+999999"}, "The rate is not a number such as 19 or 7.7"),
        ({"rate": "19.001"}, "The rate is not a number such as 19 or 7.7"),
        ({"rate": "9" * 13}, "The rate is not a number such as 19 or 7.7"),
        ({"rate": "101"}, "The rate must be 0 to 100 percent."),
        ({"since": "odd"}, "The date is not valid. Example: 2026-12-01."),
        ({"jurisdiction": "XX"}, "The country was not found."),
    ],
)
def test_an_invalid_tax_rate_shows_its_error(operator: Client, change: dict[str, str], said: str) -> None:
    form = {"jurisdiction": "DE", "category": "standard", "rate": "19", "since": "2026-01-01"}
    assert said in page_words(operator.post("/ops/tax-rates/", {**form, **change}), 400)
    assert not TaxRate.objects.exists()


def test_without_a_supplier_the_pages_show_that_no_tax_is_charged(
    operator: Client, kestrel: TenantContext, payer: Client, settings: Any
) -> None:
    settings.SUPPLIER = {**LUMEN.as_dict(), "name": ""}
    assert "No supplier is configured" in page_words(operator.get("/ops/tax-rates/"))
    assert "No tax is charged" in page_words(payer.get("/billing-details/"))


def test_a_supplier_outside_of_the_union_needs_one_rate(operator: Client, settings: Any) -> None:
    settings.SUPPLIER = SWISS.as_dict()
    assert "No current standard rate for 1 country." in page_words(operator.get("/ops/tax-rates/"))


def test_a_repeated_tax_rate_over_the_api_is_stored_once(operator: Client) -> None:
    body = {"jurisdiction": "DE", "percent": "7.7", "category": "reduced", "since_day": "2026-01-01"}

    def send(**changed: str) -> Any:
        return post_keyed(operator, "/api/v1/ops/tax-rates", body | changed)

    first, second = send(), send()
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert (first.json()["percent"], first.json()["until_day"]) == ("7.7", None)
    corrected = send(percent="8").json()  # no invoice was taxed by it
    assert (corrected["id"], corrected["percent"], corrected["is_used"]) == (first.json()["id"], "8", False)
    assert send(jurisdiction="XX").status_code == 400
    assert len(operator.get("/api/v1/ops/tax-rates?jurisdiction=DE").json()["items"]) == 1


def test_the_tax_category_of_an_offering_is_set_over_the_api_and_audited(operator: Client) -> None:
    offering = create_priced_offering()
    Offering.objects.update(state="draft")  # of histories: no real shape that could be counted
    found = patch_json(operator, f"/api/v1/ops/offerings/{offering.pk}", {"tax_category": "reduced"})
    assert found.json()["tax_category"] == "reduced"
    with staff_scope():
        assert AuditEvent.objects.filter(action="tax.categorize", subject_id=offering.pk).exists()


@pytest.mark.parametrize(("change", "why"), [({"country": "XX"}, "COUNTRY"), ({"vat_id": "DE1"}, "VAT_ID")])
def test_invalid_supplier_settings_prevent_the_start(settings: Any, change: dict[str, str], why: str) -> None:
    from django.apps import apps
    from django.core.exceptions import ImproperlyConfigured

    settings.SUPPLIER = LUMEN.as_dict() | change
    with pytest.raises(ImproperlyConfigured, match=why):
        apps.get_app_config("billing").ready()


def test_the_tax_rate_of_a_day_is_the_rate_valid_on_that_day() -> None:
    set_tax_rate("DE", 19)
    set_tax_rate("DE", 16, since=date(2026, 11, 2))
    at_home = tax_determination.TaxStatus(tax_determination.tax.TaxTreatment.DOMESTIC, "DE")
    assert tax_determination.standard_rate_on(at_home, NOW) == 1900
