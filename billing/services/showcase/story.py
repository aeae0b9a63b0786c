"""Seven weeks of leases before a first start, lived through the real services with the clock in hand."""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from billing.services.showcase.people import Cast
from broker.domain.states import LeaseState, PriceClass
from broker.models import Lease, Offering
from broker.services import reconcile
from broker.services.leases.precedence import PATIENCE
from broker.services.leases.request import Wanted, request
from ports import doorbell
from ports.chance import Chance
from tenants.models import Project
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant

# Most are ready at the first look, all at the second.
READY_AFTER = (timedelta(seconds=6), timedelta(seconds=15))
GONE_AFTER = timedelta(seconds=12)


@dataclass(frozen=True)
class Plan:
    """One lease of the story."""

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


class Look(NamedTuple):
    """A moment at which somebody looks at a lease; once more only where it was not ready yet."""

    lease_id: str
    tenant_id: str
    again: bool


def live_through(plans: Iterable[Plan], *, until: datetime) -> int:
    """Let every plan happen up to `until`; return how many leases were asked for."""
    offerings = {(o.label, o.price_class): o for o in Offering.objects.published()}
    # (when, order, what): a request puts its later moments into the same queue.
    moments: list[tuple[datetime, int, Plan | Look]] = []
    for order, plan in enumerate(plans):
        heapq.heappush(moments, (plan.start, order, plan))
    order, asked = len(moments), 0
    with doorbell.heard_by(lambda *_: None):
        while moments and moments[0][0] <= until:
            now, _, what = heapq.heappop(moments)
            if isinstance(what, Plan):
                lease = _ask(what, offerings[what.label, what.price_class], now)
                asked += 1
                for later, again in _moments(what, now):
                    order += 1
                    heapq.heappush(moments, (later, order, Look(*lease, again)))
            elif not (what.again and _is_ready(what)):
                reconcile.step(what.lease_id, what.tenant_id, now=now)
    return asked


def _is_ready(look: Look) -> bool:
    with as_tenant(look.tenant_id):
        return Lease.objects.filter(pk=look.lease_id, state=LeaseState.ACTIVE).exists()


def _ask(plan: Plan, offering: Offering, now: datetime) -> tuple[str, str]:
    wanted = Wanted(
        offering_id=offering.pk,
        name=plan.name,
        max_duration_s=plan.seconds,
        quantity=plan.quantity,
        same_node=plan.same_node,
        end_date=plan.end_date,
        image="pytorch/2.9",
    )
    tenant_id = plan.project.tenant_id
    with as_tenant(tenant_id):
        lease = request(wanted, project=plan.project, actor=plan.actor, now=now)
    reconcile.step(lease.pk, tenant_id, now=now)
    return lease.pk, tenant_id


def _moments(plan: Plan, start: datetime) -> Iterator[tuple[datetime, bool]]:
    """When this lease needs looking at: ready, ready at last, over, being taken down, gone."""
    soon, surely = (start + each for each in READY_AFTER)
    over = surely + timedelta(seconds=plan.seconds)
    yield from ((soon, False), (surely, True), (over, False))
    yield from ((over + timedelta(seconds=1), False), (over + GONE_AFTER, False))


