"""A price preview states one difference: rows add up to the headline."""

from typing import Any, cast

from billing.domain.money import EXACT_PER_UNIT
from billing.domain.periods import Period
from billing.services.reports.price_impact import PricePreview, TenantPriceEffect
from tests.billing.histories import utc

MONTH = Period(utc("2026-10-01 00:00:00"), utc("2026-11-01 00:00:00"))


def euros(text: str) -> int:
    whole, _, parts = text.partition(".")
    return int(whole + parts.ljust(6, "0")) * EXACT_PER_UNIT // 10**6


def preview(*effects: tuple[str, str]) -> PricePreview:
    rows = tuple(
        TenantPriceEffect(f"ten_{n}", f"Tenant {n}", 1, 3600, euros(was), euros(would_be))
        for n, (was, would_be) in enumerate(effects)
    )
    return PricePreview(cast(Any, None), "EUR", 10**9, MONTH, rows)


def test_the_difference_of_the_only_tenant_is_that_of_the_headline() -> None:
    shown = preview(("0.006", "22.924"))
    (row,) = shown.effects
    assert (shown.was_minor, shown.would_be_minor) == (1, 2292)
    assert shown.difference_of(row) == shown.difference_minor == 2291


def test_totals_are_the_sums_of_the_rows() -> None:
    shown = preview(("0.004", "1.004"), ("0.004", "1.004"), ("0.004", "1.004"))
    assert shown.was_minor == 0
    assert shown.would_be_minor == 300
    assert sum(map(shown.difference_of, shown.effects)) == shown.difference_minor
