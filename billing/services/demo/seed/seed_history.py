"""Demo leases of seven weeks, run through the real services in virtual time."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from billing.services.demo.seed.seed_tenants import DemoTenant
from broker.domain.lifecycle.states import LeaseState, PriceClass
from broker.models import Lease, Offering
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.queue.starvation_guard import MAX_WAIT
from broker.services.reconciler import lease_reconciler
from ports import outbox
from ports.rng import Rng
from tenants.models import Project
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope

# Most leases are ready at the first check, all at the second.
READY_AFTER = (timedelta(seconds=6), timedelta(seconds=15))
TORN_DOWN_AFTER = timedelta(seconds=12)


@dataclass(frozen=True)
class PlannedLease:
    """One lease of the demo."""

    project: Project
    actor: Actor
    label: str
    name: str
    start: datetime
    seconds: int
    quantity: int = 1
    price_class: PriceClass = PriceClass.ON_DEMAND
    same_node: bool = False
    end_date: datetime | None = None


class PlannedCheck(NamedTuple):
    """A time at which a lease is reconciled.

    With `again`, only if the lease was not ready before.
    """

    lease_id: str
    tenant_id: str
    again: bool


def run_plans(plans: Iterable[PlannedLease], *, until: datetime) -> int:
    """Run all planned leases up to `until`; return how many were requested."""
    offerings = {(o.label, o.price_class): o for o in Offering.objects.published()}
    # (time, order, event): a request adds its later checks to the same queue.
    moments: list[tuple[datetime, int, PlannedLease | PlannedCheck]] = []
    for order, plan in enumerate(plans):
        heapq.heappush(moments, (plan.start, order, plan))
    order, count = len(moments), 0
    with outbox.captured(lambda *_: None):
        while moments and moments[0][0] <= until:
            now, _, what = heapq.heappop(moments)
            if isinstance(what, PlannedLease):
                lease = _request_lease(what, offerings[what.label, what.price_class], now)
                count += 1
                for later, again in _check_times(what, now):
                    order += 1
                    heapq.heappush(moments, (later, order, PlannedCheck(*lease, again)))
            elif not (what.again and _is_ready(what)):
                lease_reconciler.reconcile_lease(what.lease_id, what.tenant_id, now=now)
    return count


def _is_ready(check: PlannedCheck) -> bool:
    with tenant_scope(check.tenant_id):
        return Lease.objects.filter(pk=check.lease_id, state=LeaseState.ACTIVE).exists()


def _request_lease(plan: PlannedLease, offering: Offering, now: datetime) -> tuple[str, str]:
    wanted = LeaseRequest(
        offering_id=offering.pk,
        name=plan.name,
        max_duration_s=plan.seconds,
        quantity=plan.quantity,
        same_node=plan.same_node,
        end_date=plan.end_date,
        image="pytorch/2.9",
    )
    tenant_id = plan.project.tenant_id
    with tenant_scope(tenant_id):
        lease = request_lease(wanted, project=plan.project, actor=plan.actor, now=now)
    lease_reconciler.reconcile_lease(lease.pk, tenant_id, now=now)
    return lease.pk, tenant_id


def _check_times(plan: PlannedLease, start: datetime) -> Iterator[tuple[datetime, bool]]:
    """Yield when to reconcile a lease: ready, ready at the latest, ended, tearing down, gone."""
    soon, surely = (start + each for each in READY_AFTER)
    over = surely + timedelta(seconds=plan.seconds)
    yield from ((soon, False), (surely, True), (over, False))
    yield from ((over + timedelta(seconds=1), False), (over + TORN_DOWN_AFTER, False))


def kestrel_plans(cast: DemoTenant, *, now: datetime, days: int) -> list[PlannedLease]:
    """Return Kestrel Bio's past leases: training, folding batches and notebooks, fewer on weekends."""
    rng = Rng("kestrel")
    design, docking = cast.projects["protein-design"], cast.projects["docking"]
    mira, jonas, aiko = cast.actors["mira"], cast.actors["jonas"], cast.actors["aiko"]
    plans = []
    for ago in range(days, 0, -1):
        morning = (now - timedelta(days=ago)).replace(hour=8, minute=0, second=0, microsecond=0)
        busy = 35 if morning.weekday() >= 5 else 100
        for percent, project, actor, label, stem, hours in (
            (55, design, mira, "H200 SXM 141GB whole GPU", "boltz-train", (4, 11)),
            (80, design, jonas, "H200 SXM 141GB 3g.71gb", "fold-batch", (2, 9)),
            (60, design, mira, "H200 SXM 141GB 1g.18gb", "notebook-mira", (3, 8)),
            (60, docking, aiko, "A100 SXM 80GB 2g.20gb", "dock-screen", (3, 10)),
            (35, design, jonas, "H100 SXM 80GB 3g.40gb", "chat-eval", (1, 6)),
        ):
            if rng.uniform(0, 100 * 100) < percent * busy:
                planned = morning + timedelta(seconds=int(rng.uniform(0, 8 * 3600)))
                seconds = int(rng.uniform(hours[0], hours[1]) * 3600)
                # In the past, whatever the time of day is.
                start = min(planned, now.replace(microsecond=0) - timedelta(seconds=seconds + 2 * 3600))
                plans.append(PlannedLease(project, actor, label, f"{stem}-{days - ago + 1}", start, seconds))
    return plans


