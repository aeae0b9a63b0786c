"""Quotas of a project's whole path, taken and given back by conditional UPDATEs that PostgreSQL checks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from broker.models import Lease
from ports import database
from tenants.models import Project, QuotaKind
from tenants.services.quotas import window_of as window_of
from tenants.services.refusals import Fix, QuotaExceeded

# Rows are locked root first, whoever asks, so that two paths through one tree never wait for each other
# in a circle. A window that has passed counts from nought again, and no row goes back to one: who read the clock
# before the month's border and comes after others who read it later counts in the window that the row has reached.
# Burn is asked for by a later gate, once all of the path is locked for the other kinds, so it is given back last, too.
TAKE = """
WITH asked AS (SELECT * FROM unnest(%(kinds)s::text[], %(amounts)s::bigint[]) AS a(kind, amount)),
locked AS (
  SELECT q.id, q.kind, q.project_id, q.soft_limit, a.amount, q.used, q.window_start,
         CASE WHEN q.kind = 'gpu_seconds' THEN greatest(q.window_start, %(window)s::timestamptz) END AS counted_in
    FROM tenants_quota q JOIN asked a USING (kind)
   WHERE q.project_id = ANY(%(path)s::text[])
   ORDER BY array_position(%(path)s::text[], q.project_id::text), q.kind
     FOR NO KEY UPDATE OF q
), on_path AS (
  SELECT id, kind, project_id, soft_limit, amount, counted_in,
         CASE WHEN kind = 'gpu_seconds' AND window_start IS DISTINCT FROM counted_in THEN 0 ELSE used END AS used
    FROM locked
), taken AS (
  UPDATE tenants_quota q
     SET used = p.used + p.amount, window_start = coalesce(p.counted_in, q.window_start)
    FROM on_path p
   WHERE q.id = p.id AND p.used + p.amount <= p.soft_limit
  RETURNING q.id
)
SELECT p.id, p.kind, p.project_id, p.used, p.soft_limit, p.amount, t.id IS NOT NULL, p.counted_in
  FROM on_path p LEFT JOIN taken t USING (id)
