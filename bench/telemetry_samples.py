"""Benchmark of storing samples against a raw COPY, their roll-up, and their size.

Usage: `python -m bench.telemetry_samples [slots]`. The raw COPY is of as many rows in as many
parts, encoded beforehand.
"""

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_LOG_LEVEL", "ERROR")
django.setup()

from django.db import connection, connections  # noqa: E402

from bench.figures import Figures  # noqa: E402
from broker.domain.telemetry import copy_format  # noqa: E402
from broker.models import Cluster, Gpu, GpuModel, Node  # noqa: E402
from broker.services.telemetry import partitions, sample_rollups  # noqa: E402
from broker.services.telemetry.sample_storage import CODES, COLUMNS, Batch, SlotSamples, store_batch  # noqa: E402

SLOTS, HOURS, REPEATS = 5_000, 24, 5
PER_NODE, STEP = 56, timedelta(seconds=10)  # eight GPUs of seven slices
DAY = datetime(2026, 11, 20, tzinfo=UTC)
SAMPLES_PER_BATCH = 6
CHART_MS, BYTES_A_SAMPLE = 50, 40
GRID = 7


def create_nodes(slots: int) -> list[list[tuple[str, tuple[int, int]]]]:
    """Create nodes with GPUs of seven slices; return the slots of each."""
    model, _ = GpuModel.objects.get_or_create(
        name="bench", defaults={"memory_gb": 80, "memory_grid": GRID, "compute_slices": GRID, "spec": {}}
    )
    cluster = Cluster.objects.create(name="bench", region="bench", created_at=DAY)
    found = []
    for number in range(-(-slots // PER_NODE)):
        node = Node.objects.create(cluster=cluster, name=f"n{number}", state_since=DAY)
        gpus = [
            Gpu(node=node, index=index, gpu_model=model, uuid=f"GPU-{number}-{index}", health_since=DAY)
            for index in range(PER_NODE // GRID)
        ]
        Gpu.objects.bulk_create(gpus)
        found.append([(gpu.pk, (start, start + 1)) for gpu in gpus for start in range(GRID)])
    return found


def samples_of(slots: Sequence[tuple[str, tuple[int, int]]], times: Sequence[datetime]) -> list[SlotSamples]:
    """Return samples as a MIG node sends them: power and temperature of slices are unknown."""
    count = len(times)
    return [
        SlotSamples(
            gpu, place, times,
            {
                "engine_active": [(number * 37 + each * 11) % 1000 for each in range(count)],
                "sm_active": [(number * 31 + each * 7) % 1000 for each in range(count)],
                "tensor_active": [(number * 17) % 500] * count,
                "dram_active": [(number * 13) % 700] * count,
                "memory_used_mib": [4000 + number % 3000] * count,
            },
        )
        for number, (gpu, place) in enumerate(slots)
    ]  # fmt: skip


def times_from(start: datetime, count: int) -> list[datetime]:
    return [start + STEP * (each + 1) for each in range(count)]


def seconds(act: Callable[[], object]) -> float:
    begun = perf_counter()
    act()
    return perf_counter() - begun


def measure_storage(figures: Figures, nodes: list[list[tuple[str, tuple[int, int]]]]) -> None:
    """Compare storing batches with a raw COPY of as many rows."""
    partitions.create_partitions({DAY.date() - timedelta(days=each) for each in range(1, 2 * REPEATS + 3)})
    raw, stored, count = [], [], 0
    for each in range(REPEATS):
        start = DAY - timedelta(days=each + 2)
        batches = [
            Batch(Gpu.objects.get(pk=slots[0][0]).node_id, f"bench-{each}", 0, samples_of(slots, times_from(start, 60)))
            for slots in nodes
        ]
        count = sum(len(slot.at) for batch in batches for slot in batch.slots)
        stored.append(seconds(lambda batches=batches: [store_batch(batch, now=DAY) for batch in batches]))
        raw.append(_time_raw_copy(DAY - timedelta(days=each + 2 + REPEATS), count))
    figures.report_rate("samples_a_second", count / median(stored), baseline=count / median(raw), at_least=0.6)
    figures.report_min("samples_a_second_at_least", count / median(stored), unit="1/s", at_least=200_000)


def _time_raw_copy(start: datetime, count: int) -> float:
    """Time raw COPY statements of as many rows, encoded beforehand."""
    each = [copy_format.microseconds(at) for at in times_from(start, 60)]
    measured = {"engine_active", "sm_active", "tensor_active", "dram_active", "memory_used_mib"}
    parts = []
    for first in range(1, count // 60 + 1, PER_NODE):
        slots = range(first, first + PER_NODE)
        columns: list[list[int] | None] = [[slot for slot in slots for _ in each], each * PER_NODE]
        columns += [[500] * len(each) * PER_NODE if name in measured else None for name in list(COLUMNS)[2:]]
        parts.append(copy_format.HEADER + copy_format.encode_rows(CODES, columns) + copy_format.TRAILER)

    def copy() -> None:
        for part in parts:
            with (
                connection.cursor() as cursor,
                cursor.cursor.copy(f"COPY broker_gpusample ({', '.join(COLUMNS)}) FROM STDIN (FORMAT binary)") as pipe,
            ):
                pipe.write(part)

    return seconds(copy)


def store_day(nodes: list[list[tuple[str, tuple[int, int]]]], hours: int) -> int:
    """Store some hours of every slot, an hour per batch; return how many samples."""
    stored = 0
    for slots in nodes:
        node_id = Gpu.objects.get(pk=slots[0][0]).node_id
        for hour in range(hours):
            batch = Batch(node_id, "day", hour, samples_of(slots, times_from(DAY + timedelta(hours=hour), 359)))
            stored += store_batch(batch, now=DAY)
    return stored


def _roll_up(_: int) -> None:
    sample_rollups.roll_up_samples(now=DAY + timedelta(days=2))


def measure_roll_up(figures: Figures, stored: int, goal_s: float) -> None:
    """Roll a day up with two processes, as two workers would."""
    connections.close_all()
    begun = perf_counter()
    with get_context("fork").Pool(2) as pool:
        pool.map(_roll_up, range(2))
    spent = perf_counter() - begun
    figures.report_max("roll_up", spent, unit="s", at_most=goal_s)
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits"
                       " WHERE inhparent IN ('broker_gpuminute'::regclass, 'broker_gpuhour'::regclass)")  # fmt: skip
        (size,) = cursor.fetchone()
    figures.report_max("bytes_a_sample_after_roll_up", float(size) / stored, unit="B", at_most=BYTES_A_SAMPLE)


def main(slots: int = SLOTS) -> None:
    hours = HOURS if slots == SLOTS else 2
    figures, nodes = Figures("telemetry_samples"), create_nodes(slots)
    measure_storage(figures, nodes)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE broker_samplebatch SET rolled_up = true")
    partitions.create_partitions({DAY.date(), DAY.date() + timedelta(days=1)})
    stored = store_day(nodes, hours)
    measure_roll_up(figures, stored, 60 * slots * hours / (SLOTS * HOURS) + 5)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
