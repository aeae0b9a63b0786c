"""Samples are stored once per batch, in any order, and rolled up alike."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations

import psycopg
import pytest
from django.db import connection

from broker.models import Gpu, GpuHour, GpuMinute, GpuSample, SampleBatch
from broker.services.telemetry import partitions
from broker.services.telemetry.sample_rollups import roll_up_samples
from broker.services.telemetry.sample_storage import Batch, SlotSamples, store_batch
from tests.database import OwnDatabase
from tests.simulation import create_gpus

START = datetime(2026, 11, 21, 9, 59, tzinfo=UTC)
STEP = timedelta(seconds=10)
LATER = START + timedelta(hours=2)
WHOLE, SLICE = (0, 8), (0, 2)


def times(count: int, since: datetime = START) -> list[datetime]:
    return [since + STEP * (each + 1) for each in range(count)]


def batch(seq: int, *slots: SlotSamples, boot: str = "boot-1") -> Batch:
    return Batch(Gpu.objects.get().node_id, boot, seq, slots)


def samples(
    at: Sequence[datetime], *, placement: tuple[int, int] = WHOLE, **columns: Sequence[int | None]
) -> SlotSamples:
    return SlotSamples(Gpu.objects.get().pk, placement, at, columns)


def minutes() -> list[tuple[object, ...]]:
    return list(
        GpuMinute.objects.order_by("slot", "at").values_list(
            "at", "samples", "engine_active", "engine_max", "energy_mj"
        )
    )


@pytest.fixture
def gpu(db: None) -> None:
    create_gpus(1)


@pytest.mark.usefixtures("gpu")
def test_a_batch_is_stored_with_its_unknown_values() -> None:
    at = times(2)
    stored = store_batch(
        batch(
            1,
            samples(at, power_dw=[3000, 3100], temperature_c=[60, None]),
            samples(at, placement=SLICE, engine_active=[870, 910], memory_used_mib=[9000, 9001]),
        ),
        now=LATER,
    )
    assert stored == 4
    found = GpuSample.objects.order_by("slot", "at").values_list(
        "slot__placement", "at", "power_dw", "temperature_c", "engine_active", "memory_used_mib", "sm_clock_mhz"
    )
    assert sorted(
        ((placement.lower, placement.upper, *rest) for placement, *rest in found), key=lambda row: -row[1]
    ) == [
        (0, 8, at[0], 3000, 60, None, None, None),
        (0, 8, at[1], 3100, None, None, None, None),
        (0, 2, at[0], None, None, 870, 9000, None),
        (0, 2, at[1], None, None, 910, 9001, None),
    ]


@pytest.mark.usefixtures("gpu")
def test_a_batch_that_comes_again_changes_nothing() -> None:
    first = batch(1, samples(times(6), engine_active=[500] * 6))
    assert [store_batch(first, now=LATER) for _ in range(2)] == [6, 0]
    assert SampleBatch.objects.get().samples == GpuSample.objects.count() == 6


@pytest.mark.usefixtures("gpu")
def test_numbers_begin_again_after_a_boot() -> None:
    store_batch(batch(1, samples(times(1), engine_active=[1])), now=LATER)
    assert store_batch(batch(1, samples(times(1, LATER), engine_active=[1]), boot="boot-2"), now=LATER) == 1


@pytest.mark.usefixtures("gpu")
def test_minutes_and_hours_are_means_maxima_and_sums() -> None:
    at = times(12, START)  # one minute until ten o'clock and one after it
    active = [100, 200, 300, 400, 500, 600, 0, 0, 0, 0, 0, 60]
    store_batch(batch(1, samples(at, engine_active=active, energy_mj=[3_000_000] * 12)), now=LATER)
    assert roll_up_samples(now=LATER) == 1
    ten = datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert minutes() == [
        (START, 5, 300, 500, 15_000_000),
        (ten, 6, 100, 600, 18_000_000),
        (ten + timedelta(minutes=1), 1, 60, 60, 3_000_000),
    ]
    assert list(GpuHour.objects.order_by("at").values_list("at", "samples", "engine_active", "energy_mj")) == [
        (START.replace(minute=0), 5, 300, 15_000_000), (ten, 7, 94, 21_000_000),
    ]  # fmt: skip


@pytest.mark.usefixtures("gpu")
def test_the_result_depends_on_neither_order_nor_repetition() -> None:
    parts = [
        batch(each, samples(times(3, START + STEP * 3 * each), engine_active=[each * 10] * 3)) for each in range(4)
    ]
    results = []
    for order in permutations(parts):
        for model in (GpuSample, GpuMinute, GpuHour, SampleBatch):
            model.objects.all().delete()
        for each in (*order, order[0]):
            store_batch(each, now=LATER)
            roll_up_samples(now=LATER)
        results.append((minutes(), list(GpuHour.objects.order_by("at").values_list("at", "samples", "engine_active"))))
    assert results.count(results[0]) == 24


@pytest.mark.usefixtures("gpu")
def test_the_minute_that_runs_waits_until_it_is_over() -> None:
    store_batch(batch(1, samples(times(2, LATER), engine_active=[5, 5])), now=LATER)
    assert roll_up_samples(now=LATER + STEP * 3) == 0
    assert roll_up_samples(now=LATER + timedelta(minutes=1)) == 1


@pytest.mark.usefixtures("gpu")
def test_throttling_counts_where_it_is_the_providers() -> None:
    store_batch(batch(1, samples(times(5), throttle_reasons=[0, 0x4, 0x40, 0x80, None])), now=LATER)
    roll_up_samples(now=LATER)
    assert GpuMinute.objects.values_list("throttled_samples", "throttle_reasons").get() == (2, 0xC4)


@pytest.mark.usefixtures("gpu")
def test_days_past_retention_are_dropped() -> None:
    old, today = datetime(2026, 11, 1, 12, tzinfo=UTC), datetime(2026, 11, 21, 12, tzinfo=UTC)
    store_batch(batch(1, samples(times(1, old), engine_active=[1])), now=old)
    store_batch(batch(2, samples(times(1, today), engine_active=[1])), now=today)
    assert partitions.keep_partitions(now=today) == 1
    assert GpuSample.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('broker_gpusample_20261123') IS NOT NULL")
        assert cursor.fetchone() == (True,)


def test_a_node_that_another_process_rolls_up_waits_for_the_next_run(own_database: OwnDatabase) -> None:
    create_gpus(1)
    store_batch(batch(1, samples(times(6), engine_active=[5] * 6)), now=LATER)
    with psycopg.connect(**connection.get_connection_params(), autocommit=False) as other:
        other.execute("SELECT pg_advisory_xact_lock(7, hashtext(%s))", [Gpu.objects.get().node_id])
        assert roll_up_samples(now=LATER) == 0
    assert roll_up_samples(now=LATER) == 1
