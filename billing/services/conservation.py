"""Nothing is lost and nothing is sold twice: every second of every card, and every cent, is accounted for.

Seconds of a card are counted in its memory slices. What was held comes from allocations and transitions; what was
free comes from what lay on each card between two changes. Neither is the rest of the other, so that a place which
two leases held at once, or a second that nobody can explain, shows as a difference.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from django.db import connection

from billing.domain.money import EXACT_PER_UNIT, EXPONENTS, fixed_point, half_up
from billing.services.statements import statement
from billing.services.storage.sale import sold_since
from broker.domain.geometry import CardState
from broker.domain.packing import fragmented_units
from broker.domain.profiles import Profile
from broker.domain.states import Isolation
from broker.models import Offering, OfferingState
from broker.services.catalogue import profile_of, spec_of
from tenants.services.walls import as_sweep

KINDS = ("sold", "idle", "fragmented", "reserved", "unhealthy")
HOUR = 3600


@dataclass(slots=True)
class Parts:
    """The slice-seconds of one model's cards; `grid` slices are one card."""

    grid: int
    total: int = 0
    sold: int = 0
    idle: int = 0
    fragmented: int = 0
    reserved: int = 0
    unhealthy: int = 0  # free, on a card or node that was out of service

    @property
    def unexplained(self) -> int:
        return self.total - sum(int(getattr(self, kind)) for kind in KINDS)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a span comes to. Everything from `charged_minus_active` on must be nought."""

    models: dict[str, Parts] = field(default_factory=dict)
    active_unit_seconds: int = 0
    charged_minus_active: int = 0
    active_without_place: int = 0
    lines_minus_charges: int = 0  # exact, over 3600·10⁹
    misrounded_lines: int = 0
    wrong_totals: int = 0
    stored_minus_charged: int = 0  # GiB-seconds of volumes

    def cards(self, kind: str) -> Fraction:
        """Return the card-seconds of a kind, over all models."""
        return sum((Fraction(getattr(parts, kind), parts.grid) for parts in self.models.values()), Fraction())

    def as_report(self) -> dict[str, Any]:
        """Return the figures as plain values: card-seconds as decimal strings, differences as integers."""
        return {
            "conservation": {kind: _decimal(self.cards(kind)) for kind in KINDS},
            "total_gpu_seconds": int(self.cards("total")),
            "unexplained_gpu_seconds": _whole(self.cards("unexplained")),
            "gpu_hours": _decimal(self.cards("sold") / HOUR),
            "charged_minus_active_seconds": self.charged_minus_active,
            "active_seconds_without_place": self.active_without_place,
            "lines_minus_charges": self.lines_minus_charges,
            "misrounded_lines": self.misrounded_lines,
            "wrong_invoice_totals": self.wrong_totals,
            "stored_minus_charged_seconds": self.stored_minus_charged,
        }


def over(*, first: datetime, last: datetime) -> Kept:
    """Account for the whole fleet from `first` until `last`, and for all charges and invoices there are."""
    span = {"first": first.replace(microsecond=0), "last": last.replace(microsecond=0)}
    models: dict[str, Parts] = {}
    with as_sweep():
        offered = _offered()
        for model, held, out, seconds in _rows("conserve_cards", span):
            parts = models.setdefault(model, Parts(spec_of(model).grid))
            parts.total += parts.grid * seconds
            free, fragmented = _free(model, held, offered[model])
            if out:
                parts.unhealthy += free * seconds
            else:
                parts.fragmented += fragmented * seconds
                parts.idle += (free - fragmented) * seconds
        for model, sold, reserved in _rows("conserve_held", span):
            models[model].sold, models[model].reserved = sold, reserved
        charged, unplaced, active = _rows("conserve_charges", {})[0]
        lines, misrounded, totals = _rows("conserve_lines", _scales())[0]
        since = sold_since()
        stored = _rows("conserve_storage", {"sold_since": since})[0][0] if since else 0
    return Kept(models, active, charged, unplaced, int(lines), misrounded, totals, stored)


def _free(model: str, held: Iterable[str], offered: tuple[Profile, ...]) -> tuple[int, int]:
    """Return the free slices of a card and how many of them nothing on offer fits into."""
    spec, mask, media, isolation = spec_of(model), 0, False, None
    for what in held:
        kind, name, start = what.split()
        isolation = Isolation(kind)
        profile = spec.profile(name, isolation)
        mask |= profile.placed_at(int(start)).mask
        media = media or profile.media
    state = CardState(mask=mask, media=media, isolation=isolation)
    free = spec.grid - mask.bit_count()
    # A model that nobody sells is idle, not badly cut.
    return free, fragmented_units(state, offered, grid=spec.grid) if offered else 0


def _offered() -> dict[str, tuple[Profile, ...]]:
    """Return what is sold of each model, in whatever region and on whatever terms."""
    shapes: defaultdict[str, dict[tuple[str, str], Profile]] = defaultdict(dict)
    for offering in Offering.objects.exclude(state__in=(OfferingState.DRAFT, OfferingState.METERED)):
        shapes[offering.model].setdefault((offering.isolation, offering.profile), profile_of(offering))
    found = {model: tuple(by_name[name] for name in sorted(by_name)) for model, by_name in shapes.items()}
    return defaultdict(tuple, found)


def _scales() -> dict[str, Any]:
    return {
        "currencies": list(EXPONENTS),
        "scales": [10**exponent for exponent in EXPONENTS.values()],
        "per_unit": EXACT_PER_UNIT,
    }


def _rows(name: str, asked: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(statement(name), asked)
        return list(cursor.fetchall())


def _decimal(amount: Fraction) -> str:
    """Write an amount with three decimals, halves up; sixths of a second have no end."""
    return fixed_point(half_up(1000 * amount.numerator, amount.denominator), 3)


def _whole(amount: Fraction) -> int | str:
    return amount.numerator if amount.denominator == 1 else _decimal(amount)