def kestrel_plans(cast: Cast, *, now: datetime, days: int) -> list[Plan]:
    """What Kestrel Bio ran: training on whole cards, folding in slices, notebooks by day, fewer on weekends."""
    chance = Chance("kestrel")
    design, docking = cast.projects["protein-design"], cast.projects["docking"]
    mira, jonas, aiko = cast.actors["mira"], cast.actors["jonas"], cast.actors["aiko"]
    plans = []
    for ago in range(days, 0, -1):
        morning = (now - timedelta(days=ago)).replace(hour=8, minute=0, second=0, microsecond=0)
        busy = 35 if morning.weekday() >= 5 else 100
        for percent, project, actor, label, stem, hours in (
            (55, design, mira, "H200 whole card", "boltz-train", (4, 11)),
            (80, design, jonas, "H200 3g.71gb", "fold-batch", (2, 9)),
            (60, design, mira, "H200 1g.18gb", "notebook-mira", (3, 8)),
            (60, docking, aiko, "A100 2g.20gb", "dock-screen", (3, 10)),
            (35, design, jonas, "H100 3g.40gb", "chat-eval", (1, 6)),
        ):
            if chance.uniform(0, 100 * 100) < percent * busy:
                planned = morning + timedelta(seconds=int(chance.uniform(0, 8 * 3600)))
                seconds = int(chance.uniform(hours[0], hours[1]) * 3600)
                # Over by now, whatever the time of day is.
                start = min(planned, now.replace(microsecond=0) - timedelta(seconds=seconds + 2 * 3600))
                plans.append(Plan(project, actor, label, f"{stem}-{days - ago + 1}", start, seconds))
    return plans


def kestrel_now(cast: Cast, *, now: datetime) -> list[Plan]:
    """What Kestrel Bio has running at the first start, and one request that waits."""
    design, docking = cast.projects["protein-design"], cast.projects["docking"]
    mira, jonas, aiko = cast.actors["mira"], cast.actors["jonas"], cast.actors["aiko"]

    def ago(minutes: int) -> datetime:
        return (now - timedelta(minutes=minutes)).replace(microsecond=0)

    return [
        Plan(design, mira, "H200 whole card", "boltz-train-07", ago(1434), 30 * 3600),
        Plan(design, jonas, "H200 3g.71gb", "fold-batch-21", ago(292), 8 * 3600),
        Plan(design, mira, "H100 3g.40gb", "chat-24b-fp8", ago(4560), 12 * 24 * 3600),
        Plan(design, mira, "H200 1g.18gb", "notebook-mira", ago(312), 9 * 3600),
        Plan(
            docking, aiko, "A100 2g.20gb", "dock-screen-3", ago(366), 16 * 3600, price_class=PriceClass.SPOT
        ),
        # It gives up while it still has patience: from then on all who come later would wait behind it.
        Plan(
            design,
            mira,
            "H200 whole card",
            "sweep-32",
            ago(24),
            6 * 3600,
            quantity=6,
            same_node=True,
            end_date=ago(24) + PATIENCE - timedelta(minutes=2),
        ),
    ]


def neighbour_plans(cast: Cast, *, now: datetime, seed: str, live: int, gang: int) -> list[Plan]:
    """What another tenant has running: enough to make the fleet look lived in."""
    chance = Chance(seed)
    (project,), (actor,) = cast.projects.values(), cast.actors.values()
    shapes = (
        "H200 whole card",
        "H200 3g.71gb",
        "H200 2g.35gb",
        "H200 1g.18gb",
        "H100 whole card",
        "H100 3g.40gb",
        "H100 1g.10gb",
        "A100 3g.40gb",
        "A100 2g.20gb",
        "H200 4g.71gb",
        "H100 2g.20gb",
        "A100 whole card",
    )
    plans = [
        # A gang that fills most of a node, as they do: what Kestrel waits for.
        Plan(
            project,
            actor,
            "H200 whole card",
            f"{seed}-pretrain",
            (now - timedelta(hours=70)).replace(microsecond=0),
            120 * 3600,
            quantity=gang,
            same_node=True,
        )
    ]
    for number in range(live):
        label = shapes[int(chance.uniform(0, len(shapes)))]
        start = now - timedelta(seconds=int(chance.uniform(600, 60 * 3600)))
        seconds = int((now - start).total_seconds() + chance.uniform(1800, 90 * 3600))
        spot = PriceClass.SPOT if chance.uniform(0, 4) < 1 else PriceClass.ON_DEMAND
        plans.append(
            Plan(
                project,
                actor,
                label,
                f"{seed}-{number + 1}",
                start.replace(microsecond=0),
                seconds,
                price_class=spot,
            )
        )
    return plans
