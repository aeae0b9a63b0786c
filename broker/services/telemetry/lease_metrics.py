"""What a lease's GPUs did while it held them, as points of a chart."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import connection

from broker.domain.telemetry.throttle_reasons import PROVIDER_REASONS
from broker.models import Lease
from ports.postgres.sql_statements import load_sql

MOST_POINTS = 1500
STEPS_S = (10, 60, 300, 900, 3600, 21_600, 86_400)
TABLES = ((60, "broker_gpusample"), (3600, "broker_gpuminute"))  # below these steps
HOURS = "broker_gpuhour"


class MetricsScope(StrEnum):
    """What activity and memory were measured on."""

    SLICE = "slice"  # the lease's own
    GPU = "gpu"  # the whole GPU, which others may use as well
    NONE = "none"  # nothing was measured


@dataclass(frozen=True, slots=True)
class MetricsPoint:
    """Use of a lease's slices in one step; None is unknown.

    Activity is per mille, the mean over its slices; memory is MiB of one slice; power and temperature are of whole
    GPUs.
    """

    at: datetime
    engine_active: int | None = None
    engine_max: int | None = None
    sm_active: int | None = None
    tensor_active: int | None = None
    dram_active: int | None = None
    memory_used_mib: int | None = None
    power_dw: int | None = None
    temperature_c: int | None = None
    throttle_reasons: int = 0

    @property
    def is_throttled(self) -> bool:
        """Return whether its GPU was slowed down by heat or its power supply."""
        return bool(self.throttle_reasons & PROVIDER_REASONS)


@dataclass(frozen=True, slots=True)
class LeaseMetrics:
    """Points of a window, oldest first; a step without samples has no point."""

    since: datetime
    until: datetime
    step_s: int
    scope: MetricsScope
    points: list[MetricsPoint]

    @property
    def expected(self) -> int:
        """Return how many points the window would have without gaps."""
        return int((self.until - self.since).total_seconds()) // self.step_s


def read_lease_metrics(lease: Lease, *, since: datetime, until: datetime, step_s: int | None = None) -> LeaseMetrics:
    """Read a lease's use in a window, at a step or one that fits."""
    step = step_s or usual_step((until - since).total_seconds())
    table = next((table for below, table in TABLES if step < below), HOURS)
    values: dict[str, Any] = {
        "lease": lease.pk,
        "since": since,
        "until": until,
        "step": step,
        "grid": (lease.offering.gpu_model.memory_grid if lease.offering.gpu_model else 0) or 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(load_sql("broker/telemetry/lease_series").replace("{table}", table), values)
        rows = cursor.fetchall()
    return _joined(rows, since, until, step)


def usual_step(seconds: float) -> int:
    """Return the finest step that keeps a window within the most points."""
    return next((step for step in STEPS_S if seconds / step <= MOST_POINTS / 4), STEPS_S[-1])


def _joined(rows: list[tuple[Any, ...]], since: datetime, until: datetime, step: int) -> LeaseMetrics:
    """Join the slice's own activity and memory with its GPU's power.

    Where the slice itself is not measured, all of it is the GPU's.
    """
    own = {row[0]: row for row in rows if row[1]}
    gpus = {row[0]: row for row in rows if not row[1]}
    has_own = any(row[3] is not None or row[8] is not None for row in own.values())
    points = []
    for at in sorted({*own, *gpus}):
        use = own.get(at) if has_own else gpus.get(at, own.get(at))
        whole = gpus.get(at, own.get(at))
        used = use[3:9] if use else (None,) * 6
        engine, engine_max, sm, tensor, dram, memory = map(_whole, used)
        power, temperature, reasons = map(_whole, whole[9:12]) if whole else (None, None, None)
        points.append(MetricsPoint(at, engine, engine_max, sm, tensor, dram, memory, power, temperature, reasons or 0))
    scope = MetricsScope.SLICE if has_own else MetricsScope.GPU if points else MetricsScope.NONE
    return LeaseMetrics(since, until, step, scope, points)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def window(lease: Lease, hours: float | None, *, now: datetime) -> tuple[datetime, datetime]:
    """Return the last hours of a lease's active time, or all of it."""
    until = min(lease.ended_at or now, now)
    began = lease.active_at or lease.created_at
    if hours is None:
        return began.replace(second=0, microsecond=0), until
    return until - timedelta(hours=hours), until
