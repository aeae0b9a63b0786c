"""What must be true of capacity, quotas and ledger at every moment, asked of the rows themselves.

Each proof is a query for counterexamples: none found, and it holds. Must run as staff.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from ports import clock

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that must hold, and the query that names what contradicts it."""

    name: str
    says: str
    counterexamples: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What a look at a claim found, and when."""

    name: str
    says: str
    found: int
    examples: tuple[str, ...]
    checked_at: datetime

    @property
    def holds(self) -> bool:
        return self.found == 0


# What ended longer ago was asked about while it was young, and its rows can no longer change.
RECENT = """(SELECT * FROM broker_lease
              WHERE ended_at IS NULL OR ended_at > %(now)s::timestamptz - interval '2 days')"""
HELD = "('provisioning', 'active', 'stopping', 'releasing', 'failed')"
CLAIMS = (
    Claim(
        "no oversell",
        "No unit of a card is held twice.",
        """
        SELECT a.gpu_id || ' ' || a.placement FROM broker_allocation a JOIN broker_allocation b
            ON b.gpu_id = a.gpu_id AND b.id > a.id AND b.placement && a.placement
         WHERE a.released_at IS NULL AND b.released_at IS NULL
        """,
    ),
    Claim(
        "no lease without its place",
        "Every lease that holds capacity holds as many places as it asked for.",
        f"""
        SELECT l.id FROM broker_lease l LEFT JOIN broker_allocation a
            ON a.lease_id = l.id AND a.generation = l.generation AND a.released_at IS NULL
         WHERE l.state IN {HELD} GROUP BY l.id HAVING count(a.id) <> l.quantity
        """,
    ),
    Claim(
        "no place without a lease",
        "Every place that is held belongs to the present generation of a lease that holds capacity, or to its move,"
        " or is being left.",
        f"""
        SELECT a.id FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id
         WHERE a.released_at IS NULL AND a.leaving_since IS NULL
           AND (l.state NOT IN {HELD} OR a.generation <> l.generation AND NOT (a.for_move AND EXISTS (
                 SELECT FROM broker_move m WHERE m.lease_id = l.id AND m.state = 'moving')))
        """,
    ),
    Claim(
        "quotas match holdings",
        "What a quota counts as used is the sum of what the leases below it hold.",
        """
        SELECT q.id FROM tenants_quota q
          LEFT JOIN (tenants_project p JOIN broker_lease l ON l.project_id = p.id AND l.state <> 'released')
            ON q.project_id = ANY(p.path)
         WHERE q.kind NOT IN ('gpu_seconds', 'storage') GROUP BY q.id
        HAVING q.used <> coalesce(sum((l.quota_uses -> q.kind ->> 'amount')::bigint), 0)
         UNION ALL
        SELECT q.id FROM tenants_quota q JOIN (
                 SELECT part->>0 AS quota, (part->>2)::timestamptz AS counted_in, sum((part->>1)::bigint) AS taken
                   FROM broker_lease l, jsonb_array_elements(l.quota_uses->'gpu_seconds'->'parts') part
                  WHERE l.state <> 'released' GROUP BY 1, 2) h
            ON h.quota = q.id AND h.counted_in = q.window_start
         WHERE q.kind = 'gpu_seconds' AND q.used < h.taken
         UNION ALL
        SELECT q.id FROM tenants_quota q
          LEFT JOIN (tenants_project p JOIN broker_volume v ON v.project_id = p.id AND v.state <> 'deleted')
            ON q.project_id = ANY(p.path)
         WHERE q.kind = 'storage' GROUP BY q.id HAVING q.used <> coalesce(sum(v.size_gib), 0)
        """,
    ),
    Claim(
        "ledger chains whole",
        "Every step of a lease follows the one before it, and the last one is where the lease stands.",
        f"""
        SELECT t.lease_id FROM {RECENT} l JOIN broker_transition t ON t.lease_id = l.id
          LEFT JOIN broker_transition p ON p.lease_id = t.lease_id AND p.seq = t.seq - 1
         WHERE t.seq > 0 AND (p.after IS DISTINCT FROM t.before OR p.at IS DISTINCT FROM t.prev_at)
         UNION
        SELECT l.id FROM {RECENT} l LEFT JOIN broker_transition t ON t.lease_id = l.id AND t.seq = l.seq
         WHERE t.after IS DISTINCT FROM l.state
            OR EXISTS (SELECT FROM broker_transition x WHERE x.lease_id = l.id AND x.seq = l.seq + 1)
        """,
    ),
)


def check(claims: Sequence[Claim] = CLAIMS, *, now: datetime) -> list[Proof]:
    """Look for counterexamples of every claim, all in one snapshot of the rows."""
    each = (
        f"SELECT {n}, count(*), (array_agg(found.name))[1:{SHOWN}] FROM ({claim.counterexamples}) found (name)"
        for n, claim in enumerate(claims)
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(each), {"now": now})
        rows = sorted(cursor.fetchall())
    at = clock.now()
    return [
        Proof(claim.name, claim.says, count, tuple(examples or ()), at)
        for claim, (_, count, examples) in zip(claims, rows, strict=True)
    ]
