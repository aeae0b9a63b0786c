"""Results of a replay, read from the database alone; the simulator counts nothing."""

import hashlib
from dataclasses import dataclass
from typing import Any

from ports.postgres.sql_statements import query_rows
from tenants.services.rls import system_scope

# All results, in an order that does not depend on storage.
RESULTS = (
    "billing/demo/all_transitions",
    "billing/demo/all_charges",
    "billing/demo/all_allocations",
    "billing/demo/all_invoice_lines",
)


@dataclass(frozen=True)
class QueueWaits:
    """Waiting times in the queue, in seconds; `queued_…` counts only leases that waited."""

    leases: int
    accepted: int
    queued: int
    p95_s: int
    queued_p50_s: int
    queued_p95_s: int
    longest_s: int


@dataclass(frozen=True)
class SizeFigures:
    """Results for requests of one size: placed, placed at once, and total waiting time."""

    placed: int = 0
    at_once: int = 0
    waited_s: int = 0


@dataclass(frozen=True)
class FleetUse:
    """Slice-seconds held and elapsed seconds, while requests waited and until the last request."""

    held_while_waiting: int
    waiting_s: int
    held_until_last: int
    until_last_s: int


def _rows(name: str, **values: Any) -> list[Any]:
    with system_scope():
        return query_rows(name, **values)


def queue_waits() -> QueueWaits:
    return QueueWaits(*(int(value) for value in _rows("billing/demo/queue_waits")[0]))


def figures_by_size() -> dict[str, SizeFigures]:
    """Return the results for slices, single whole GPUs and gangs."""
    found = {size: SizeFigures(*numbers) for size, *numbers in _rows("billing/demo/waits_by_size")}
    return {size: found.get(size, SizeFigures()) for size in ("slices", "gpus", "gangs")}


def fleet_use(first: Any) -> FleetUse:
    return FleetUse(*(int(value) for value in _rows("billing/demo/fleet_use", first=first)[0]))


def revenue() -> list[dict[str, Any]]:
    """Return the invoiced unit-seconds and minor units per tenant and offering."""
    names = ("tenant", "offering", "unit_seconds", "minor")
    return [dict(zip(names, row, strict=True)) for row in _rows("billing/demo/invoiced_usage")]


def closed_months() -> list[dict[str, Any]]:
    """Return the closed months: number of invoices, net and gross sum in minor units."""
    names = ("month", "invoices", "net_minor", "minor")
    return [dict(zip(names, row, strict=True)) for row in _rows("billing/demo/closed_months")]


def unclosed_months() -> list[str]:
    """Return why months could not close; empty for a complete replay."""
    return [why for (why,) in _rows("billing/demo/unclosed_months")]


def daily_use(first: Any, last: Any) -> list[tuple[str, int]]:
    """Return the memory slices held at the end of every day."""
    return [(day, int(held)) for day, held in _rows("billing/demo/daily_use", first=first, last=last)]


def results_digest() -> str:
    """Return one hash over every transition, allocation, charge and invoice line."""
    fingerprint = hashlib.sha256()
    for name in RESULTS:
        for row in _rows(name):
            fingerprint.update("|".join(str(value) for value in row).encode() + b"\n")
        fingerprint.update(b"--\n")
    return fingerprint.hexdigest()
