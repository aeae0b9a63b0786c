"""Benchmark of the ledger against a bare table, and of its trial balance.

Usage: `python -m bench.billing_ledger`. Both tables have the same columns and take the same rows by the
same statement, with the same login, each tenant's in a transaction of its own. The bare table has no
key, check, trigger or row-level security.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection, connections  # noqa: E402

from bench.figures import Figures  # noqa: E402
from billing.models import LedgerAccount, LedgerTransfer  # noqa: E402
from billing.services.ledger import ledger_balances  # noqa: E402
from tenants.models import Tenant  # noqa: E402
from tenants.services.rls import staff_scope, tenant_scope  # noqa: E402

INSERT = (Path(__file__).parent / "transfers.sql").read_text()
TENANTS, INVOICES, REPEATS = (5, 20, 2) if sys.argv[1:] == ["small"] else (100, 1000, 7)
START = datetime(2026, 3, 20, tzinfo=UTC)
LEDGER, BARE = LedgerTransfer._meta.db_table, "bare_transfers"
TRIAL_S_FOR_10M = 3


def build() -> list[dict[str, object]]:
    """Open all accounts and create the bare table; return each tenant's statement parameters."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"CREATE TABLE {BARE} AS SELECT * FROM {LEDGER} WITH NO DATA")
        cursor.execute(f"ALTER TABLE {BARE} ALTER recorded_at SET DEFAULT clock_timestamp()")
        cursor.execute(f"CREATE SEQUENCE {BARE}_id")
        cursor.execute(f"ALTER TABLE {BARE} ALTER id SET DEFAULT nextval('{BARE}_id')")
    found = []
    for n in range(TENANTS):
        tenant = f"ten_{n:026d}"
        with tenant_scope(tenant), connection.cursor() as cursor:
            Tenant.objects.create(pk=tenant, name=tenant, created_at=START)
            for kind in ("receivable", "accrued"):
                LedgerAccount.objects.create(tenant_id=tenant, type=kind, currency="EUR", opened_at=START)
            cursor.execute("SELECT open_platform_account(unnest(ARRAY['revenue', 'cash']), 'EUR', %s)", [START])
            accounts = dict(LedgerAccount.objects.values_list("type", "pk"))
        found.append({"tenant": tenant, "at": START, **accounts})
    return found


def took(table: str, wanted: list[dict[str, object]], turn: int) -> float:
    """Time the rows of all tenants."""
    spent, statement = 0.0, INSERT.replace("/*table*/", table)
    for number, each in enumerate(wanted):
        first = (turn * TENANTS + number) * INVOICES
        begun = perf_counter()
        with tenant_scope(str(each["tenant"])), connection.cursor() as cursor:
            cursor.execute(statement, {**each, "first": first, "last": first + INVOICES - 1})
        spent += perf_counter() - begun
    return spent


def reckoned() -> float:
    """Time the trial balance of all transfers; it must equal the stored balances."""
    begun = perf_counter()
    with staff_scope():
        (totals,), drifts = ledger_balances.recomputed_trial_balance()
    spent = perf_counter() - begun
    if drifts or not totals.balanced:
        raise RuntimeError(f"{len(drifts)} accounts are off their transfers")
    return spent


def main() -> None:
    figures, wanted = Figures("billing"), build()
    rows = TENANTS * INVOICES * 3
    bare, ledger = [], []
    for turn in range(REPEATS):
        bare.append(took(BARE, wanted, turn))
        ledger.append(took(LEDGER, wanted, turn))
    figures.report_rate("ledger", rows / median(ledger), baseline=rows / median(bare), at_least=0.25)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    spent = median(reckoned() for _ in range(3))
    share = rows * REPEATS / 10_000_000
    figures.report_max("ledger_trial_balance", spent / share, unit="s for 10 M rows", at_most=TRIAL_S_FOR_10M)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
