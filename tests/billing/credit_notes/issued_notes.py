"""Setup of invoices and credit notes."""

from collections.abc import Mapping
from datetime import datetime

from billing.models import CreditNote, Invoice
from billing.services.invoicing import credit_notes
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.models import Project
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW

WHY = "the GPU was slow for an hour"
LATER = utc("2026-12-01 00:05:00")


def create_october_invoice_of(*amounts: int) -> Invoice:
    """Return a tenant's October invoice with a line of each of these cents."""
    tenant, project = create_customer()
    for n, cents in enumerate(amounts or (200, 105)):
        add_ended_lease(
            project, create_priced_offering(cents * EURO // 100), utc(f"2026-10-{n % 28 + 1:02} 00:00:00"), HOUR
        )
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    found = close_month.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def create_november_invoice(invoice: Invoice, cents: int) -> Invoice:
    """Create the invoice of the following month: one hour at so many cents."""
    with tenant_scope(invoice.tenant_id):
        tenant, project = invoice.tenant, Project.objects.get(tenant=invoice.tenant_id)
    add_ended_lease(project, create_priced_offering(cents * EURO // 100), utc("2026-11-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=LATER)
    found = close_month.close_period(tenant, "2026-11", now=LATER)
    assert found is not None
    return found


def issue_note(
    invoice: Invoice,
    wanted: Mapping[int, int] | None = None,
    *,
    seen: int | None = None,
    why: str = WHY,
    now: datetime = NOW,
) -> CreditNote:
    """Issue a credit note based on the current state unless `seen` is given."""
    seen = credited_amount(invoice) if seen is None else seen
    return credit_notes.issue_credit_note(invoice, wanted=wanted, seen=seen, why=why, actor=OPERATOR, now=now)


def credited_amount(invoice: Invoice) -> int:
    with tenant_scope(invoice.tenant_id):
        return sum(line.credited for line in credit_notes.creditable_lines(invoice))
