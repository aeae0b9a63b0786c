"""Run thirty-two workers on the same months, payments and wallets.

Usage: `python -m bench.billing_workers [months]`. All close the same months, collect the same payments
and give leases the same money at once, as if every message came thirty-two times. Each month is invoiced
once, each number assigned once, each payment collected once; no wallet is overdrawn.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["GPUBROKER_LOG_LEVEL"] = "CRITICAL"
django.setup()

from django.db import connection, connections  # noqa: E402

from bench.figures import Figures  # noqa: E402
from billing.models import AccountBalance, AccountTerms, Invoice, LedgerTransfer, Payment, SimulatedCharge  # noqa: E402
from billing.services.funds.accounts import account_terms  # noqa: E402
from billing.services.funds.costs.hold_context import open_lease_hold  # noqa: E402
from billing.services.funds.wallets import prepaid_holds  # noqa: E402
from billing.services.funds.wallets.prepaid_holds import PaymentRequired  # noqa: E402
from billing.services.invoicing.month_close import close_month  # noqa: E402
from billing.services.ledger import ledger_balances  # noqa: E402
from billing.services.payments import payment_collection, payment_creation  # noqa: E402
from billing.services.rating import lease_rating  # noqa: E402
from broker.models import Lease  # noqa: E402
from tenants.services.rls import staff_scope, tenant_scope  # noqa: E402
from tests.billing.grants.grant_setup import create_grant  # noqa: E402
from tests.billing.histories import (  # noqa: E402
    EURO,
    HOUR,
    OPERATOR,
    S,
    add_ended_lease,
    add_lease_history,
    create_customer,
    create_priced_offering,
    utc,
)
from tests.billing.tax.taxed_tenants import set_tax_rate  # noqa: E402

MONTHS, WORKERS, WALLETS, LEASES_A_WALLET, SEED = 1_000, 32, 10, 16, 20261123
NOW = utc("2026-11-01 12:00:00")
LATER = utc("2026-11-01 13:00:00")
IN_A_WALLET = 1000  # cents: enough for eight of its leases


def at_once(work: Callable[[int], object]) -> Counter[str]:
    """Run the same function in every worker at once; return exceptions by name."""
    start, fell = Barrier(WORKERS), Counter[str]()

    def run(number: int) -> None:
        try:
            start.wait(60)
            work(number)
        except Exception as error:
            fell[f"{type(error).__name__}: {error}"[:200]] += 1
        finally:
            connections.close_all()

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(run, range(WORKERS)))
    return fell


def build(months: int) -> list[tuple[str, str]]:
    """Write the months, and wallets with too little money for their leases; return those leases."""
    set_tax_rate("DE", 19)
    offering, dear = create_priced_offering(EURO), create_priced_offering(EURO)
    for n in range(months):
        _, project = create_customer()
        add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR + n)
    waiting = []
    for _ in range(WALLETS):
        tenant, project = create_customer()
        with tenant_scope(tenant.pk):
            account_terms.set_account_terms(
                tenant, payment="prepaid", account_status="good", why="new", actor=OPERATOR, now=NOW
            )
        create_grant(tenant, IN_A_WALLET, now=NOW)
        for _ in range(LEASES_A_WALLET):
            lease = add_lease_history(project, dear, [(NOW, S.REQUESTED), (NOW, S.QUEUED)])
            waiting.append((lease.pk, tenant.pk))
    lease_rating.rate_all_leases(now=NOW)
    return waiting


def collect(number: int) -> None:
    """Open and collect every payment, in each worker's own order, until none is found."""
    rng = random.Random(SEED + number)
    while payment_creation.open_due_payments(now=LATER) + len(due := payment_collection.PAYMENTS.due(now=LATER)):
        rng.shuffle(due)
        for _, payment_id, tenant_id in due:
            payment_collection.PAYMENTS.collect(payment_id, tenant_id, now=LATER)


def cover(waiting: list[tuple[str, str]], number: int) -> None:
    """Request the money of every lease, as the gate does; continue after a refusal."""
    mine = waiting.copy()
    random.Random(SEED - number).shuffle(mine)
    for lease_id, tenant_id in mine:
        try:
            with tenant_scope(tenant_id):
                lease = Lease.objects.select_related("project__tenant", "offering").get(pk=lease_id)
                prepaid_holds.reserve_next_hour(open_lease_hold(lease, now=NOW), now=NOW)
        except PaymentRequired:
            continue


def overdrawn() -> tuple[int, int]:
    """Return the number of overdrawn wallets and of covered leases."""
    over = covered = 0
    with staff_scope():
        owners = list(AccountTerms.objects.filter(payment="prepaid").values_list("tenant_id", flat=True))
    for owner in owners:
        with tenant_scope(owner), connection.cursor() as cursor:
            cursor.execute("SELECT coalesce(sum(taken_num), 0)::numeric FROM billing_wallet")
            over += cursor.fetchone()[0] > IN_A_WALLET * 36 * 10**9
            cursor.execute("SELECT count(*) FROM billing_hold WHERE covers_until IS NOT NULL")
            covered += cursor.fetchone()[0]
    return over, covered


def main(months: int = MONTHS) -> None:
    figures, waiting = Figures("billing_workers"), build(months)
    fell = at_once(lambda _: close_month.close_due_months(now=NOW))
    with staff_scope():
        numbers = sorted(Invoice.objects.filter(series="2026-10").values_list("number", flat=True))
        misnumbered = len(numbers) - len(set(numbers)) + (numbers != list(range(1, months + 1)))
    figures.report_min("months_closed", len(numbers), unit="1", at_least=months)
    figures.report_max("numbers_missing_or_twice", misnumbered, unit="1", at_most=0)
    fell += at_once(collect)
    with staff_scope():
        paid = Payment.objects.filter(status="succeeded").count()
        once = Payment.objects.filter(status="succeeded").values("invoice").distinct().count()
        taken = SimulatedCharge.objects.filter(declined=False).count()
        posted = LedgerTransfer.objects.filter(kind="payment").count()
    figures.report_min("invoices_paid", once, unit="1", at_least=months)
    figures.report_max("payments_taken_or_posted_twice", paid + taken + posted - 3 * once, unit="1", at_most=0)
    fell += at_once(lambda number: cover(waiting, number))
    over, covered = overdrawn()
    figures.report_max("wallets_overdrawn", over, unit="1", at_most=0)
    figures.report_min("leases_that_were_covered", covered, unit="1", at_least=WALLETS * 8)
    with staff_scope():
        totals, drifts = ledger_balances.recomputed_trial_balance()
        below = AccountBalance.objects.filter(account__type__startswith="wallet", minor__lt=0).count()
    off = len(drifts) + below + sum(not each.balanced for each in totals)
    figures.report_max("accounts_off_or_below_nothing", off, unit="1", at_most=0)
    for what, many in fell.items():
        print(many, what, file=sys.stderr)
    figures.report_max("workers_that_fell", fell.total(), unit="1", at_most=0)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
