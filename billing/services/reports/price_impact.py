"""Price preview: last month's usage at another price. Nothing is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import Period, month_of
from billing.domain.price_tiers import TieredPrice
from billing.domain.pricing import usage_cost
from billing.services.catalogue import price_list
from broker.models import Offering
from ports.postgres.sql_statements import query_rows


@dataclass(frozen=True, slots=True)
class TenantPriceEffect:
    """A tenant's use of an offering in a month, at both prices; exact amounts."""

    tenant: str
    name: str
    leases: int
    unit_seconds: int
    was: int  # over 3600·10⁹
    would_be: int
    kept: int = 0  # part of both that a list price does not change: quotes and tenant-specific prices


@dataclass(frozen=True, slots=True)
class PricePreview:
    """Effect of a price on last month, the most affected tenants first.

    Amounts are rounded once per tenant, so that totals are the sums of the rows.
    """

    offering: Offering
    currency: str
    nano_per_hour: int
    month: Period
    effects: tuple[TenantPriceEffect, ...]

    @property
    def was_minor(self) -> int:
        return sum(self.minor(effect.was) for effect in self.effects)

    @property
    def would_be_minor(self) -> int:
        return sum(self.minor(effect.would_be) for effect in self.effects)

    @property
    def kept_minor(self) -> int:
        return sum(self.minor(effect.kept) for effect in self.effects)

    @property
    def difference_minor(self) -> int:
        """Return the difference between the two amounts as they are written."""
        return self.would_be_minor - self.was_minor

    def difference_of(self, effect: TenantPriceEffect) -> int:
        """Return the same of one tenant; those of all tenants add up to it."""
        return self.minor(effect.would_be) - self.minor(effect.was)

    @property
    def unit_seconds(self) -> int:
        return sum(effect.unit_seconds for effect in self.effects)

    def minor(self, exact: int) -> int:
        """Round an exact amount to minor units of its currency."""
        return to_minor(exact, exponent_of(self.currency))


def preview_price(
    offering: Offering,
    *,
    currency: str,
    nano_per_hour: int,
    now: datetime,
    tenant: str | None = None,
    tiers: Mapping[str, Any] | None = None,
) -> PricePreview:
    """Charge an offering's last whole month (UTC) at another price, or raise InvalidValue.

    Requires staff scope. It is a list price, or one `tenant`'s own. `tiers` are as parse_tiers returns
    them; they count each tenant's usage at the price. The result is compared with the hourly charges,
    before any tiers.
    """
    price_list.check_price(currency, nano_per_hour)
    this = month_of("UTC", now.astimezone(UTC))
    month = month_of("UTC", this.start - timedelta(days=1))
    span = {"first": month.start, "last": month.end}
    values = {"offering": offering.pk, "currency": currency, "tenant": tenant, "nano": nano_per_hour, **span}
    rows = query_rows("billing/reports/price_impact", **values)
    tiered = _tiered_price(nano_per_hour, tiers)
    effects = [
        _tenant_effect(list(group), nano_per_hour, tiered) for _, group in groupby(rows, key=lambda row: str(row[0]))
    ]
    effects.sort(key=lambda effect: (-abs(effect.would_be - effect.was), effect.tenant))
    return PricePreview(offering, currency, nano_per_hour, month, tuple(effects))


def _tiered_price(nano_per_hour: int, tiers: Mapping[str, Any] | None) -> TieredPrice | None:
    if not tiers:
        return None
    return TieredPrice(tiers["model"], nano_per_hour, tuple(tiers["tier_from_s"]), tuple(tiers["tier_nano"]))


def _tenant_effect(rows: list[Any], nano_per_hour: int, tiered: TieredPrice | None) -> TenantPriceEffect:
    was = sum(int(exact) for *_, exact in rows)
    kept = sum(int(exact) for _, _, promised, *_, exact in rows if promised)
    changes = sum(seconds for _, _, promised, _, seconds, _ in rows if not promised)
    return TenantPriceEffect(
        tenant=rows[0][0],
        name=rows[0][1],
        leases=sum(row[3] for row in rows),
        unit_seconds=sum(row[4] for row in rows),
        was=was,
        would_be=kept
        + usage_cost(changes, quantity=1, nano_per_hour=nano_per_hour)
        - (tiered.savings(0, changes, total=changes) if tiered else 0),
        kept=kept,
    )
