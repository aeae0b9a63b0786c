"""Tax of invoices: treatment, rates, categories and ledger entries."""

import random
from datetime import date, timedelta

import pytest

from billing.domain.parties import InvoiceParty
from billing.models import Invoice, InvoiceStatus, InvoiceTax, LedgerTransfer, TaxRate
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import ledger_balances
from billing.services.rating import lease_rating
from billing.services.tax import tax_rates
from billing.services.tax.tax_rates import MissingTaxRate, TaxRateInUse
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    create_customer,
    create_priced_offering,
    invoice_lines,
    invoices_of,
    utc,
)
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.tax_split import split_tax, tax_of
from tests.billing.tax.taxed_tenants import (
    ATELIER,
    LUMEN,
    PERSON,
    SWISS,
    charge_amounts,
    close_taxed_month,
    create_october_invoice,
    set_billing_details,
    set_tax_rate,
)

pytestmark = pytest.mark.django_db


def tax_rows(invoice: Invoice) -> list[tuple[str, int | None, int, int]]:
    with tenant_scope(invoice.tenant_id):
        rows = InvoiceTax.objects.filter(invoice=invoice).order_by("category")
        return list(rows.values_list("category", "rate_bp", "net", "tax"))


def test_a_domestic_customer_pays_the_domestic_rate() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200, 105)
    assert (invoice.subtotal, invoice.tax, invoice.total) == (305, 58, 363)
    assert invoice.treatment == "domestic"
    assert tax_rows(invoice) == [("standard", 1900, 305, 58)]
    assert [line.tax_minor for line in invoice_lines(invoice)] == [38, 20]


def test_a_business_in_another_member_state_is_reverse_charged() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200, party=ATELIER)
    assert (invoice.total, invoice.tax, invoice.treatment) == (200, 0, "reverse_charge")
    assert tax_rows(invoice) == [("standard", 0, 200, 0)]


def test_a_consumer_in_another_member_state_pays_the_rate_there() -> None:
    set_tax_rate("DE", 19)
    set_tax_rate("FR", 20)
    assert create_october_invoice(200, party=PERSON).tax == 40


def test_a_customer_outside_the_eu_pays_no_tax() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200, party=SWISS)
    assert (invoice.tax, invoice.treatment) == (0, "outside")


def test_an_invoice_without_a_configured_supplier_has_no_tax(settings: object) -> None:
    settings.SUPPLIER = {**LUMEN.as_dict(), "name": ""}  # type: ignore[attr-defined]
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200)
    assert (invoice.total, invoice.tax, invoice.treatment, invoice.supplier) == (200, 0, "", None)
    assert tax_rows(invoice) == []


def test_an_unknown_tax_rate_keeps_the_invoice_a_draft_and_is_never_zero() -> None:
    tenant, project = create_customer()
    charge_amounts(project, 200)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    with pytest.raises(MissingTaxRate, match="There is no standard tax rate on the last day of 2026-10"):
        close_month.close_period(tenant, "2026-10", now=NOW)
    (draft,) = invoices_of(tenant)
    assert (draft.status, draft.number) == (InvoiceStatus.DRAFT, None)
    waits = close_month.close_due_months(now=NOW).waiting
    assert [(each.tenant_id, each.broken) for each in waits] == [(tenant.pk, True)]
    set_tax_rate("DE", 19)
    assert close_month.close_due_months(now=NOW).months >= 1
    assert invoices_of(tenant)[0].tax == 38


def test_the_tax_rate_on_the_last_day_of_the_month_applies() -> None:
    set_tax_rate("DE", 19)
    set_tax_rate("DE", 16, since=date(2026, 10, 31))
    assert create_october_invoice(10_000).tax == 1600


