"""PostgreSQL constraints on tax rows, rates and final invoices."""

from datetime import date

import pytest
from django.db import DatabaseError, transaction

from billing.models import CreditNoteLine, Invoice, InvoiceLine, InvoiceTax, TaxRate
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.tax.taxed_tenants import ATELIER, create_october_invoice, set_billing_details, set_tax_rate

pytestmark = pytest.mark.django_db


@pytest.fixture
def invoice() -> Invoice:
    set_tax_rate("DE", 19)
    return create_october_invoice(200, 105)


@pytest.mark.parametrize(
    "change",
    [{"tax": 1}, {"treatment": "outside"}, {"customer": {}}, {"supplier": None}, {"due_at": None}],
    ids=lambda change: next(iter(change)),
)
def test_tax_and_parties_of_a_final_invoice_cannot_change(invoice: Invoice, change: dict[str, object]) -> None:
    with (
        tenant_scope(invoice.tenant_id),
        pytest.raises(DatabaseError, match="is final"),
        transaction.atomic(),
    ):
        Invoice.objects.filter(pk=invoice.pk).update(**change)


def test_tax_rows_of_a_final_invoice_cannot_change(invoice: Invoice) -> None:
    with (
        tenant_scope(invoice.tenant_id),
        pytest.raises(DatabaseError, match="is final"),
        transaction.atomic(),
    ):
        InvoiceTax.objects.filter(invoice=invoice).update(tax=0)


@pytest.mark.parametrize("model", [InvoiceTax, InvoiceLine])
def test_rows_of_a_final_invoice_cannot_move_to_a_draft(invoice: Invoice, model: type[InvoiceTax]) -> None:
    with tenant_scope(invoice.tenant_id):
        draft = _draft_like(invoice)
        model.objects.filter(invoice=draft).delete()
        with pytest.raises(DatabaseError, match=f"{invoice.pk} is final"), transaction.atomic():
            model.objects.filter(invoice=invoice).update(invoice=draft)


@pytest.mark.parametrize("model", [InvoiceTax, InvoiceLine])
def test_an_invoice_whose_tax_does_not_add_up_cannot_become_final(invoice: Invoice, model: type[InvoiceTax]) -> None:
    column = "tax" if model is InvoiceTax else "tax_minor"
    with tenant_scope(invoice.tenant_id):
        draft = _draft_like(invoice)
        model.objects.filter(invoice=draft).update(**{column: 37})
        with pytest.raises(DatabaseError, match="is not that of its lines"), transaction.atomic():
            Invoice.objects.filter(pk=draft.pk).update(status="finalized", series="x", number=1)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"customer": None}, "nobody has decided"),  # as a release that knows nothing of tax leaves it
        ({"supplier": None}, "nobody has decided"),
        ({"treatment": "", "supplier": {"name": "x"}}, "nobody has decided"),
        ({"status": "finalized"}, ""),
    ],
)
@pytest.mark.parametrize("has_details", [True, False])
def test_an_invoice_without_tax_treatment_or_parties_cannot_become_final(
    invoice: Invoice, change: dict[str, object], why: str, has_details: bool
) -> None:
    if has_details:
        set_billing_details(invoice.tenant, ATELIER)
    with tenant_scope(invoice.tenant_id):
        draft = _draft_like(invoice)
        whole = {
            "status": "finalized",
            "series": "x",
            "number": 1,
            "customer": {"name": "a"},
            "supplier": {"name": "b"},
        }
        rows = Invoice.objects.filter(pk=draft.pk)
        if not why:
            assert rows.update(**whole | change) == 1
            return
        with pytest.raises(DatabaseError, match=why), transaction.atomic():
            rows.update(**whole | change)


def test_an_invoice_taxed_at_a_rate_corrected_since_cannot_become_final(invoice: Invoice) -> None:
    set_tax_rate("DE", 7, since=date(2026, 11, 30))
    with tenant_scope(invoice.tenant_id):
        draft = _draft_like(invoice)
        assert draft.tax == 14
        TaxRate.objects.filter(rate_bp=700).update(rate_bp=1900)
        with pytest.raises(DatabaseError, match="was corrected since"), transaction.atomic():
            Invoice.objects.filter(pk=draft.pk).update(
                status="finalized", series="x", number=1, customer={"name": "a"}, supplier={"name": "b"}
            )


def _draft_like(invoice: Invoice) -> Invoice:
    """Return a taxed draft of the next month with one line."""
    from billing.services.invoicing import drafts
    from billing.services.rating import lease_rating
    from tenants.models import Project
    from tests.billing.histories import EURO, HOUR, add_ended_lease, create_priced_offering, utc
    from tests.billing.payments.payable_invoices import NOW

    project = Project.objects.get(tenant=invoice.tenant_id)
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-11-01 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(invoice.tenant, now=NOW)
    drafts.refresh_drafts(invoice.tenant, now=NOW)
    return Invoice.objects.get(tenant=invoice.tenant_id, status="draft")


def test_a_used_tax_rate_cannot_change_or_overlap_another(invoice: Invoice) -> None:
    rate = TaxRate.objects.get()
    assert rate.used
    for change in ({"rate_bp": 1}, {"used": False}, {"jurisdiction": "FR"}):
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            TaxRate.objects.filter(pk=rate.pk).update(**change)
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        rate.delete()
    rate.pk = "txr_other"
    with pytest.raises(DatabaseError, match="one_tax_rate_at_a_time"), transaction.atomic():
        rate.save(force_insert=True)


def test_a_credit_note_line_cannot_credit_more_tax_than_its_share(invoice: Invoice) -> None:
    note = issue_note(invoice, {1: 100})
    with tenant_scope(invoice.tenant_id):
        line = InvoiceLine.objects.get(invoice=invoice, n=2)
        odd = CreditNoteLine(tenant_id=invoice.tenant_id, credit_note=note, line=line, minor=50, tax_minor=5)
        with pytest.raises(DatabaseError, match="is not its part of it"), transaction.atomic():
            odd.save()
