"""Invariant checks of capacity, quotas and the ledger, as SQL queries.

Each query selects counterexamples: none found, and the invariant holds. Must run as staff.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from ports import clock
from ports.postgres.sql_statements import load_sql

MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant and the query that selects its counterexamples."""

    name: str
    description: str
    counterexamples: str


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """The result of checking an invariant."""

    name: str
    description: str
    found: int
    examples: tuple[str, ...]
    checked_at: datetime

    @property
    def holds(self) -> bool:
        return self.found == 0


# Leases that ended longer ago were checked before, and their rows can no longer change.
RECENT_LEASES_SQL = """
WITH recent_lease AS NOT MATERIALIZED (
  SELECT * FROM broker_lease WHERE ended_at IS NULL OR ended_at > %(now)s::timestamptz - interval '2 days'
)
"""
CLAIMS = {  # the name of an invariant, and its description
    "no oversell": "No unit of a GPU is allocated twice.",
    "no lease without allocation": "Every lease that holds capacity has as many allocations as requested.",
    "no orphan allocations": (
        "Every allocation belongs to the current generation of a lease that holds capacity, or to its relocation,"
        " or is being released."
    ),
    "quotas match holdings": "The used amount of every quota equals the sum of its leases.",
    "event chain intact": (
        "Every state change of a lease follows the previous one, and the last one matches its state."
    ),
}
INVARIANTS = tuple(
    Invariant(name, description, load_sql(f"broker/reports/invariants/{name.replace(' ', '_')}"))
    for name, description in CLAIMS.items()
)


def check_invariants(claims: Sequence[Invariant] = INVARIANTS, *, now: datetime) -> list[InvariantResult]:
    """Run the counterexample queries of all invariants in one snapshot."""
    each = (
        f"SELECT {n}, count(*), (array_agg(found.name))[1:{MAX_EXAMPLES}] FROM ({claim.counterexamples}) found (name)"
        for n, claim in enumerate(claims)
    )
    with connection.cursor() as cursor:
        cursor.execute(RECENT_LEASES_SQL + " UNION ALL ".join(each), {"now": now})
        rows = sorted(cursor.fetchall())
    at = clock.now()
    return [
        InvariantResult(claim.name, claim.description, count, tuple(examples or ()), at)
        for claim, (_, count, examples) in zip(claims, rows, strict=True)
    ]
