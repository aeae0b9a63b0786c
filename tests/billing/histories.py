"""Lease histories for billing tests without a fleet."""

import itertools
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from billing.domain.pricing import hold_amount, line_amount
from billing.models import BillingPeriod, Invoice, InvoiceLine, PriceVersion, Quote, RatedCharge
from billing.services.catalogue import price_list
from billing.services.rating import spend
from broker.domain.lifecycle.states import LeaseState
from broker.models import GpuModel, Lease, Offering, OfferingState, Transition
from tenants.models import Project, Tenant
from tenants.services import tenants
from tenants.services.actors import SYSTEM, Actor
from tenants.services.rls import tenant_scope

S = LeaseState
OPERATOR = Actor("staff", "usr_operator", "operator@example.org")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(2100, 1, 1, tzinfo=UTC)
HOUR = 3600
EURO = 10**9  # nano units
_numbers = itertools.count(1)


def utc(text: str) -> datetime:
    """Parse a UTC time such as `2026-11-01 00:00:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def create_priced_offering(
    nano_per_hour: int | None = EURO,
    *,
    currency: str = "EUR",
    since: datetime = LONG_AGO,
    price_class: str = "on_demand",
) -> Offering:
    """Create an offering with a price valid since long ago, or without one."""
    GpuModel.objects.get_or_create(
        name="H200-141GB", defaults={"memory_gb": 141, "memory_grid": 8, "compute_slices": 7, "spec": {}}
    )
    number = next(_numbers)
    offering = Offering.objects.create(
        gpu_model_id="H200-141GB",
        profile=f"{number}g",
        isolation="hardware",
        price_class=price_class,
        region="eu-1",
        label=f"H200 {number}g",
        milli_units=1000,
        memory_gb=18,
        state=OfferingState.PUBLISHED,
        created_at=LONG_AGO,
    )
    if nano_per_hour is not None:
        set_price(offering, nano_per_hour, since=since, currency=currency)
    return offering


def set_price(offering: Offering, nano_per_hour: int, *, since: datetime, currency: str = "EUR") -> PriceVersion:
    return price_list.publish_price(
        offering=offering,
        currency=currency,
        nano_per_hour=nano_per_hour,
        since=since,
        actor=OPERATOR,
        now=since,
    )


def create_customer(time_zone: str = "UTC", *, currency: str = "EUR") -> tuple[Tenant, Project]:
    """Create a tenant with its root project."""
    with tenant_scope(""):
        return tenants.create(
            name=f"Tenant {next(_numbers)}",
            owner=None,
            time_zone=time_zone,
            currency=currency,
            actor=SYSTEM,
            now=LONG_AGO,
        )


Step = tuple[datetime, LeaseState]


def add_lease_history(
    project: Project,
    offering: Offering,
    steps: Iterable[Step],
    *,
    quantity: int = 1,
    terms: Iterable[tuple[Offering, int]] = (),
    seen_at: datetime | None = None,
    taken: int | None = None,
) -> Lease:
    """Create a lease and its transitions; `terms` may change on the way.

    The step `taken` is where the provider took it back for others.
    """
    steps = list(steps)
    sells = [*terms, *[(offering, quantity)] * len(steps)][: len(steps)]
    with tenant_scope(project.tenant_id):
        lease = Lease.objects.create(
            tenant_id=project.tenant_id,
            project=project,
            offering=offering,
            name=f"job {next(_numbers)}",
            quantity=quantity,
            state=steps[-1][1],
            seq=len(steps) - 1,
            state_since=steps[-1][0],
            created_at=steps[0][0],
            max_duration_s=HOUR,
            seen_at=seen_at,
        )
        rows = []
        for seq, ((moment, after), (what, many)) in enumerate(zip(steps, sells, strict=True)):
            before = steps[seq - 1] if seq else None
            rows.append(
                Transition(
                    lease_id=lease.pk,
                    seq=seq,
                    tenant_id=project.tenant_id,
                    at=moment,
                    prev_seq=seq - 1 if before else None,
                    prev_at=before[0] if before else None,
                    before=before[1] if before else "",
                    after=after,
                    reason="preempted" if seq == taken else "none",
                    offering_id=what.pk,
                    project_id=project.pk,
                    quantity=many,
                    price_class=what.price_class,
                    generation=1,
                    actor_kind="system",
                )
            )
        Transition.objects.bulk_create(rows)
    return lease


def exact_spend(since: datetime, until: datetime, projects: Iterable[str] | None = None) -> int:
    """Return the exact spend of a tenant in [since, until)."""
    return sum(line.exact_num for line in spend.spend_lines([since, until], until=until, projects=projects))


def add_ended_lease(project: Project, offering: Offering, start: datetime, seconds: int, *, quantity: int = 1) -> Lease:
    """Create a lease that was active for so many seconds from `start`."""
    end = start + timedelta(seconds=seconds)
    steps = [
        (start, S.REQUESTED),
        (start, S.PROVISIONING),
        (start, S.ACTIVE),
        (end, S.RELEASING),
        (end, S.RELEASED),
    ]
    return add_lease_history(project, offering, steps, quantity=quantity)


def add_running_lease(
    project: Project, offering: Offering, start: datetime, *, quantity: int = 1, seen_at: datetime = FAR_AHEAD
) -> Lease:
    """Create a lease that is active since `start`, last seen at `seen_at`."""
    steps = [(start, S.REQUESTED), (start, S.ACTIVE)]
    return add_lease_history(project, offering, steps, quantity=quantity, seen_at=seen_at)


def add_quote(lease: Lease, version: PriceVersion, *, is_ceiling: bool = True) -> Quote:
    """Record that a lease redeems a quote of this price."""
    quote = build_quote(lease, version, quantity=lease.quantity)
    quote.is_ceiling = is_ceiling
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(quote_id=quote.pk)
        quote.save(force_insert=True)
    return quote


def build_quote(lease: Lease, version: PriceVersion, *, quantity: int) -> Quote:
    """Return the quote that a lease redeems, unsaved."""
    terms = {"quantity": quantity, "nano_per_hour": version.nano_per_hour, "currency": version.currency}
    return Quote(
        pk=f"quo_{lease.pk}"[:40],
        tenant_id=lease.tenant_id,
        lease=lease,
        project_id=lease.project_id,
        offering_id=version.offering_id,
        price_version=version,
        max_duration_s=lease.max_duration_s,
        hold_minor=hold_amount(lease.max_duration_s, **terms),
        cap_minor=line_amount(lease.max_duration_s, **terms),
        made_at=version.valid.lower,
        expires_at=FAR_AHEAD,
        cited_at=lease.created_at,
        **terms,
    )


def charges_of(tenant: Tenant) -> list[RatedCharge]:
    with tenant_scope(tenant.pk):
        return list(RatedCharge.objects.order_by("lease_id", "seq", "s"))


def periods_of(tenant: Tenant) -> list[BillingPeriod]:
    with tenant_scope(tenant.pk):
        return list(BillingPeriod.objects.order_by("span"))


def invoices_of(tenant: Tenant) -> list[Invoice]:
    with tenant_scope(tenant.pk):
        return list(Invoice.objects.order_by("period__span").select_related("period"))


def invoice_lines(invoice: Invoice) -> list[InvoiceLine]:
    with tenant_scope(invoice.tenant_id):
        return list(invoice.lines.order_by("n"))
