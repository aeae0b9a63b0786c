"""Random tenants with leases at month ends, clock changes and price changes."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import PriceVersion, Quote, RateCard
from broker.models import Lease, Offering, Transition
from tenants.models import Project, Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import LONG_AGO, S, build_quote, create_priced_offering, set_price

# Clocks that change by half an hour, at midnight, or every Ramadan, and such as never change but are off the hour.
ZONES = (
    "Asia/Kolkata",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Europe/Berlin",
    "UTC",
)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
MIDDLES = (S.ACTIVE, S.ACTIVE, S.ACTIVE, S.QUEUED, S.PROVISIONING, S.STOPPING, S.STOPPED, S.FAILED)
# Gaps between transitions, in seconds: most are short, for the oracle walks through every second of them.
GAPS = (0, 1, 2, 7, 59, 60, 61, 300, 900)
LONG_GAP = 5 * 3600
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Market:
    """What is sold, and what it costs when."""

    offerings: list[Offering]
    changes: list[datetime]  # of prices

    @property
    def prices(self) -> list[PriceVersion]:
        return list(PriceVersion.objects.filter(offering__in=self.offerings).order_by("pk"))


def create_market(chance: random.Random, since: datetime, until: datetime, *, offerings: int, changes: int) -> Market:
    """Create some offerings, each with prices that change at its own times."""
    sells, moments = [], set[datetime]()
    for number in range(offerings):
        offering = create_priced_offering(
            chance.choice([0, 1, 10**9, 1_340_000_000, 3_599_999_999_999]) + chance.randrange(10**9),
            price_class="spot" if number % 2 else "on_demand",
        )
        cuts = sorted({moment(chance, since, until) for _ in range(changes)})
        for cut in cuts:
            set_price(offering, chance.randrange(10**11), since=cut)
        sells.append(offering)
        moments.update(cuts)
    return Market(sells, sorted(moments))


def moment(chance: random.Random, since: datetime, until: datetime) -> datetime:
    return since + SECOND * chance.randrange((until - since) // SECOND)


@cache
def critical_hours(zone: str, since: datetime, until: datetime) -> tuple[datetime, ...]:
    """Return the hours in which a month starts or clocks change in a time zone."""
    there, found, at = ZoneInfo(zone), [], since
    while at < until:
        now, then = at.astimezone(there), (at + HOUR).astimezone(there)
        if now.utcoffset() != then.utcoffset() or now.month != then.month:
            found.append(at + HOUR)
        at += HOUR
    return tuple(found)


@dataclass
class RandomTenant:
    """One tenant and what was written of it."""

    tenant: Tenant
    projects: list[Project]
    leases: list[Lease] = field(default_factory=list)
    steps: list[Transition] = field(default_factory=list)
    quotes: dict[str, Quote] = field(default_factory=dict)  # by the lease that cites it
    own: list[PriceVersion] = field(default_factory=list)  # prices of this tenant alone


def add_tenant_prices(chance: random.Random, story: RandomTenant, sells: Market, *, cuts: int) -> None:
    """Give a tenant prices of its own for some offerings, with gaps."""
    tenant = story.tenant
    with tenant_scope(tenant.pk):
        card = RateCard.objects.create(name="own", tenant_id=tenant.pk)
        for offering in sells.offerings[::2]:
            moments = sorted({chance.choice(sells.changes) + SECOND * chance.randrange(-900, 900) for _ in range(cuts)})
            for since, until in pairwise(moments):
                if chance.random() < 0.6:
                    story.own.append(_own(chance, card, offering, since, until))


def _own(chance: random.Random, card: RateCard, offering: Offering, since: datetime, until: datetime) -> PriceVersion:
    return PriceVersion.objects.create(
        tenant_id=card.tenant_id,
        rate_card=card,
        offering=offering,
        currency="EUR",
        valid=DateTimeTZRange(since, until),
        nano_per_hour=chance.randrange(10**11),
        created_at=LONG_AGO,
    )


def add_random_leases(
    chance: random.Random, story: RandomTenant, sells: Market, since: datetime, until: datetime, *, leases: int
) -> None:
    """Create random leases of a tenant between two times."""
    turns = (
        *critical_hours(story.tenant.time_zone, since, until),
        *(at for at in sells.changes if since <= at < until),
        *(border for version in story.own for border in (version.valid.lower, version.valid.upper)),
    )
    rows, steps, quotes, prices = list[Lease](), list[Transition](), list[Quote](), sells.prices
    for _ in range(leases):
        if turns and chance.random() < 0.7:
            start = chance.choice(turns) + SECOND * chance.randrange(-120, 60)
        else:
            start = moment(chance, since, until)
        made = list(random_lease(chance, story, sells, max(start, since)))
        rows.append(made[0])
        steps += made[1]
        if chance.random() < 0.3:
            quotes.append(quoted(chance, made[0], made[1][0], prices))
    with tenant_scope(story.tenant.pk):
        Lease.objects.bulk_create(rows)
        Transition.objects.bulk_create(steps)
        Quote.objects.bulk_create(quotes)
    story.quotes |= {quote.lease_id: quote for quote in quotes}
    story.leases += rows
    story.steps += steps


def quoted(chance: random.Random, lease: Lease, wanted: Transition, prices: list[PriceVersion]) -> Quote:
    """Quote a lease an earlier price, which may have ended."""
    known = [p for p in prices if p.offering_id == wanted.offering_id and p.valid.lower <= wanted.at]
    quote = build_quote(lease, chance.choice(known), quantity=wanted.quantity)
    lease.quote_id = quote.pk
    return quote


def random_lease(chance: random.Random, story: RandomTenant, sells: Market, start: datetime) -> Iterator[Any]:
    """Yield a lease and its transitions with changing offering and quantity."""
    project, at = chance.choice(story.projects), start
    states = [S.REQUESTED, *(chance.choice(MIDDLES) for _ in range(chance.randrange(1, 6))), S.RELEASED]
    lease, steps = Lease(id=f"lse_{next(_numbers):026d}"), list[Transition]()
    terms = chance.choice(sells.offerings), chance.randrange(1, 4)
    for seq, state in enumerate(states):
        if chance.random() < 0.2:
            terms = chance.choice(sells.offerings), chance.randrange(1, 4)
        steps.append(
            Transition(
                lease_id=lease.pk,
                seq=seq,
                tenant_id=story.tenant.pk,
                at=at,
                prev_seq=seq - 1 if seq else None,
                prev_at=steps[-1].at if seq else None,
                before=states[seq - 1] if seq else "",
                after=state,
                reason="preempted" if state != S.ACTIVE and chance.random() < 0.5 else "none",
                offering_id=terms[0].pk,
                project_id=project.pk,
                quantity=terms[1],
                price_class=terms[0].price_class,
                generation=1,
                actor_kind="system",
            )
        )
        at += SECOND * (chance.randrange(LONG_GAP) if chance.random() < 0.03 else chance.choice(GAPS))
    for name, value in _row(story, project, steps).items():
        setattr(lease, name, value)
    yield lease
    yield steps


def _row(story: RandomTenant, project: Project, steps: list[Transition]) -> dict[str, Any]:
    return {
        "tenant_id": story.tenant.pk,
        "project_id": project.pk,
        "offering_id": steps[-1].offering_id,
        "name": "by chance",
        "quantity": steps[-1].quantity,
        "state": steps[-1].after,
        "seq": steps[-1].seq,
        "state_since": steps[-1].at,
        "created_at": steps[0].at,
        "max_duration_s": 3600,
    }


def create_random_tenant(zone: str, *, projects: int = 2) -> RandomTenant:
    """Insert a tenant with some projects directly."""
    number = next(_numbers)
    made = Tenant(pk=f"ten_{number:026d}", name=f"Story {number}", time_zone=zone, created_at=LONG_AGO)
    nodes = [
        Project(pk=f"prj_{number:020d}{n:06d}", tenant=made, name=f"p{n}", created_at=LONG_AGO) for n in range(projects)
    ]
    for node in nodes:
        node.path = [nodes[0].pk] if node is nodes[0] else [nodes[0].pk, node.pk]
        node.parent = None if node is nodes[0] else nodes[0]
    with tenant_scope(made.pk):
        made.save(force_insert=True)
        for node in nodes:
            node.save(force_insert=True)
    return RandomTenant(made, nodes)


def month_start(year: int, month: int) -> datetime:
    return datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=UTC)
