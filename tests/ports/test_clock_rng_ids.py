"""Clock, random numbers and ids, real and reproducible."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from ports import clock, http, ids
from ports.clock import DatabaseClock
from ports.rng import Rng

AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


@pytest.mark.django_db
def test_the_database_clock_agrees_with_postgresql_after_one_query(django_assert_num_queries: Any) -> None:
    def database_time() -> datetime:
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            return cursor.fetchone()[0]  # type: ignore[no-any-return]

    now, began = DatabaseClock(), clock.monotonic()
    with django_assert_num_queries(1):
        moments = [now.now() for _ in range(100)]
    assert moments == sorted(moments)
    at_most_behind = timedelta(seconds=clock.monotonic() - began + 0.1)
    assert database_time() - at_most_behind < now.now() < database_time() + timedelta(seconds=0.1)
    assert now.now().tzinfo is not None


@pytest.mark.django_db
def test_the_database_clock_resynchronizes_after_a_while(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = DatabaseClock()
    now.now()
    later = clock.time.monotonic() + clock.RESYNC_AFTER_S + 1
    monkeypatch.setattr(clock.time, "monotonic", lambda: later)
    with django_assert_num_queries(1):
        now.now()


@pytest.mark.django_db
def test_the_clock_of_tests_needs_no_queries(monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any) -> None:
    soon = clock.time.monotonic() + 600
    monkeypatch.setattr(clock.time, "monotonic", lambda: soon)
    with django_assert_num_queries(0):
        clock.now()


def test_a_frozen_clock_moves_only_when_set_and_ends_with_its_block() -> None:
    before = clock._clock
    with clock.frozen_at(AT) as standing:
        assert clock.now() == AT
        standing.at += timedelta(hours=1)
        assert clock.now() == AT + timedelta(hours=1)
    assert clock._clock is before


def test_sleep_waits_for_the_given_time() -> None:
    begin = clock.monotonic()
    clock.sleep(0.01)
    assert clock.monotonic() - begin >= 0.01


def test_ids_are_prefixed_unique_and_ordered_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {ids.new("lse") for _ in range(10_000)}
    assert len(many) == 10_000
    assert all(len(i) == 30 and i.startswith("lse_") and set(i[4:]) <= set(ids.CROCKFORD) for i in many)
    monkeypatch.setattr(clock, "milliseconds", lambda: 1_800_000_000_000)
    early = ids.new("lse")
    monkeypatch.setattr(clock, "milliseconds", lambda: 1_800_000_000_001)
    assert early < ids.new("lse")


def test_ids_of_one_millisecond_sort_in_creation_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "milliseconds", lambda: 1_750_000_000_000)
    made = [ids.new("evt") for _ in range(1_000)]
    assert made == sorted(set(made))


def test_ids_stay_ordered_when_the_random_part_is_at_its_maximum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "milliseconds", lambda: 1_750_000_000_000)
    monkeypatch.setattr(ids.secrets, "randbits", lambda bits: (1 << bits) - 1)
    made = [ids.new("evt") for _ in range(1_000)]
    assert made == sorted(set(made))


def test_reproducible_ids_repeat_for_the_same_seed() -> None:
    def some(seed: str) -> list[str]:
        with ids.reproducible_ids(seed):
            return [ids.new("x") for _ in range(5)]

    assert some("a") == some("a") == sorted(some("a"))
    assert some("a") != some("b")
    assert ids.new("x") not in some("a")


def test_random_tokens_are_unique_and_have_40_characters_by_default() -> None:
    assert len(ids.random_token()) == 40
    assert len({ids.random_token(52) for _ in range(100)}) == 100


def test_the_rng_repeats_for_the_same_seed() -> None:
    def draw(seed: int) -> tuple[float, bool, float]:
        chance = Rng(seed)
        return chance.uniform(1, 2), chance.below(0.5), chance.lognormal(2.0, 0.3)

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert 1 <= draw(1)[0] <= 2
    assert draw(1)[2] > 0


def test_the_http_client_has_a_timeout_and_follows_no_redirects() -> None:
    with http.client(base_url="http://127.0.0.1:9", timeout_s=1) as client:
        assert client.timeout.connect == 1
        assert not client.follow_redirects


def test_the_first_id_of_a_moment_sorts_before_those_made_then_and_after_earlier_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment = datetime(2026, 11, 21, 9, tzinfo=UTC)
    made = {}
    for seconds in (-1, 0, 1):
        monkeypatch.setattr(
            clock, "milliseconds", lambda at=moment + timedelta(seconds=seconds): int(at.timestamp() * 1000)
        )
        made[seconds] = ids.new("lse")
    first = ids.first_at("lse", moment)
    assert made[-1] < first <= made[0] < made[1]
    assert len(first) == len(made[0])