def kestrel_now(cast: DemoTenant, *, now: datetime) -> list[PlannedLease]:
    """Return Kestrel Bio's leases running at the first start, and one queued request."""
    design, docking = cast.projects["protein-design"], cast.projects["docking"]
    mira, jonas, aiko = cast.actors["mira"], cast.actors["jonas"], cast.actors["aiko"]

    def ago(minutes: int) -> datetime:
        return (now - timedelta(minutes=minutes)).replace(microsecond=0)

    return [
        PlannedLease(design, mira, "H200 SXM 141GB whole GPU", "boltz-train-07", ago(1434), 30 * 3600),
        PlannedLease(design, jonas, "H200 SXM 141GB 3g.71gb", "fold-batch-21", ago(292), 8 * 3600),
        PlannedLease(design, mira, "H100 SXM 80GB 3g.40gb", "chat-24b-fp8", ago(4560), 12 * 24 * 3600),
        PlannedLease(design, mira, "H200 SXM 141GB 1g.18gb", "notebook-mira", ago(312), 9 * 3600),
        PlannedLease(
            docking, aiko, "A100 SXM 80GB 2g.20gb", "dock-screen-3", ago(366), 16 * 3600, price_class=PriceClass.SPOT
        ),
        PlannedLease(design, jonas, "CPU 8 vCPU", "prepare-reads", ago(128), 6 * 3600),
        # It ends before PATIENCE is over: from then on all later requests would queue behind it.
        PlannedLease(
            design,
            mira,
            "H200 SXM 141GB whole GPU",
            "sweep-32",
            ago(24),
            6 * 3600,
            quantity=6,
            same_node=True,
            end_date=ago(24) + MAX_WAIT - timedelta(minutes=2),
        ),
    ]


def neighbour_plans(cast: DemoTenant, *, now: datetime, seed: str, live: int, gang: int) -> list[PlannedLease]:
    """Return another tenant's running leases, so that the fleet looks used."""
    rng = Rng(seed)
    (project,), (actor,) = cast.projects.values(), cast.actors.values()
    shapes = (
        "H200 SXM 141GB whole GPU",
        "H200 SXM 141GB 3g.71gb",
        "H200 SXM 141GB 2g.35gb",
        "H200 SXM 141GB 1g.18gb",
        "H100 SXM 80GB whole GPU",
        "H100 SXM 80GB 3g.40gb",
        "H100 SXM 80GB 1g.10gb",
        "A100 SXM 80GB 3g.40gb",
        "A100 SXM 80GB 2g.20gb",
        "H200 SXM 141GB 4g.71gb",
        "H100 SXM 80GB 2g.20gb",
        "A100 SXM 80GB whole GPU",
    )
    plans = [
        # A gang that fills most of a node: what Kestrel's queued request waits for.
        PlannedLease(
            project,
            actor,
            "H200 SXM 141GB whole GPU",
            f"{seed}-pretrain",
            (now - timedelta(hours=70)).replace(microsecond=0),
            120 * 3600,
            quantity=gang,
            same_node=True,
        )
    ]
    for number in range(live):
        label = shapes[int(rng.uniform(0, len(shapes)))]
        start = now - timedelta(seconds=int(rng.uniform(600, 60 * 3600)))
        seconds = int((now - start).total_seconds() + rng.uniform(1800, 90 * 3600))
        spot = PriceClass.SPOT if rng.uniform(0, 4) < 1 else PriceClass.ON_DEMAND
        plans.append(
            PlannedLease(
                project, actor, label, f"{seed}-{number + 1}", start.replace(microsecond=0), seconds, price_class=spot
            )
        )
    return plans
