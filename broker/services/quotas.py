"""Quotas on a project's path, taken and returned by conditional UPDATEs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from broker.models import Lease
from ports import clock
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models import Project, QuotaKind
from tenants.services.errors import Fix, QuotaExceeded

BLOCK_NEW_SQL = "SELECT pg_advisory_xact_lock_shared(1, hashtext(%s::text))"


@dataclass(frozen=True)
class CheckedQuota:
    """A quota on the path, as it was when it was checked."""

    id: str
    kind: str
    project_id: str
    used: int
    limit: int
    requested: int
    is_taken: bool
    counted_in: datetime | None  # start of the window, for GPU-hours


def block_new_quotas(tenant_id: str) -> None:
    """Block new quotas of the tenant until this transaction ends.

    Waits for one that is being created. A new quota counts what is held at that moment. Whoever takes quota
    calls this first, before it has locked anything, and so is either counted or finds the new quota on its path.
    """
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(BLOCK_NEW_SQL, [tenant_id])


def gate(lease: Lease, *, now: datetime) -> Callable[[], None]:
    """Take concurrent units and GPU-hours on every node of the project's path."""
    units = lease.offering.milli_units * lease.quantity
    wanted = {QuotaKind.UNITS: units, QuotaKind.GPU_SECONDS: units * lease.max_duration_s}
    return send_quota_query(lease, wanted, now=now)


def take_quota(lease: Lease, wanted: Mapping[QuotaKind, int], *, now: datetime) -> None:
    """Raise what the lease holds of each kind, or raise QuotaExceeded.

    What was taken is recorded on the lease (`quota_uses`), part by part: an extension may fall into another
    window or find other quotas on the path, and exactly what was taken is returned. The caller saves the
    lease.
    """
    send_quota_query(lease, wanted, now=now)()


def send_quota_query(lease: Lease, wanted: Mapping[QuotaKind, int], *, now: datetime) -> Callable[[], None]:
    """Send the quota query of `take_quota` and return a function that evaluates its result."""
    more = {kind: amount - lease.quota_uses.get(kind, {}).get("amount", 0) for kind, amount in wanted.items()}
    more = {kind: amount for kind, amount in more.items() if amount > 0}
    window, cursor = clock.month_start(now), sql_statements.prepared_cursor()
    if more:
        cursor.execute(load_sql("broker/quotas/take_quota"), _query_parameters(more, lease.project, window))

    def check() -> None:
        with cursor:
            rows = [CheckedQuota(*row) for row in cursor.fetchall()] if more else []
        _check_all_taken(rows, lease.project_id)
        for kind in more:
            use = lease.quota_uses.setdefault(str(kind), {"amount": 0, "parts": []})
            use["amount"] = wanted[kind]
            if kind == QuotaKind.GPU_SECONDS:  # for quotas created later
                windows = use.setdefault("windows", {})
                windows[window.isoformat()] = windows.get(window.isoformat(), 0) + more[kind]
            use["parts"] += [
                [row.id, row.requested, (row.counted_in or window).isoformat()] for row in rows if row.kind == kind
            ]

    return check


def note_unlimited_use(lease: Lease, wanted: Mapping[QuotaKind, int]) -> None:
    """Record amounts of kinds without a quota, for quotas created later."""
    for kind, amount in wanted.items():
        use = lease.quota_uses.setdefault(str(kind), {"amount": 0, "parts": []})
        use["amount"] = max(use["amount"], amount)


def return_quota(lease: Lease, *, used_unit_seconds: int) -> None:
    """Return what the lease held; for GPU-hours only the unused part."""
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("broker/quotas/return_quota"), {"lease": lease.pk, "used": used_unit_seconds})


def return_unused_quota(lease: Lease, *, used_unit_seconds: int) -> None:
    """Return what a stopped lease held and keep only the GPU-hours it used."""
    return_quota(lease, used_unit_seconds=used_unit_seconds)
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("broker/quotas/keep_used"), {"lease": lease.pk, "used": used_unit_seconds})
    lease.refresh_from_db(fields=["quota_uses"])


def take_storage(project: Project, gib: int, *, now: datetime) -> None:
    """Take storage for a volume on the project's path, or raise QuotaExceeded."""
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(
            load_sql("broker/quotas/take_quota"),
            _query_parameters({QuotaKind.STORAGE: gib}, project, clock.month_start(now)),
        )
        rows = [CheckedQuota(*row) for row in cursor.fetchall()]
    _check_all_taken(rows, project.pk)


def return_storage(project: Project, gib: int) -> None:
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("broker/quotas/return_storage"), {"path": project.path, "gib": gib})


def _query_parameters(amounts: Mapping[QuotaKind, int], project: Project, window: datetime) -> dict[str, Any]:
    return {
        "kinds": [str(kind) for kind in amounts],
        "amounts": list(amounts.values()),
        "path": project.path,
        "window": window,
    }


def _check_all_taken(rows: Iterable[CheckedQuota], project_id: str) -> None:
    for row in rows:
        if not row.is_taken:
            raise _exceeded_error(project_id, row)


DISPLAY_UNITS: dict[str, tuple[str, int, str]] = {
    QuotaKind.UNITS: ("concurrent units", 1000, "units"),
    QuotaKind.GPU_SECONDS: ("GPU-hours this month", 3_600_000, "unit hours"),
    QuotaKind.STORAGE: ("volumes", 1, "GiB"),
    QuotaKind.BURN: ("spend rate", 1_000_000_000, "per hour"),
}


def format_amount(kind: str, amount: int) -> str:
    """Format an amount for people, with at most two decimals."""
    whole, rest = divmod(amount * 100, DISPLAY_UNITS[kind][1])
    hundredths = whole + (1 if rest else 0)
    text = f"{hundredths // 100:,}"
    return text if hundredths % 100 == 0 else f"{text}.{hundredths % 100:02d}".rstrip("0")


FIX_BY_KIND = {QuotaKind.STORAGE.value: "Choose a smaller volume, delete one, or ask an owner to raise the quota."}
DEFAULT_FIX = "Choose a smaller slice or a shorter duration, release a lease, or ask an owner to raise the quota."


def _exceeded_error(project_id: str, row: CheckedQuota) -> QuotaExceeded:
    name, _, unit = DISPLAY_UNITS[row.kind]
    where = "this project" if row.project_id == project_id else "a parent project"
    free = max(row.limit - row.used, 0)
    extra: dict[str, Any] = {
        "quota": {"id": row.id, "kind": row.kind, "used": row.used, "limit": row.limit, "requested": row.requested}
    }
    return QuotaExceeded(
        f"The quota of {where} for {name} is {format_amount(row.kind, row.limit)} {unit};"
        f" {format_amount(row.kind, row.used)} are in use, {format_amount(row.kind, free)} free,"
        f" and this needs {format_amount(row.kind, row.requested)}.",
        fix=Fix(FIX_BY_KIND.get(row.kind, DEFAULT_FIX), "GET", "/api/v1/quota-usage"),
        **extra,
    )
