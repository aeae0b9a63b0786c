"""What another price would have come to: last month's real use, charged once more at it. Nothing is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from django.db import connection

from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import Period, month_of
from billing.domain.pricing import cost
from billing.domain.tiers import Tiered
from billing.services import prices
from billing.services.statements import statement
from broker.models import Offering


@dataclass(frozen=True, slots=True)
class Effect:
    """One tenant's use of an offering in a month: what it was charged, and what it would have been; exact."""

    tenant: str
    name: str
    leases: int
    unit_seconds: int
    was: int  # over 3600·10⁹
    would_be: int
    kept: int = (
        0  # of both, for no price on the list changes it: what quotes had fixed, and prices of its own
    )


@dataclass(frozen=True, slots=True)
class Preview:
    """A price against last month, the tenants it changes most for first."""

    offering: Offering
    currency: str
    nano_per_hour: int
    month: Period
    effects: tuple[Effect, ...]

    @property
    def was_minor(self) -> int:
        return self.minor(sum(effect.was for effect in self.effects))

    @property
    def would_be_minor(self) -> int:
        return self.minor(sum(effect.would_be for effect in self.effects))

    @property
    def kept_minor(self) -> int:
        return self.minor(sum(effect.kept for effect in self.effects))

    @property
    def unit_seconds(self) -> int:
        return sum(effect.unit_seconds for effect in self.effects)

    def minor(self, exact: int) -> int:
        """Round an exact amount to minor units of its currency."""
        return to_minor(exact, exponent_of(self.currency))


def preview(
    offering: Offering,
    *,
    currency: str,
    nano_per_hour: int,
    now: datetime,
    tenant: str | None = None,
    tiers: Mapping[str, Any] | None = None,
) -> Preview:
    """Charge the last whole month (UTC) of an offering at another price, or raise Invalid. Must run as staff.

    It is the list's price, or one `tenant`'s own. `tiers` are as tiers.read gives them; what each tenant used that the
    price is of counts for them. What is tried is compared with what was charged by the hour, before any tiers.
    """
    prices.check(currency, nano_per_hour)
    this = month_of("UTC", now.astimezone(UTC))
    month = month_of("UTC", this.start - timedelta(days=1))
    asked: dict[str, Any] = {
        "offering": offering.pk,
        "currency": currency,
        "first": month.start,
        "last": month.end,
        "tenant": tenant,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("preview"), asked)
        rows = cursor.fetchall()
    tiered = _tiered(nano_per_hour, tiers)
    effects = [
        _effect(list(group), nano_per_hour, tiered) for _, group in groupby(rows, key=lambda row: str(row[0]))
    ]
    effects.sort(key=lambda effect: (-abs(effect.would_be - effect.was), effect.tenant))
    return Preview(offering, currency, nano_per_hour, month, tuple(effects))


def _tiered(nano_per_hour: int, tiers: Mapping[str, Any] | None) -> Tiered | None:
    if not tiers:
        return None
    return Tiered(tiers["model"], nano_per_hour, tuple(tiers["tier_from_s"]), tuple(tiers["tier_nano"]))


def _effect(rows: list[Any], nano_per_hour: int, tiered: Tiered | None) -> Effect:
    was = sum(int(exact) for *_, exact in rows)
    kept = sum(int(exact) for _, _, promised, *_, exact in rows if promised)
    changes = sum(seconds for _, _, promised, _, seconds, _ in rows if not promised)
    return Effect(
        tenant=rows[0][0],
        name=rows[0][1],
        leases=sum(row[3] for row in rows),
        unit_seconds=sum(row[4] for row in rows),
        was=was,
        would_be=kept
        + cost(changes, quantity=1, nano_per_hour=nano_per_hour)
        - (tiered.less(0, changes, total=changes) if tiered else 0),
        kept=kept,
    )
