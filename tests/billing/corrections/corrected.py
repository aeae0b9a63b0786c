"""Leases of ten hours at two euros each, and people who propose and approve what of them is corrected."""

from datetime import datetime

from billing.models import Correction, Invoice, InvoiceLine, PriceVersion, RatedCharge
from billing.services import closing, drafts, rating
from billing.services.corrections import approving, proposing
from broker.models import Lease
from tenants.models import Project, Tenant
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, at, customer, ran, sold

NOW = at("2026-11-01 00:05:00")
OCTOBER = at("2026-10-20 12:00:00")  # while October is open
ANNA, BEN, CLEO = (Actor("staff", f"usr_{name}", f"{name}@example.org") for name in ("anna", "ben", "cleo"))
WHY = "the card was down"
BEGUN = at("2026-10-05 00:00:00")


def ten_hours(*, euros: int = 2, quantity: int = 1) -> tuple[Tenant, Project, Lease]:
    """Return a tenant whose lease ran ten hours of the fifth of October, charged."""
    tenant, project = customer()
    lease = ran(project, sold(euros * EURO), BEGUN, 10 * HOUR, quantity=quantity)
    charge(tenant)
    return tenant, project, lease


def charge(tenant: Tenant, *, now: datetime = OCTOBER) -> None:
    with as_tenant(tenant.pk):
        rating.rate_tenant(tenant, now=now)
        drafts.refresh(tenant, now=now)


def close(tenant: Tenant, label: str = "2026-10", *, now: datetime = NOW) -> Invoice:
    found = closing.close_period(tenant, label, now=now)
    assert found is not None
    return found


def hours(first: int, last: int) -> dict[str, datetime]:
    """Return the stretch between two hours of the fifth of October."""
    return {
        "since": BEGUN.replace(hour=first),
        "until": BEGUN.replace(hour=last),
    }


def proposed(
    lease: Lease, first: int, last: int, *, charge: bool = False, now: datetime = OCTOBER, why: str = WHY
) -> Correction:
    return proposing.of_lease(lease, charge=charge, **hours(first, last), why=why, actor=ANNA, now=now)


def repriced(
    version: PriceVersion, cents: int, first: int = 0, last: int = 23, *, now: datetime = OCTOBER
) -> Correction:
    return proposing.of_price(
        version, nano_per_hour=cents * EURO // 100, **hours(first, last), why=WHY, actor=ANNA, now=now
    )


def approved(
    correction: Correction, *, by: Actor = BEN, seen: str | None = None, now: datetime = OCTOBER
) -> Correction:
    seen = correction.seal if seen is None else seen
    return approving.approve(correction, seen=seen, actor=by, now=now)


def lines(tenant: Tenant) -> list[tuple[int, int, int]]:
    """Return the seconds, the seconds that were given back and the cents of every line, the first invoice first."""
    with as_tenant(tenant.pk):
        rows = InvoiceLine.objects.filter(tenant=tenant).order_by("invoice__period__span", "n")
        return list(rows.values_list("unit_seconds", "given_back_s", "minor"))


def rows(tenant: Tenant) -> list[tuple[str, int, int]]:
    """Return the kind, seconds and exact amount in whole cents of what corrections charged."""
    with as_tenant(tenant.pk):
        found = (
            RatedCharge.objects.filter(tenant_id=tenant.pk).exclude(correction_id="").order_by("s", "part")
        )
        return [(row.kind, row.unit_seconds, int(row.exact_num) // (36 * EURO)) for row in found]
