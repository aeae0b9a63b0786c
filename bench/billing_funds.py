"""Benchmark of the budget check with 100,000 running leases.

Usage: `python -m bench.billing_funds [leases]`. A prepaid tenant has them all in one project with a
budget; each has a hold in budget and wallet. Some hundred more ask one after the other, as in the
transaction that queues them: budget, wallet, unbilled use, and their own hold. Each is committed: after
a rollback every statement would be planned again.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_LOG_LEVEL", "ERROR")
django.setup()

from django.db import connection, connections  # noqa: E402

from bench.figures import Figures  # noqa: E402
from billing.models import BillingPeriod, BudgetMonth, Hold, HoldPart, Wallet, WalletPart  # noqa: E402
from billing.services.funds.accounts import account_terms  # noqa: E402
from billing.services.funds.budgets import budget_settings  # noqa: E402
from billing.services.funds.holds import budget_holds  # noqa: E402
from billing.services.funds.wallets import wallet_balances  # noqa: E402
from billing.services.periods import billing_periods  # noqa: E402
from broker.models import Lease, Offering  # noqa: E402
from tenants.models import Project, Tenant  # noqa: E402
from tenants.services.rls import tenant_scope  # noqa: E402
from tests.billing.grants.grant_setup import create_grant  # noqa: E402
from tests.billing.histories import EURO, OPERATOR, S, add_lease_history, create_customer, create_priced_offering, utc  # noqa: E402

LEASES, TIMES, FEW, FIRST = 100_000, 400, 100, 20  # the first ones plan the statements
NOW, BEGUN = utc("2026-11-10 12:00:00"), utc("2026-11-10 11:00:00")
SQL = Path(__file__).with_name("held.sql").read_text()
A_LEASE = 2 * 3600 * EURO  # of exact money: two hours
PLENTY = 10**11  # cents


def build(leases: int) -> list[Lease]:
    """Return the queued leases of a tenant with so many running ones."""
    offering = create_priced_offering(EURO)
    tenant, project = create_customer()
    with tenant_scope(tenant.pk):
        account_terms.set_account_terms(
            tenant, payment="prepaid", account_status="good", why="new", actor=OPERATOR, now=BEGUN
        )
        budget = budget_settings.set_budget(project=project, limit_minor=PLENTY, actor=OPERATOR, now=BEGUN)
    create_grant(tenant, PLENTY, now=BEGUN)
    with tenant_scope(tenant.pk):
        _hold(tenant, project, offering, budget.pk, leases)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    wait = [add_lease_history(project, offering, [(NOW, S.REQUESTED)]).pk for _ in range(FIRST + TIMES)]
    with tenant_scope(tenant.pk):
        found = list(Lease.objects.select_related("project__tenant", "offering").filter(pk__in=wait))
    for lease in found:
        lease._state.adding = True  # as far as the gate knows: it is asked before the lease is written
    return found


def _hold(tenant: Tenant, project: Project, offering: Offering, budget_id: str, leases: int) -> None:
    with connection.cursor() as cursor:
        # Foreign keys were planned while there was next to nothing: they would read all rows for each.
        cursor.execute("SET LOCAL statement_timeout TO 0; SET LOCAL enable_seqscan = off; DISCARD PLANS")
        values = {
            "tenant": tenant.pk,
            "project": project.pk,
            "offering": offering.pk,
            "now": NOW,
            "begun": BEGUN,
        }
        cursor.execute(SQL, {**values, "leases": leases})
    billing_periods.ensure_periods(tenant, since=NOW, until=NOW + timedelta(days=40))
    month = BillingPeriod.objects.get(span__contains=NOW)
    its_month, _ = BudgetMonth.objects.get_or_create(tenant=tenant, budget_id=budget_id, period=month)
    wallet: Wallet = wallet_balances.lock_wallet(tenant)
    for some in range(0, leases, 10_000):
        held = list(Hold.objects.order_by("pk")[some : some + 10_000])
        HoldPart.objects.bulk_create(HoldPart(tenant=tenant, hold=each, month=its_month, num=A_LEASE) for each in held)
        WalletPart.objects.bulk_create(
            WalletPart(tenant=tenant, hold=each, wallet=wallet, period=month, num=A_LEASE) for each in held
        )


def time_budget_check(lease: Lease) -> float:
    """Time one check, in milliseconds."""
    with tenant_scope(lease.tenant_id):
        begun = perf_counter()
        answer = budget_holds.gate(lease, now=NOW)
        answer()
        spent = perf_counter() - begun
        assert Hold.objects.filter(lease=lease).exists()
    return 1000 * spent


def main(leases: int = LEASES) -> None:
    figures = Figures("billing_funds")
    few, many = build(FEW), build(leases)
    times = {
        name: [time_budget_check(lease) for lease in wait][FIRST:] for name, wait in (("few", few), ("many", many))
    }
    p99 = {name: quantiles(found, n=100)[98] for name, found in times.items()}
    figures.report_max("funds_check_p99", p99["many"], unit="ms", at_most=5)
    figures.report_time(
        f"at_{leases}_leases_to_{FEW}", median(times["many"]), baseline=median(times["few"]), at_most=1.5
    )
    print(f"median {median(times['many']):.2f} ms, of {FEW} leases {median(times['few']):.2f} ms", file=sys.stderr)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
