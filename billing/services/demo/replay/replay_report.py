"""Replay report: identical bytes for the same seed, except for the run time."""

from datetime import datetime
from typing import Any

from billing.services.demo.replay import replay_metrics
from billing.services.demo.replay.replay_environment import REPLAY_START
from billing.services.demo.replay.simulator import Simulation
from billing.services.reports import conservation
from broker.services.inventory.gpu_catalogue import gpu_model_spec


def assemble_report(run: Simulation, *, trace: str, model: str, engine: str, last: datetime) -> dict[str, Any]:
    """Return the report as plain JSON values.

    Seconds are of whole GPUs, amounts in minor units.
    """
    spec, waits, full = (gpu_model_spec(model), replay_metrics.queue_waits(), replay_metrics.fleet_use(REPLAY_START))
    slices = run.world.gpus * spec.grid
    kept = conservation.check_conservation(first=REPLAY_START, last=last)
    return {
        "trace": trace,
        "model": model,
        "engine": engine,
        "seed": run.seed,
        "tenants": len(run.world.projects),
        "gpus": run.world.gpus,
        "slices": slices,
        "days": -(-int((last - REPLAY_START).total_seconds()) // 86_400),
        "currency": "EUR",
        "requests": waits.leases + run.refused,
        "leases": waits.leases,
        "accepted": waits.accepted,
        "refused": run.refused,
        "queued": waits.queued,
        "queued_p50_s": waits.queued_p50_s,
        "queued_p95_s": waits.queued_p95_s,
        "wait_p95_s": waits.p95_s,
        "longest_wait_s": waits.longest_s,
        "placed": {size: _size_report(its) for size, its in replay_metrics.figures_by_size().items()},
        "sold_percent_while_waiting": format_percent(full.held_while_waiting, slices * full.waiting_s),
        "hours_somebody_waited": full.waiting_s // 3600,
        "sold_percent_until_last_request": format_percent(full.held_until_last, slices * full.until_last_s),
        **kept.as_report(),
        "revenue": replay_metrics.revenue(),
        "months": replay_metrics.closed_months(),
        "not_final": replay_metrics.unclosed_months(),
        "daily_slices": replay_metrics.daily_use(REPLAY_START, last),
        "digest": replay_metrics.results_digest(),
    }


def format_percent(part: int, whole: int) -> str | None:
    """Write a share in percent with two decimals, without a float.

    None if the whole is zero.
    """
    if not whole:
        return None
    hundredths = (20_000 * part + whole) // (2 * whole)
    return f"{hundredths // 100}.{hundredths % 100:02}"


def _size_report(its: replay_metrics.SizeFigures) -> dict[str, Any]:
    return {
        "placed": its.placed,
        "at_once": its.at_once,
        "at_once_percent": format_percent(its.at_once, its.placed),
        "mean_wait_s": its.waited_s // its.placed if its.placed else None,
    }
