"""Credit notes as operators issue them, in tests."""

from collections.abc import Mapping
from datetime import datetime

from billing.models import CreditNote, Invoice
from billing.services import closing, crediting, rating
from tenants.models import Project
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, at, customer, ran, sold
from tests.billing.payments.bills import NOW

WHY = "the card was slow for an hour"
LATER = at("2026-12-01 00:05:00")


def month_of_two_lines(*amounts: int) -> Invoice:
    """Return a tenant's October with a line of each of these cents."""
    tenant, project = customer()
    for n, cents in enumerate(amounts or (200, 105)):
        ran(project, sold(cents * EURO // 100), at(f"2026-10-{n % 28 + 1:02} 00:00:00"), HOUR)
    rating.rate_tenant(tenant, now=NOW)
    found = closing.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def november(invoice: Invoice, cents: int) -> Invoice:
    """Return the next month of an invoice's tenant: an hour at so many cents."""
    with as_tenant(invoice.tenant_id):
        tenant, project = invoice.tenant, Project.objects.get(tenant=invoice.tenant_id)
    ran(project, sold(cents * EURO // 100), at("2026-11-05 00:00:00"), HOUR)
    rating.rate_tenant(tenant, now=LATER)
    found = closing.close_period(tenant, "2026-11", now=LATER)
    assert found is not None
    return found


def credit(
    invoice: Invoice,
    wanted: Mapping[int, int] | None = None,
    *,
    seen: int | None = None,
    why: str = WHY,
    now: datetime = NOW,
) -> CreditNote:
    """Give back, having looked just before unless `seen` says otherwise."""
    seen = given_back(invoice) if seen is None else seen
    return crediting.credit(invoice, wanted=wanted, seen=seen, why=why, actor=OPERATOR, now=now)


def given_back(invoice: Invoice) -> int:
    with as_tenant(invoice.tenant_id):
        return sum(line.credited for line in crediting.left(invoice))
