"""Benchmark of transition ingestion with all its constraints against a raw COPY.

Usage: `python -m bench.billing_ingest [leases]`. Both take the same bytes with the same login. One goes
into a table without a key; the other through a staging table into the transition log: keys, the chain to
the previous transition, event order, row-level security and append-only triggers.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_LOG_LEVEL", "ERROR")
django.setup()

from django.db import connection, connections, transaction  # noqa: E402

from bench.figures import Figures  # noqa: E402
from broker.models import Lease  # noqa: E402
from tenants.services.rls import tenant_scope  # noqa: E402
from tests.billing import random_tenants  # noqa: E402
from tests.billing.histories import create_priced_offering  # noqa: E402

LEASES, TENANTS, REPEATS = 10_000, 10, 5
SINCE = datetime(2026, 3, 20, tzinfo=UTC)
SQL = Path(__file__).with_name("steps.sql").read_text()
LEDGER, STEPS, BARE = "broker_transition", "bench_steps", "bench_bare"
GIVEN = (
    "lease_id, seq, tenant_id, at, prev_seq, prev_at, before, after, reason, cause, offering_id, project_id, quantity,"
    " price_class, generation, actor_kind, actor_id, actor_label"
)


def create_tables_and_transitions(leases: int) -> list[tuple[str, bytes]]:
    """Create both tables and the leases; return each tenant's transitions as bytes."""
    with connections["owner"].cursor() as cursor:
        for table in (STEPS, BARE):
            cursor.execute(f"CREATE TABLE {table} AS SELECT {GIVEN} FROM {LEDGER} WITH NO DATA")
            cursor.execute(f"GRANT SELECT, INSERT, TRUNCATE ON {table} TO gpubroker_worker")
    offering, found = create_priced_offering(), []
    for _ in range(TENANTS):
        story = random_tenants.create_random_tenant("UTC")
        tenant, project = story.tenant.pk, story.projects[0]
        values = {"tenant": tenant, "project": project.pk, "offering": offering.pk, "since": SINCE}
        with tenant_scope(tenant), connection.cursor() as cursor:
            Lease.objects.bulk_create(
                Lease(
                    id=f"{tenant}_{n}", tenant=story.tenant, project=project, offering=offering, name="bench",
                    state="released", seq=14, state_since=SINCE, created_at=SINCE, max_duration_s=3600,
                )
                for n in range(1, leases // TENANTS + 1)
            )  # fmt: skip
            cursor.execute(SQL, {**values, "leases": leases // TENANTS})
            with cursor.cursor.copy(f"COPY {STEPS} TO STDOUT") as copy:
                found.append((tenant, b"".join(bytes(part) for part in copy)))
            cursor.execute(f"TRUNCATE {STEPS}")
    return found


def time_copy(handed: list[tuple[str, bytes]]) -> float:
    begun = perf_counter()
    with transaction.atomic():
        for _, rows in handed:
            _copy(BARE, rows)
        spent = perf_counter() - begun
        transaction.set_rollback(True)
    return spent


def time_ingestion(handed: list[tuple[str, bytes]]) -> float:
    """Time loading all transitions through the staging table; the transaction is rolled back."""
    begun = perf_counter()
    with transaction.atomic():
        for tenant, rows in handed:
            with tenant_scope(tenant), connection.cursor() as cursor:
                _copy(STEPS, rows)
                cursor.execute(
                    f"INSERT INTO {LEDGER} ({GIVEN}) SELECT {GIVEN} FROM {STEPS} WHERE tenant_id = %s"
                    " ORDER BY lease_id, seq ON CONFLICT DO NOTHING",
                    [tenant],
                )
                if cursor.rowcount < len(rows.splitlines()):
                    raise RuntimeError(f"only {cursor.rowcount} steps were taken in")
        spent = perf_counter() - begun
        transaction.set_rollback(True)
    return spent


def _copy(table: str, rows: bytes) -> None:
    with connection.cursor() as cursor, cursor.cursor.copy(f"COPY {table} FROM STDIN") as copy:
        copy.write(rows)


def main(leases: int = LEASES) -> None:
    figures, handed = Figures("billing_ingest"), create_tables_and_transitions(leases)
    steps = sum(len(rows.splitlines()) for _, rows in handed)
    raw, whole = [], []
    for _ in range(REPEATS):
        with connections["owner"].cursor() as cursor:
            cursor.execute("VACUUM")
        raw.append(time_copy(handed))
        whole.append(time_ingestion(handed))
    figures.report_rate("ingest", steps / median(whole), baseline=steps / median(raw), at_least=0.20)
    figures.report_min("ingest_a_second", steps / median(whole), unit="1/s", at_least=50_000)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
