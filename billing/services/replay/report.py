"""Putting a replay's figures together: the same for the same seed, byte for byte, but for how long it took."""

from datetime import datetime
from typing import Any

from billing.services import conservation
from billing.services.replay import figures
from billing.services.replay.drive import Run
from billing.services.replay.world import BEGIN
from broker.services.catalogue import spec_of


def assemble(run: Run, *, trace: str, model: str, last: datetime) -> dict[str, Any]:
    """Return the report as plain JSON values; seconds are of whole cards, amounts in minor units."""
    spec, waits = spec_of(model), figures.waits()
    kept = conservation.over(first=BEGIN, last=last)
    return {
        "trace": trace,
        "model": model,
        "seed": run.seed,
        "tenants": len(run.world.projects),
        "cards": run.world.cards,
        "slices": run.world.cards * spec.grid,
        "days": -(-int((last - BEGIN).total_seconds()) // 86_400),
        "currency": "EUR",
        "leases": waits.leases,
        "accepted": waits.accepted,
        "refused": run.refused,
        "queued": waits.queued,
        "queued_p50_s": waits.queued_p50_s,
        "queued_p95_s": waits.queued_p95_s,
        "wait_p95_s": waits.p95_s,
        "longest_wait_s": waits.longest_s,
        **kept.as_report(),
        "revenue": figures.revenue(),
        "months": figures.months(),
        "daily_slices": figures.daily_use(BEGIN, last),
        "digest": figures.digest(),
    }
