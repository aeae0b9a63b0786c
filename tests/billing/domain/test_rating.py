"""Charges of leases against a second-by-second calculation."""

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.periods import Period
from billing.domain.rating import (
    RatedPrice,
    RatedTransition,
    RatingResult,
    ReferenceCharge,
    UnratedUsage,
    billable_intervals,
    rate_usage,
)
from broker.domain.lifecycle.states import LeaseState, PriceClass
from tests.billing.domain.time_zones import RARE
from tests.billing.domain.zone_months import months_between

ZERO = datetime(2026, 10, 31, 22, 59, 0, tzinfo=UTC)  # a minute before November in Berlin
DEMAND, SPOT = PriceClass.ON_DEMAND, PriceClass.SPOT
A, R = LeaseState.ACTIVE, LeaseState.RELEASED


def at(second: int) -> datetime:
    return ZERO + timedelta(seconds=second)


def step(seq: int, second: int, after: LeaseState = A, **terms: object) -> RatedTransition:
    plain = RatedTransition("lse_1", seq, at(second), after, "off_a", 1, DEMAND)
    return replace(plain, **terms)  # type: ignore[arg-type]


def price(version: str, start: int, end: int | None, nano: int, **terms: object) -> RatedPrice:
    until = None if end is None else at(end)
    return replace(RatedPrice(version, "off_a", DEMAND, at(start), until, nano), **terms)  # type: ignore[arg-type]


def periods(*borders: int) -> dict[str, Period]:
    return {f"from {start}": Period(at(start), at(end)) for start, end in pairwise(borders)}


@st.composite
def lease_transitions(draw: st.DrawFn) -> list[RatedTransition]:
    steps = []
    for lease in range(draw(st.integers(min_value=1, max_value=3))):
        seconds = sorted(draw(st.lists(st.integers(0, 120), min_size=2, max_size=6)))
        for seq, second in enumerate(seconds):
            terms = draw(st.tuples(st.sampled_from("ab"), st.integers(1, 4), st.sampled_from([DEMAND, SPOT])))
            after = draw(st.sampled_from([A, A, LeaseState.STOPPED, LeaseState.PROVISIONING]))
            offering, quantity, price_class = terms
            steps.append(RatedTransition(f"lse_{lease}", seq, at(second), after, offering, quantity, price_class))
    return steps


@st.composite
def catalogues(draw: st.DrawFn) -> list[RatedPrice]:
    prices = []
    for offering in "ab":
        for price_class in (DEMAND, SPOT):
            cuts = draw(st.lists(st.integers(1, 119), max_size=3, unique=True))
            borders = [-1, *sorted(cuts), None]
            for start, end in pairwise(borders):
                version = f"{offering}-{price_class}-{start}"
                nano = draw(st.integers(0, 10**12))
                until = None if end is None else at(end)
                prices.append(RatedPrice(version, offering, price_class, at(start or 0), until, nano))
    return prices


borders = st.lists(st.integers(1, 119), max_size=3, unique=True).map(lambda cut: [-1, *sorted(cut), 121])