def test_a_tax_rate_can_be_corrected_until_a_final_invoice_uses_it() -> None:
    set_tax_rate("DE", 19)
    wrong = set_tax_rate("DE", 91, since=date(2026, 10, 31))
    assert create_october_invoice(100).tax == 91
    with pytest.raises(TaxRateInUse, match="which final invoices use"):
        set_tax_rate("DE", 16, since=date(2026, 10, 31))
    later = set_tax_rate("DE", 16, since=date(2026, 11, 30))
    again = set_tax_rate("DE", 7, since=date(2026, 11, 30))
    assert (again.pk, again.rate_bp, again.valid) == (later.pk, 700, later.valid)
    with staff_scope():
        event = AuditEvent.objects.filter(action="tax.publish").latest("at", "pk")
    assert (event.detail["before"], event.detail["after"]) == (1600, 700)
    assert TaxRate.objects.get(pk=wrong.pk).rate_bp == 9100


def test_a_tax_rate_from_the_last_day_of_an_open_month_can_be_corrected() -> None:
    set_tax_rate("DE", 19)
    set_tax_rate("DE", 91, since=date(2026, 10, 31))
    tenant, project = create_customer()
    charge_amounts(project, 100)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    set_tax_rate("DE", 16, since=date(2026, 10, 31))
    assert close_taxed_month(tenant).tax == 16


def test_a_tax_rate_from_the_next_month_does_not_apply() -> None:
    set_tax_rate("DE", 19)
    set_tax_rate("DE", 16, since=date(2026, 11, 1))
    assert create_october_invoice(10_000).tax == 1900


def test_a_tax_rate_used_by_a_final_invoice_cannot_change() -> None:
    set_tax_rate("DE", 19)
    create_october_invoice(200)
    with pytest.raises(TaxRateInUse, match="Germany has a standard rate on 2026-10-31, which final invoices use"):
        set_tax_rate("DE", 7, since=date(2026, 10, 31))
    assert set_tax_rate("DE", 7, since=date(2026, 11, 1)).rate_bp == 700


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"jurisdiction": "XX"}, "jurisdiction"),
        ({"category": "odd"}, "category"),
        ({"rate_bp": -1}, "rate"),
        ({"rate_bp": 10_001}, "rate"),
        ({"since": date(1999, 12, 31)}, "since"),
    ],
)
def test_an_invalid_tax_rate_is_refused_at_its_field(change: dict[str, object], field: str) -> None:
    wanted = {
        "jurisdiction": "DE",
        "category": "standard",
        "rate_bp": 1900,
        "since": date(2026, 1, 1),
    } | change
    with pytest.raises(InvalidValue) as refused:
        tax_rates.publish_tax_rate(**wanted, actor=OPERATOR, now=NOW)  # type: ignore[arg-type]
    assert refused.value.field == field


def test_an_identical_tax_rate_is_found() -> None:
    rate = set_tax_rate("DE", 19)
    wanted = {"jurisdiction": "DE", "category": "standard", "since": date(2020, 1, 1)}
    assert tax_rates.find_tax_rate(**wanted, rate_bp=1900) == rate  # type: ignore[arg-type]
    assert tax_rates.find_tax_rate(**wanted, rate_bp=1800) is None  # type: ignore[arg-type]


def test_tax_is_computed_and_rounded_per_category() -> None:
    set_tax_rate("DE", 19)
    set_tax_rate("DE", 7, category="reduced")
    tenant, project = create_customer()
    cheap = create_priced_offering(EURO)
    tax_rates.set_tax_category(cheap, "reduced", actor=OPERATOR, now=NOW)
    add_ended_lease(project, cheap, utc("2026-10-01 00:00:00"), HOUR)
    charge_amounts(project, 150, 33)
    invoice = close_taxed_month(tenant)
    assert tax_rows(invoice) == [("reduced", 700, 100, 7), ("standard", 1900, 183, 35)]
    assert (invoice.tax, invoice.total) == (42, 325)