"""
# What stands on the row, not on a copy read earlier: a quota that was made meanwhile has put its part there.
# Seconds that were used count against what was taken first. Never below nought: a count that is wrong is told by a
# proof on the operators' page, and must not keep a lease from letting go of its card.
GIVE_BACK = """
WITH parts AS (
  SELECT kind, part ->> 0 AS quota, (part ->> 1)::bigint AS amount, (part ->> 2)::timestamptz AS taken_in, number
    FROM broker_lease l, jsonb_each(l.quota_uses) AS u(kind, use),
         jsonb_array_elements(use -> 'parts') WITH ORDINALITY AS p(part, number)
   WHERE l.id = %(lease)s
), backs AS (
  SELECT quota, amount, NULL::timestamptz AS counted_in FROM parts WHERE kind <> 'gpu_seconds'
   UNION ALL
  SELECT quota, amount - least(amount, greatest(%(used)s::bigint - (sum(amount) OVER earlier - amount), 0)), taken_in
    FROM parts WHERE kind = 'gpu_seconds' WINDOW earlier AS (PARTITION BY quota ORDER BY number)
), uses AS (
  SELECT q.id, b.amount
    FROM (SELECT quota, counted_in, sum(amount)::bigint AS amount FROM backs GROUP BY 1, 2) b
    JOIN tenants_quota q ON q.id = b.quota AND (b.counted_in IS NULL OR b.counted_in = q.window_start)
    JOIN tenants_project p ON p.id = q.project_id
   WHERE b.amount > 0
   ORDER BY q.kind = 'burn', cardinality(p.path), q.kind FOR NO KEY UPDATE OF q
)
UPDATE tenants_quota q SET used = greatest(q.used - u.amount, 0) FROM uses u WHERE q.id = u.id
"""
# A stopped lease keeps of its GPU-hours what it used, counted against what was taken first, and nothing else:
# resumed, it takes what it lacks, as an extended one does.
SET_ASIDE = """
WITH held AS (SELECT quota_uses #> '{gpu_seconds}' AS use FROM broker_lease WHERE id = %(lease)s),
parts AS (
  SELECT part, number, (part ->> 1)::bigint AS amount,
         sum((part ->> 1)::bigint) OVER (PARTITION BY part ->> 0 ORDER BY number) - (part ->> 1)::bigint AS earlier
    FROM held, jsonb_array_elements(use -> 'parts') WITH ORDINALITY AS p(part, number)
), windows AS (
  SELECT key, value::bigint AS amount, sum(value::bigint) OVER (ORDER BY key) - value::bigint AS earlier
    FROM held, jsonb_each_text(use -> 'windows') AS w(key, value)
), kept AS (
  SELECT (SELECT jsonb_agg(jsonb_set(part, '{1}', to_jsonb(least(amount, %(used)s - earlier))) ORDER BY number)
            FROM parts WHERE earlier < %(used)s) AS parts,
         (SELECT jsonb_object_agg(key, least(amount, %(used)s - earlier))
            FROM windows WHERE earlier < %(used)s) AS windows
)
UPDATE broker_lease l
   SET quota_uses = CASE WHEN held.use IS NULL THEN '{}' ELSE jsonb_build_object('gpu_seconds', jsonb_build_object(
         'amount', least((held.use ->> 'amount')::bigint, %(used)s),
         'parts', coalesce(kept.parts, '[]'), 'windows', coalesce(kept.windows, '{}'))) END
  FROM held, kept WHERE l.id = %(lease)s
"""
# Every quota on the path has it: taken when the volume was made, or counted when the quota was.
GIVE_ROOM_BACK = """
WITH on_path AS (
  SELECT id FROM tenants_quota WHERE kind = 'storage' AND project_id = ANY(%(path)s::text[])
   ORDER BY array_position(%(path)s::text[], project_id::text) FOR NO KEY UPDATE
)
UPDATE tenants_quota q SET used = q.used - %(gib)s FROM on_path p WHERE p.id = q.id
"""


@dataclass(frozen=True)
class QuotaRow:
    """One quota on the path, as it stood when it was asked."""

    id: str
    kind: str
    project_id: str
    used: int
    limit: int
    asked: int
    taken: bool
    counted_in: datetime | None  # the window, of GPU-hours


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Take concurrent units and GPU-hours for the lease on every node of its project's path."""
    units = lease.offering.milli_units * lease.quantity
    wanted = {QuotaKind.UNITS: units, QuotaKind.GPU_SECONDS: units * lease.max_duration_s}
    return ask(lease, wanted, now=now)


def take(lease: Lease, wanted: Mapping[QuotaKind, int], *, now: datetime) -> None:
    """Raise what the lease holds of each kind to the wanted amount, or raise QuotaExceeded.

    What was taken stands on the lease (`quota_uses`), part by part: an extension may fall into another window
    or find other quotas on the path, and exactly what was taken is given back. The caller saves the lease.
    """
    ask(lease, wanted, now=now)()


def ask(lease: Lease, wanted: Mapping[QuotaKind, int], *, now: datetime) -> Callable[[], None]:
    """Do what `take` does in two parts: the statement is sent, and what is returned reads and judges its answer."""
    more = {kind: amount - lease.quota_uses.get(kind, {}).get("amount", 0) for kind, amount in wanted.items()}
    more = {kind: amount for kind, amount in more.items() if amount > 0}
    window, cursor = window_of(now), database.prepared()
    if more:
        cursor.execute(TAKE, _asked(more, lease.project, window))

    def judge() -> None:
        with cursor:
            rows = [QuotaRow(*row) for row in cursor.fetchall()] if more else []
        _all_taken(rows, lease.project_id)
        for kind in more:
            use = lease.quota_uses.setdefault(str(kind), {"amount": 0, "parts": []})
            use["amount"] = wanted[kind]
            if kind == QuotaKind.GPU_SECONDS:  # a quota that is made later counts by it
                windows = use.setdefault("windows", {})
                windows[window.isoformat()] = windows.get(window.isoformat(), 0) + more[kind]
            use["parts"] += [
                [row.id, row.asked, (row.counted_in or window).isoformat()]
                for row in rows
                if row.kind == kind
            ]

    return judge


def note(lease: Lease, wanted: Mapping[QuotaKind, int]) -> None:
    """Write on the lease what it would take of kinds that nothing limits yet; a quota made later counts it."""
    for kind, amount in wanted.items():
        use = lease.quota_uses.setdefault(str(kind), {"amount": 0, "parts": []})
        use["amount"] = max(use["amount"], amount)


def give_back(lease: Lease, *, used_unit_seconds: int) -> None:
    """Return what the lease held; of its GPU-hours only what it did not use."""
    with database.prepared() as cursor:
        cursor.execute(GIVE_BACK, {"lease": lease.pk, "used": used_unit_seconds})


def set_aside(lease: Lease, *, used_unit_seconds: int) -> None:
    """Return what a lease that was stopped held; it remembers the GPU-hours it used."""
    give_back(lease, used_unit_seconds=used_unit_seconds)
    with database.prepared() as cursor:
        cursor.execute(SET_ASIDE, {"lease": lease.pk, "used": used_unit_seconds})
    lease.refresh_from_db(fields=["quota_uses"])


def take_room(project: Project, gib: int, *, now: datetime) -> None:
    """Take room for a volume from every quota on the project's path, or raise QuotaExceeded."""
    with database.prepared() as cursor:
        cursor.execute(TAKE, _asked({QuotaKind.STORAGE: gib}, project, window_of(now)))
        rows = [QuotaRow(*row) for row in cursor.fetchall()]
    _all_taken(rows, project.pk)


def give_room_back(project: Project, gib: int) -> None:
    with database.prepared() as cursor:
        cursor.execute(GIVE_ROOM_BACK, {"path": project.path, "gib": gib})


def _asked(amounts: Mapping[QuotaKind, int], project: Project, window: datetime) -> dict[str, Any]:
    return {
        "kinds": [str(kind) for kind in amounts],
        "amounts": list(amounts.values()),
        "path": project.path,
        "window": window,
    }


def _all_taken(rows: Iterable[QuotaRow], project_id: str) -> None:
    for row in rows:
        if not row.taken:
            raise _refusal(project_id, row)


SHOWN: dict[str, tuple[str, int, str]] = {
    QuotaKind.UNITS: ("concurrent units", 1000, "units"),
    QuotaKind.GPU_SECONDS: ("GPU-hours this month", 3_600_000, "unit hours"),
    QuotaKind.STORAGE: ("volumes", 1, "GiB"),
    QuotaKind.BURN: ("burn rate", 1_000_000_000, "per hour"),
}


def shown(kind: str, amount: int) -> str:
    """Write an amount of a kind as people read it, with at most two decimals and no float."""
    whole, rest = divmod(amount * 100, SHOWN[kind][1])
    hundredths = whole + (1 if rest else 0)
    text = f"{hundredths // 100:,}"
    return text if hundredths % 100 == 0 else f"{text}.{hundredths % 100:02d}".rstrip("0")


MEND = {QuotaKind.STORAGE.value: "Ask for a smaller volume, delete one, or ask an owner to raise the quota."}
MEND_ANY = "Ask for a smaller slice or a shorter time, release a lease, or ask an owner to raise the quota."


def _refusal(project_id: str, row: QuotaRow) -> QuotaExceeded:
    name, _, unit = SHOWN[row.kind]
    where = "this project" if row.project_id == project_id else "a project above this one"
    free = max(row.limit - row.used, 0)
    extra: dict[str, Any] = {
        "quota": {"id": row.id, "kind": row.kind, "used": row.used, "limit": row.limit, "asked": row.asked}
    }
    return QuotaExceeded(
        f"The quota of {where} for {name} is {shown(row.kind, row.limit)} {unit}; {shown(row.kind, row.used)} are"
        f" in use, {shown(row.kind, free)} free, and this asks for {shown(row.kind, row.asked)}.",
        fix=Fix(MEND.get(row.kind, MEND_ANY), "GET", "/api/v1/quota-usage"),
        **extra,
    )