def second_by_second_costs(
    steps: list[RatedTransition], prices: list[RatedPrice], months: dict[str, Period]
) -> dict[object, int]:
    """Return the cost of every second, computed one second at a time."""
    totals: defaultdict[object, int] = defaultdict(int)
    for opened, closed in pairwise(steps):
        if opened.lease != closed.lease or opened.after is not A:
            continue
        for tick in range((closed.at - opened.at) // timedelta(seconds=1)):
            now = opened.at + timedelta(seconds=tick)
            for p in prices:
                terms = (p.offering, p.price_class) == (opened.offering, opened.price_class)
                if terms and p.start <= now and (p.end is None or now < p.end):
                    for name, month in months.items():
                        if now in month:
                            key = opened.lease, opened.seq, p.version, name
                            totals[key] += opened.quantity * p.nano_per_hour
    return {key: total for key, total in totals.items() if total}


def amounts_by_key(rated: RatingResult) -> dict[object, int]:
    return {(c.lease, c.seq, c.version, c.period): c.exact_num for c in rated.charges if c.exact_num}


@settings(max_examples=20)
@given(lease_transitions(), catalogues(), borders)
def test_charges_equal_a_second_by_second_calculation(
    steps: list[RatedTransition], prices: list[RatedPrice], cuts: list[int]
) -> None:
    rated = rate_usage(steps, prices, periods(*cuts))
    assert amounts_by_key(rated) == second_by_second_costs(steps, prices, periods(*cuts))
    assert len(rated.charges) == len({(c.lease, c.seq, c.version, c.period) for c in rated.charges})


@settings(max_examples=20)
@given(lease_transitions(), catalogues(), borders)
def test_every_active_unit_second_is_charged_once(
    steps: list[RatedTransition], prices: list[RatedPrice], cuts: list[int]
) -> None:
    rated = rate_usage(steps, prices, periods(*cuts))
    active = sum(s.span.seconds * s.opened.quantity for s in billable_intervals(steps))
    assert sum(charge.unit_seconds for charge in rated.charges) == active
    assert rated.unrated == ()


@settings(max_examples=20)
@given(lease_transitions(), catalogues(), borders, st.randoms(use_true_random=False))
def test_the_order_of_ingestion_does_not_change_charges(
    steps: list[RatedTransition], prices: list[RatedPrice], cuts: list[int], random: object
) -> None:
    before = rate_usage(steps, prices, periods(*cuts))
    mixed = (list(steps), list(prices), list(periods(*cuts).items()))
    for each in mixed:
        random.shuffle(each)  # type: ignore[attr-defined]
    assert rate_usage(mixed[0], mixed[1], dict(mixed[2])) == before


@settings(max_examples=20)
@given(lease_transitions(), catalogues(), st.integers(1, 119))
def test_ticks_period_boundaries_and_renewed_prices_change_no_total(
    steps: list[RatedTransition], prices: list[RatedPrice], cut: int
) -> None:
    whole = {"all": Period(at(-1), at(121))}
    expected = sum(c.exact_num for c in rate_usage(steps, prices, whole).charges)
    ticked = []
    for before, after in pairwise([*steps, None]):
        assert before is not None
        ticked.append(replace(before, seq=before.seq * 2))
        if after and after.lease == before.lease and before.at < at(cut) < after.at:
            ticked.append(replace(before, seq=before.seq * 2 + 1, at=at(cut)))
    renewed = [
        part
        for p in prices
        for part in (
            (replace(p, end=at(cut)), replace(p, version=p.version + "+", start=at(cut)))
            if p.start < at(cut) and (p.end is None or at(cut) < p.end)
            else (p,)
        )
    ]
    assert sum(c.exact_num for c in rate_usage(ticked, prices, whole).charges) == expected
    assert sum(c.exact_num for c in rate_usage(steps, renewed, whole).charges) == expected
    assert sum(c.exact_num for c in rate_usage(steps, prices, periods(-1, cut, 121)).charges) == expected


@settings(max_examples=15)
@given(lease_transitions(), catalogues(), st.sampled_from(RARE))
def test_a_time_zone_moves_seconds_between_months_but_keeps_the_total(
    steps: list[RatedTransition], prices: list[RatedPrice], tz: str
) -> None:
    flat = {"all": Period(at(-1), at(121))}
    local = {f"{m.start:%F %T}": m for m in months_between(tz, at(-1), at(121))}
    one, other = rate_usage(steps, prices, flat), rate_usage(steps, prices, local)
    assert sum(c.exact_num for c in one.charges) == sum(c.exact_num for c in other.charges)
    assert sum(c.unit_seconds for c in one.charges) == sum(c.unit_seconds for c in other.charges)


def test_a_lease_across_a_price_change_and_a_month_end_is_split_at_both() -> None:
    steps = [step(3, 0, quantity=2), step(4, 100, R)]
    rated = rate_usage(steps, [price("old", -1, 40, 10), price("new", 40, None, 70)], periods(-1, 60, 121))
    assert rated.charges == (
        ReferenceCharge("lse_1", 3, "old", "from -1", Period(at(0), at(40)), 80, 800),
        ReferenceCharge("lse_1", 3, "new", "from -1", Period(at(40), at(60)), 40, 2800),
        ReferenceCharge("lse_1", 3, "new", "from 60", Period(at(60), at(100)), 80, 5600),
    )


def test_only_active_seconds_are_charged() -> None:
    life = [step(n, 10 * n, state) for n, state in enumerate(LeaseState)]
    assert [segment.opened.after for segment in billable_intervals(life)] == [A]


def test_an_open_interval_is_not_billable_before_its_tick() -> None:
    assert list(billable_intervals([step(0, 0)])) == []
    assert [s.span.seconds for s in billable_intervals([step(0, 0), step(1, 30)])] == [30]


def test_a_lease_with_zero_active_seconds_costs_nothing() -> None:
    assert rate_usage([step(0, 5), step(1, 5, R)], [price("p", 0, None, 1)], periods(-1, 121)) == RatingResult((), ())


def test_seconds_without_a_price_are_reported_as_unrated() -> None:
    steps = [step(0, 0, quantity=3), step(1, 10, R)]
    for prices in ([price("late", 4, None, 9)], [price("other", 0, 4, 9), price("later", 20, None, 9)]):
        rated = rate_usage(steps, prices, periods(-1, 121))
        covered = sum(c.unit_seconds for c in rated.charges)
        assert rated.unrated == (UnratedUsage("lse_1", 0, 30 - covered),)
        assert 0 < covered < 30


def test_seconds_of_another_price_class_or_outside_all_periods_are_unrated() -> None:
    steps = [step(0, 0), step(1, 10, R)]
    spot = price("spot", 0, None, 9, price_class=SPOT)
    assert rate_usage(steps, [spot], periods(-1, 121)).unrated == (UnratedUsage("lse_1", 0, 10),)
    assert rate_usage(steps, [price("p", -1, None, 9)], periods(4, 121)).unrated == (UnratedUsage("lse_1", 0, 4),)


def test_a_price_starting_at_the_end_of_usage_does_not_apply() -> None:
    steps = [step(0, 0), step(1, 10, R)]
    rated = rate_usage(steps, [price("p", 0, 10, 5), price("next", 10, None, 99)], periods(-1, 121))
    assert [charge.version for charge in rated.charges] == ["p"]


def test_two_prices_for_the_same_second_are_refused() -> None:
    steps = [step(0, 0), step(1, 10, R)]
    with pytest.raises(ValueError, match="two prices or two billing periods at once"):
        rate_usage(steps, [price("one", 0, None, 5), price("two", 5, None, 5)], periods(-1, 121))


def test_transitions_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="transition 1 of lse_1 is earlier than the one before it"):
        list(billable_intervals([step(0, 5), step(1, 4, R)]))


