"""Slow oracle: what a tenant owes, second by second.

Every second of usage is priced on its own: its month in the tenant's time zone, and the price valid at that second.
No boundary is computed and no interval is split.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

from billing.models import PriceVersion, Quote
from broker.models import Transition

NANO_HOURS = 3600 * 10**9
FOR_EVER = 2**40


@dataclass
class Charge:
    """Seconds within one month and at one price."""

    first: int
    after: int
    nano_per_hour: int
    unit_seconds: int = 0
    given_back: bool = False

    @property
    def amount(self) -> Fraction:
        return Fraction(self.unit_seconds * self.nano_per_hour, NANO_HOURS)


@dataclass
class Line:
    """A project's amount for an offering at one price in a month."""

    nano_per_hour: int
    leases: set[str] = field(default_factory=set)
    unit_seconds: int = 0

    @property
    def amount(self) -> Fraction:
        return Fraction(self.unit_seconds * self.nano_per_hour, NANO_HOURS)

    @property
    def minor(self) -> int:
        cents, rest = divmod(self.amount * 100, 1)
        return int(cents) + (rest >= Fraction(1, 2))


ChargeKey = tuple[str, int, int, str, int]  # lease, seq, price version, month, first second
# Since, until, price version, nano per hour, the tenant's own, and how long a start that is taken back is free.
Offered = tuple[int, int, int, int, bool, int]
LineKey = tuple[str, str, str, int]  # month, project, offering, price version


@dataclass
class Owed:
    """Everything a tenant owes, and how many seconds were looked at."""

    charges: dict[ChargeKey, Charge] = field(default_factory=dict)
    lines: dict[LineKey, Line] = field(default_factory=dict)
    checked_at: int = 0


def owed(steps: Iterable[Transition], prices: Iterable[PriceVersion], zone: str, quotes: Mapping[str, Quote]) -> Owed:
    """Walk through every second of a tenant's transitions."""
    there, found = ZoneInfo(zone), Owed()
    offered = defaultdict[str, list[Offered]](list)
    for price in prices:
        until = _epoch(price.valid.upper) if price.valid.upper else FOR_EVER
        own = price.tenant_id is not None
        offered[price.offering_id].append(
            (_epoch(price.valid.lower), until, price.pk, price.nano_per_hour, own, price.free_start_s)
        )
    lives = defaultdict[str, dict[int, Transition]](dict)
    for step in steps:
        lives[step.lease_id][step.seq] = step
    for lease, life in lives.items():
        for seq, begun in life.items():
            if begun.after == "active" and seq + 1 in life:
                known, quote, most = offered[begun.offering_id], quotes.get(lease), None
                if quote and quote.offering_id == begun.offering_id:
                    free = quote.price_version.free_start_s
                    most = 0, FOR_EVER, quote.price_version_id, quote.nano_per_hour, False, free
                _walk(found, lease, begun, _epoch(life[seq + 1].at), known, most, there, _ran(life, seq))
    return found


def _walk(
    found: Owed,
    lease: str,
    begun: Transition,
    end: int,
    offered: list[Offered],
    most: Offered | None,  # what a quote promises
    there: ZoneInfo,
    ran: int,
) -> None:
    running: tuple[Offered | None, str] | None = None
    for second in range(_epoch(begun.at), end):
        found.checked_at += 1
        on_the_wall = datetime.fromtimestamp(second, there)
        month = f"{on_the_wall.year}-{on_the_wall.month:02d}"
        valid = [each for each in offered if each[0] <= second < each[1]]
        in_force = next(iter([each for each in valid if each[4]] or valid), None)
        priced = min(filter(None, (in_force, most)), key=lambda each: each[3])
        _, _, version, nano, _, free = priced
        if running != (in_force, month):
            running, first = (in_force, month), second
        key = lease, begun.seq, version, month, first
        charge = found.charges.setdefault(key, Charge(second, second, nano))
        line = found.lines.setdefault((month, begun.project_id, begun.offering_id, version), Line(nano))
        charge.unit_seconds += begun.quantity
        charge.after = second + 1
        line.leases.add(lease)
        if ran < free:
            charge.given_back = True
        else:
            line.unit_seconds += begun.quantity


def _ran(life: dict[int, Transition], seq: int) -> int:
    """Return how long a lease ran until it was reclaimed."""
    first = last = seq
    while first - 1 in life and life[first - 1].after == "active":
        first -= 1
    while last in life and life[last].after == "active":
        last += 1
    taken = last in life and life[last].reason == "preempted"
    return _epoch(life[last].at) - _epoch(life[first].at) if taken else FOR_EVER


def _epoch(at: datetime) -> int:
    return int(at.astimezone(UTC).timestamp())
