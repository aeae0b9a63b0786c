"""Benchmark of rating against a plain SQL aggregate over the same rows: `python -m bench.billing`.

It needs a migrated, empty database. Five runs each: list prices only, every second lease quoted, and again with
nothing new.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection, connections, transaction  # noqa: E402

from bench.figures import Figures  # noqa: E402
from billing.services.catalogue import price_list  # noqa: E402
from billing.services.periods import billing_periods  # noqa: E402
from billing.services.rating import lease_rating  # noqa: E402
from broker.models import GpuModel, Offering  # noqa: E402
from tenants.models import Project, Tenant  # noqa: E402
from tenants.services.actors import SYSTEM  # noqa: E402
from tenants.services.rls import system_scope, tenant_scope  # noqa: E402

HERE = Path(__file__).parent
SMALL = sys.argv[1:] == ["small"]
TENANTS, LEASES, INTERVALS_PER_LEASE, LENGTH_S = *((5, 4, 3) if SMALL else (250, 80, 10)), 23 * 3600
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
START = datetime(2026, 3, 20, tzinfo=UTC)
REPEATS = 2 if SMALL else 5


def create_usage() -> None:
    """Write the offerings, their prices and every tenant's history."""
    GpuModel.objects.get_or_create(
        name="H200-141GB", defaults={"memory_gb": 141, "memory_grid": 8, "compute_slices": 7, "spec": {}}
    )
    offerings = [
        Offering.objects.create(
            gpu_model_id="H200-141GB",
            profile=f"p{n}",
            isolation="hardware",
            price_class="on_demand",
            region="eu-1",
            label=f"p{n}",
            milli_units=1000,
            memory_gb=18,
            created_at=START,
        )
        for n in range(20)
    ]
    for n, offering in enumerate(offerings):
        for days in (0, 6, 40):
            price_list.publish_price(
                offering=offering,
                currency="EUR",
                nano_per_hour=1_040_000_001 + n * 10**6 + days,
                since=START + timedelta(days=days),
                actor=SYSTEM,
                now=START,
            )
    rows = (HERE / "usage.sql").read_text()
    for n in range(TENANTS):
        tenant, project = f"ten_{n:026d}", f"prj_{n:026d}"
        with tenant_scope(tenant), connection.cursor() as cursor:
            Tenant.objects.create(pk=tenant, name=tenant, time_zone=ZONES[n % len(ZONES)], created_at=START)
            Project.objects.create(pk=project, tenant_id=tenant, path=[project], name="p", created_at=START)
            wanted = {
                "tenant": tenant,
                "project": project,
                "offerings": [offering.pk for offering in offerings],
                "kinds": len(offerings),
                "leases": LEASES,
                "stretches": INTERVALS_PER_LEASE,
                "length": LENGTH_S,
                "start": START + timedelta(days=1),
            }
            cursor.execute(rows, wanted)


def add_quotes() -> None:
    """Let every second lease redeem a quote of its offering's first price."""
    with system_scope():
        tenants = list(Tenant.objects.values_list("pk", flat=True))
    for tenant in tenants:
        with tenant_scope(tenant), connection.cursor() as cursor:
            cursor.execute((HERE / "quotes.sql").read_text(), {"start": START})


def create_months(now: datetime) -> None:
    """Create every tenant's months, which happens once a month and not per run."""
    with system_scope():
        tenants = list(Tenant.objects.all())
    for tenant in tenants:
        with tenant_scope(tenant.pk):
            billing_periods.ensure_periods(tenant, since=START, until=now)


def vacuum() -> None:
    """Vacuum and analyze, as autovacuum eventually does."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def time_baseline() -> float:
    """Time the baseline, with the role and the settings of rating."""
    with system_scope(), connection.cursor() as cursor:
        for name, value in lease_rating.BULK_PLAN.items():
            cursor.execute(f"SET LOCAL {name} = {value}")
        begun = perf_counter()
        cursor.execute((HERE / "aggregate.sql").read_text())
        cursor.fetchone()
        return perf_counter() - begun


def time_rating(now: datetime, *, expect_rows: bool, keep: bool = False) -> float:
    """Time one whole run; rolled back unless kept, so that it can be repeated."""
    with transaction.atomic():
        begun = perf_counter()
        outcome = lease_rating.rate_all_leases(now=now, whole=True)
        took = perf_counter() - begun
        if bool(outcome.written) != expect_rows or outcome.gaps or outcome.broken:
            raise RuntimeError(f"the run wrote {outcome.written} charges and left {outcome.gaps or outcome.broken}")
        transaction.set_rollback(not keep)
    return took


def main() -> None:
    figures, now = Figures("billing"), START + timedelta(days=60)
    create_usage()
    create_months(now)
    vacuum()
    first, quoted, again, base = [], [], [], []
    for times, keeps in ((first, False), (quoted, True)):
        for n in range(REPEATS):
            vacuum()  # what an undone run leaves behind would slow the next one
            base.append(time_baseline())
            times.append(time_rating(now, expect_rows=True, keep=keeps and n == REPEATS - 1))
        if not keeps:
            add_quotes()
    vacuum()
    for _ in range(REPEATS):
        base.append(time_baseline())
        again.append(time_rating(now, expect_rows=False))
    figures.report_time("rating", median(first), baseline=median(base), at_most=3.5)
    figures.report_time("rating_quoted", median(quoted), baseline=median(base), at_most=3.5)
    figures.report_time("rating_again", median(again), baseline=median(base), at_most=2)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