@pytest.mark.parametrize("fixed", [False, True])
def test_a_quoted_price_applies_to_its_own_lease_for_its_whole_life(fixed: bool) -> None:
    steps = [step(0, 0), step(1, 40, LeaseState.STOPPED), step(2, 80), step(3, 120, R)]
    others = [replace(each, lease="lse_2") for each in steps]
    old, new = price("old", -10, 10, 1), price("new", 10, None, 5)
    quoted = {"fixed" if fixed else "promised": {"lse_1": old}}
    rated = rate_usage([*steps, *others], [old, new], periods(-10, 100, 200), **quoted)
    found = {(c.lease, c.version, c.unit_seconds, c.exact_num) for c in rated.charges}
    assert found == {
        *([("lse_1", "old", 40, 40)] if fixed else [("lse_1", "old", 10, 10), ("lse_1", "old", 30, 30)]),
        ("lse_1", "old", 20, 20),
        ("lse_2", "old", 10, 10),
        ("lse_2", "new", 30, 150),
        ("lse_2", "new", 20, 100),
    }
    assert rated.unrated == ()


@pytest.mark.parametrize("fixed", [False, True])
def test_a_lower_price_replaces_a_quoted_one_that_is_a_ceiling(fixed: bool) -> None:
    steps = [step(0, 0), step(1, 40, R)]
    quoted, lower = price("quoted", -10, 10, 5), price("lower", 20, None, 2)
    by = {"fixed" if fixed else "promised": {"lse_1": quoted}}
    rated = rate_usage(steps, [quoted, lower], periods(-10, 100), **by)
    assert rated.unrated == ()
    assert sum(charge.exact_num for charge in rated.charges) == (200 if fixed else 20 * 5 + 20 * 2)


def test_a_quoted_price_applies_to_its_own_offering_only() -> None:
    steps = [step(0, 0), step(1, 10, offering="off_b"), step(2, 20, R)]
    kept, other = price("kept", 0, 1, 1), price("other", 0, None, 5, offering="off_b")
    rated = rate_usage(steps, [other], periods(0, 100), {"lse_1": kept})
    assert [(c.version, c.exact_num) for c in rated.charges] == [("kept", 10), ("other", 50)]