def test_the_tax_category_of_an_offering_can_be_set_back_to_standard() -> None:
    offering = create_priced_offering()
    for category in ("reduced", "reduced", "exempt", "standard"):
        tax_rates.set_tax_category(offering, category, actor=OPERATOR, now=NOW)
        assert tax_rates.get_tax_category(offering) == category
    with pytest.raises(InvalidValue, match="category was not found"):
        tax_rates.set_tax_category(offering, "luxury", actor=OPERATOR, now=NOW)


@pytest.mark.parametrize("party", [None, ATELIER])
def test_changing_a_tax_category_and_back_leaves_no_tax_rows_behind(
    party: InvoiceParty | None,
) -> None:
    set_tax_rate("DE", 19)
    tenant, project = create_customer()
    if party:
        set_billing_details(tenant, party)
    offering = create_priced_offering(2 * EURO)
    add_ended_lease(project, offering, utc("2026-10-01 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    for category in ("standard", "reduced", "standard"):
        tax_rates.set_tax_category(offering, category, actor=OPERATOR, now=NOW)
        drafts.refresh_drafts(tenant, now=NOW)
        assert [row[0] for row in tax_rows(invoices_of(tenant)[0])] == [category]
    assert close_taxed_month(tenant).tax == (0 if party else 38)


def test_a_draft_is_taxed_again_when_billing_details_change() -> None:
    set_tax_rate("DE", 19)
    tenant, project = create_customer()
    charge_amounts(project, 200)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    assert invoices_of(tenant)[0].tax == 38
    set_billing_details(tenant, ATELIER)
    (draft,) = invoices_of(tenant)
    assert (draft.tax, draft.total, draft.treatment) == (0, 200, "reverse_charge")
    assert tax_rows(draft) == [("standard", 0, 200, 0)]


def test_removing_the_supplier_removes_the_tax_of_open_months(settings: object) -> None:
    set_tax_rate("DE", 19)
    tenant, project = create_customer()
    charge_amounts(project, 200)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    settings.SUPPLIER = {**LUMEN.as_dict(), "name": ""}  # type: ignore[attr-defined]
    invoice = close_taxed_month(tenant)
    assert (invoice.tax, invoice.total, invoice.treatment) == (0, 200, "")
    assert tax_rows(invoice) == [("standard", 0, 200, 0)]


def test_a_final_invoice_keeps_its_parties_and_due_date() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200, party=ATELIER)
    tenant = invoice.tenant
    set_billing_details(tenant, PERSON)
    (kept,) = invoices_of(tenant)
    assert (kept.customer, kept.supplier) == (ATELIER.as_dict(), LUMEN.as_dict())
    assert kept.due_at == NOW + timedelta(days=14)


def test_a_tenant_without_billing_details_is_invoiced_under_its_name() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200)
    assert invoice.customer is not None
    assert invoice.customer["name"] == invoice.tenant.name


def test_tax_is_booked_as_payable_and_not_as_revenue() -> None:
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(200, 105)
    with tenant_scope(invoice.tenant_id):
        moved = LedgerTransfer.objects.filter(ref=invoice.pk).values_list(
            "debit_account__type", "credit_account__type", "minor"
        )
        assert set(moved) == {
            ("receivable", "accrued", 363),
            ("accrued", "revenue", 305),
            ("accrued", "tax_payable", 58),
        }
        assert [each.minor for each in ledger_balances.amounts_owed(invoice.tenant_id)] == [363]


def test_b21_e2_line_taxes_equal_the_largest_remainder_split() -> None:
    chance = random.Random(20261123)
    set_tax_rate("DE", 19)
    for _ in range(5):
        cents = [chance.choice([1, 2, 3, 33, 105, 9_999, 123_457]) for _ in range(chance.randrange(1, 12))]
        invoice = create_october_invoice(*cents)
        found = invoice_lines(invoice)
        assert [line.tax_minor for line in found] == split_tax([line.minor for line in found], 1900)
        assert invoice.tax == tax_of(sum(cents), 1900)
