"""Setup of ten-hour leases and their corrections."""

from datetime import datetime

from billing.models import Correction, Invoice, InvoiceLine, PriceVersion, RatedCharge
from billing.services.invoicing import drafts
from billing.services.invoicing.corrections import correction_approvals, correction_proposals
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from broker.models import Lease
from tenants.models import Project, Tenant
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc

NOW = utc("2026-11-01 00:05:00")
OCTOBER = utc("2026-10-20 12:00:00")  # while October is open
ANNA, BEN, CLEO = (Actor("staff", f"usr_{name}", f"{name}@example.org") for name in ("anna", "ben", "cleo"))
WHY = "the GPU was down"
BEGUN = utc("2026-10-05 00:00:00")


def create_ten_hour_lease(*, euros: int = 2, quantity: int = 1) -> tuple[Tenant, Project, Lease]:
    """Return a tenant with a charged lease of ten hours on the fifth of October."""
    tenant, project = create_customer()
    lease = add_ended_lease(project, create_priced_offering(euros * EURO), BEGUN, 10 * HOUR, quantity=quantity)
    rate_leases(tenant)
    return tenant, project, lease


def rate_leases(tenant: Tenant, *, now: datetime = OCTOBER) -> None:
    with tenant_scope(tenant.pk):
        lease_rating.rate_tenant_leases(tenant, now=now)
        drafts.refresh_drafts(tenant, now=now)


def close_period(tenant: Tenant, label: str = "2026-10", *, now: datetime = NOW) -> Invoice:
    found = close_month.close_period(tenant, label, now=now)
    assert found is not None
    return found


def hours_between(first: int, last: int) -> dict[str, datetime]:
    """Return the interval between two hours of the fifth of October."""
    return {
        "since": BEGUN.replace(hour=first),
        "until": BEGUN.replace(hour=last),
    }


def propose_correction(
    lease: Lease, first: int, last: int, *, charge: bool = False, now: datetime = OCTOBER, why: str = WHY
) -> Correction:
    return correction_proposals.propose_lease_correction(
        lease, charge=charge, **hours_between(first, last), why=why, actor=ANNA, now=now
    )


def propose_price(
    version: PriceVersion, cents: int, first: int = 0, last: int = 23, *, now: datetime = OCTOBER
) -> Correction:
    return correction_proposals.propose_price_correction(
        version, nano_per_hour=cents * EURO // 100, **hours_between(first, last), why=WHY, actor=ANNA, now=now
    )


def approve_correction(
    correction: Correction, *, by: Actor = BEN, seen: str | None = None, now: datetime = OCTOBER
) -> Correction:
    seen = correction.seal if seen is None else seen
    return correction_approvals.approve_correction(correction, seen=seen, actor=by, now=now)


def invoiced_seconds(tenant: Tenant) -> list[tuple[int, int, int]]:
    """Return the seconds, credited seconds and cents of every invoice line."""
    with tenant_scope(tenant.pk):
        rows = InvoiceLine.objects.filter(tenant=tenant).order_by("invoice__period__span", "n")
        return list(rows.values_list("unit_seconds", "given_back_s", "minor"))


def corrected_charges(tenant: Tenant) -> list[tuple[str, int, int]]:
    """Return the kind, seconds and cents of each correction charge."""
    with tenant_scope(tenant.pk):
        found = RatedCharge.objects.filter(tenant_id=tenant.pk).exclude(correction_id="").order_by("s", "part")
        return [(row.kind, row.unit_seconds, int(row.exact_num) // (36 * EURO)) for row in found]
