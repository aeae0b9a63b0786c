"""Conservation check: every GPU second and every cent is accounted for exactly once.

GPU seconds are counted in memory slices. Held time comes from allocations and transitions; free
time comes from the GPU's state between two changes. Neither is derived from the other, so a slot
that two leases held at once, or a second that nothing explains, shows up as a difference.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from django.db import connection

from billing.domain.money import EXACT_PER_UNIT, EXPONENTS, format_fixed_point, half_up
from billing.models import PriceVersion
from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.gpu_state import GpuState
from broker.domain.geometry.profiles import Profile
from broker.domain.geometry.slice_packing import fragmented_units
from broker.domain.lifecycle.states import Isolation
from broker.models import Offering, OfferingState
from broker.services.inventory.gpu_catalogue import gpu_model_spec, profile_of
from ports.postgres.sql_statements import load_sql
from tenants.services.rls import system_scope

KINDS = ("sold", "idle", "fragmented", "reserved", "unhealthy")
HOUR = 3600


@dataclass(slots=True)
class SliceSeconds:
    """Slice-seconds of one GPU model by kind of use; `grid` slices are one GPU."""

    grid: int
    total: int = 0
    sold: int = 0
    idle: int = 0
    fragmented: int = 0
    reserved: int = 0
    unhealthy: int = 0  # free, on a GPU or node that was out of service

    @property
    def unexplained(self) -> int:
        return self.total - sum(int(getattr(self, kind)) for kind in KINDS)


@dataclass(frozen=True, slots=True)
class ConservationReport:
    """Result of a check over a time span.

    Everything from `charged_minus_active` on must be zero.
    """

    models: dict[str, SliceSeconds] = field(default_factory=dict)
    active_unit_seconds: int = 0
    charged_minus_active: int = 0
    active_without_place: int = 0
    lines_minus_charges: int = 0  # exact, over 3600·10⁹
    misrounded_lines: int = 0
    wrong_totals: int = 0
    stored_minus_charged: int = 0  # GiB-seconds of volumes

    def gpus(self, kind: str) -> Fraction:
        """Return the GPU-seconds of a kind, over all models with a GPU."""
        return sum(
            (_seconds(parts, kind) for model, parts in self.models.items() if model != CPU_MODEL_NAME), Fraction()
        )

    @property
    def unexplained(self) -> Fraction:
        """Return the seconds of GPUs and CPU blocks that nothing explains."""
        return sum((_seconds(parts, "unexplained") for parts in self.models.values()), Fraction())

    def as_report(self) -> dict[str, Any]:
        """Return the figures as plain values: GPU-seconds as decimal strings, differences as integers."""
        return {
            "conservation": {kind: _format_decimal(self.gpus(kind)) for kind in KINDS},
            "total_gpu_seconds": int(self.gpus("total")),
            "unexplained_gpu_seconds": _format_whole(self.unexplained),
            "gpu_hours": _format_decimal(self.gpus("sold") / HOUR),
            "charged_minus_active_seconds": self.charged_minus_active,
            "active_seconds_without_place": self.active_without_place,
            "lines_minus_charges": self.lines_minus_charges,
            "misrounded_lines": self.misrounded_lines,
            "wrong_invoice_totals": self.wrong_totals,
            "stored_minus_charged_seconds": self.stored_minus_charged,
        }


def check_conservation(*, first: datetime, last: datetime) -> ConservationReport:
    """Check the whole fleet between two moments, and all charges and invoices."""
    span = {"first": first.replace(microsecond=0), "last": last.replace(microsecond=0)}
    models: dict[str, SliceSeconds] = {}
    with system_scope():
        offered = _offered_profiles()
        for model, held, out, seconds in _query_rows("billing/reports/gpu_seconds", span):
            parts = models.setdefault(model, SliceSeconds(gpu_model_spec(model).grid))
            parts.total += parts.grid * seconds
            free, fragmented = _free_slices(model, held, offered[model])
            if out:
                parts.unhealthy += free * seconds
            else:
                parts.fragmented += fragmented * seconds
                parts.idle += (free - fragmented) * seconds
        for model, sold, reserved in _query_rows("billing/reports/held_slice_seconds", span):
            models[model].sold, models[model].reserved = sold, reserved
        charged, unplaced, active = _query_rows("billing/reports/charged_and_active_seconds", {})[0]
        lines, misrounded, totals = _query_rows("billing/reports/lines_and_charges", _currency_scales())[0]
        since = PriceVersion.objects.storage_sold_since()
        stored = _query_rows("billing/reports/storage_seconds", {"sold_since": since})[0][0] if since else 0
    return ConservationReport(models, active, charged, unplaced, int(lines), misrounded, totals, stored)


def _seconds(parts: SliceSeconds, kind: str) -> Fraction:
    return Fraction(getattr(parts, kind), parts.grid)


def _free_slices(model: str, held: Iterable[str], offered: tuple[Profile, ...]) -> tuple[int, int]:
    """Return a GPU's free slices, and how many of them fit no sold profile."""
    spec, mask, media, isolation = gpu_model_spec(model), 0, False, None
    for what in held:
        kind, name, start = what.split()
        isolation = Isolation(kind)
        profile = spec.profile(name, isolation)
        mask |= profile.placed_at(int(start)).mask
        media = media or profile.media
    state = GpuState(mask=mask, media=media, isolation=isolation)
    free = spec.grid - mask.bit_count()
    # A model that is not sold is idle, not fragmented.
    return free, fragmented_units(state, offered, grid=spec.grid) if offered else 0


def _offered_profiles() -> dict[str, tuple[Profile, ...]]:
    """Return the profiles sold of each model, in any region and price class."""
    shapes: defaultdict[str, dict[tuple[str, str], Profile]] = defaultdict(dict)
    for offering in Offering.objects.exclude(state__in=(OfferingState.DRAFT, OfferingState.METERED)):
        shapes[offering.model].setdefault((offering.isolation, offering.profile), profile_of(offering))
    found = {model: tuple(by_name[name] for name in sorted(by_name)) for model, by_name in shapes.items()}
    return defaultdict(tuple, found)


def _currency_scales() -> dict[str, Any]:
    return {
        "currencies": list(EXPONENTS),
        "scales": [10**exponent for exponent in EXPONENTS.values()],
        "per_unit": EXACT_PER_UNIT,
    }


def _query_rows(name: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(load_sql(name), values)
        return list(cursor.fetchall())


def _format_decimal(amount: Fraction) -> str:
    """Format an amount with three decimals, rounding half up."""
    return format_fixed_point(half_up(1000 * amount.numerator, amount.denominator), 3)


def _format_whole(amount: Fraction) -> int | str:
    return amount.numerator if amount.denominator == 1 else _format_decimal(amount)
