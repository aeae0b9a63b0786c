"""Putting a replay's figures together: the same for the same seed, byte for byte, but for how long it took."""

from datetime import datetime
from typing import Any

from billing.services import conservation
from billing.services.replay import figures
from billing.services.replay.drive import Run
from billing.services.replay.world import BEGIN
from broker.services.catalogue import spec_of


def assemble(run: Run, *, trace: str, model: str, engine: str, last: datetime) -> dict[str, Any]:
    """Return the report as plain JSON values; seconds are of whole cards, amounts in minor units."""
    spec, waits, full = spec_of(model), figures.waits(), figures.fullness(BEGIN)
    slices = run.world.cards * spec.grid
    kept = conservation.over(first=BEGIN, last=last)
    return {
        "trace": trace,
        "model": model,
        "engine": engine,
        "seed": run.seed,
        "tenants": len(run.world.projects),
        "cards": run.world.cards,
        "slices": slices,
        "days": -(-int((last - BEGIN).total_seconds()) // 86_400),
        "currency": "EUR",
        "asked": waits.leases + run.refused,
        "leases": waits.leases,
        "accepted": waits.accepted,
        "refused": run.refused,
        "queued": waits.queued,
        "queued_p50_s": waits.queued_p50_s,
        "queued_p95_s": waits.queued_p95_s,
        "wait_p95_s": waits.p95_s,
        "longest_wait_s": waits.longest_s,
        "placed": {size: _fared(its) for size, its in figures.by_size().items()},
        "sold_percent_while_waiting": percent(full.held_while_waiting, slices * full.waiting_s),
        "hours_somebody_waited": full.waiting_s // 3600,
        "sold_percent_until_last_request": percent(full.held_until_last, slices * full.until_last_s),
        **kept.as_report(),
        "revenue": figures.revenue(),
        "months": figures.months(),
        "not_final": figures.not_final(),
        "daily_slices": figures.daily_use(BEGIN, last),
        "digest": figures.digest(),
    }


def percent(part: int, whole: int) -> str | None:
    """Write a part in percent with two decimals, without a float; None of nothing."""
    if not whole:
        return None
    hundredths = (20_000 * part + whole) // (2 * whole)
    return f"{hundredths // 100}.{hundredths % 100:02}"


def _fared(its: figures.Size) -> dict[str, Any]:
    return {
        "placed": its.placed,
        "at_once": its.at_once,
        "at_once_percent": percent(its.at_once, its.placed),
        "mean_wait_s": its.waited_s // its.placed if its.placed else None,
    }
