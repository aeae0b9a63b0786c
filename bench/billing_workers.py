"""Thirty-two workers on the same months, payments and wallets: `python -m bench.billing_workers [months]`.

All of them close the same months, collect the same payments and give leases the same money at once, as if every hint
came thirty-two times. Each month is invoiced once, each number given once, each payment taken once; no wallet is
overdrawn.
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
from billing.models import AccountBalance, Invoice, LedgerTransfer, Payment, SimulatedCharge, TenantTerms  # noqa: E402
from billing.services import closing, rating  # noqa: E402
from billing.services.funds.looking import look_at  # noqa: E402
from billing.services.ledger import books  # noqa: E402
from billing.services.payments import collecting, opening  # noqa: E402
from billing.services.wallets import covering, terms  # noqa: E402
from billing.services.wallets.covering import PaymentRequired  # noqa: E402
from broker.models import Lease  # noqa: E402
from tenants.services.walls import as_staff, as_tenant  # noqa: E402
from tests.billing.grants.gifts import give  # noqa: E402
from tests.billing.histories import EURO, HOUR, OPERATOR, S, at, customer, lived, ran, sold  # noqa: E402
from tests.billing.tax.papers import taxed  # noqa: E402

MONTHS, WORKERS, WALLETS, LEASES_A_WALLET, SEED = 1_000, 32, 10, 16, 20261123
NOW = at("2026-11-01 12:00:00")
LATER = at("2026-11-01 13:00:00")
IN_A_WALLET = 1000  # cents: enough for eight of its leases


def at_once(work: Callable[[int], object]) -> Counter[str]:
    """Let every worker do the same at the same moment; return what they fell over, by its name."""
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
    """Write the months, and wallets each with more leases than it has money for; return those leases."""
    taxed("DE", 19)
    offering, dear = sold(EURO), sold(EURO)
    for n in range(months):
        _, project = customer()
        ran(project, offering, at("2026-10-05 00:00:00"), HOUR + n)
    waiting = []
    for _ in range(WALLETS):
        tenant, project = customer()
        with as_tenant(tenant.pk):
            terms.set_terms(tenant, payment="prepaid", standing="good", why="new", actor=OPERATOR, now=NOW)
        give(tenant, IN_A_WALLET, now=NOW)
        for _ in range(LEASES_A_WALLET):
            lease = lived(project, dear, [(NOW, S.REQUESTED), (NOW, S.QUEUED)])
            waiting.append((lease.pk, tenant.pk))
    rating.rate(now=NOW)
    return waiting


def collect(number: int) -> None:
    """Open and take every payment, in an order of one's own, look by look until a look finds nothing."""
    chance = random.Random(SEED + number)
    while opening.open_due(now=LATER) + len(due := collecting.due(now=LATER)):
        chance.shuffle(due)
        for _, payment_id, tenant_id in due:
            collecting.collect(payment_id, tenant_id, now=LATER)


def cover(waiting: list[tuple[str, str]], number: int) -> None:
    """Ask for the money of every lease, as the gate does; whoever gets none goes on."""
    mine = waiting.copy()
    random.Random(SEED - number).shuffle(mine)
    for lease_id, tenant_id in mine:
        try:
            with as_tenant(tenant_id):
                lease = Lease.objects.select_related("project__tenant", "offering").get(pk=lease_id)
                covering.take(look_at(lease, now=NOW), now=NOW)
        except PaymentRequired:
            continue


def overdrawn() -> tuple[int, int]:
    """Return how many wallets have more set aside than there is, and how many leases are covered."""
    over = covered = 0
    with as_staff():
        owners = list(TenantTerms.objects.filter(payment="prepaid").values_list("tenant_id", flat=True))
    for owner in owners:
        with as_tenant(owner), connection.cursor() as cursor:
            cursor.execute("SELECT coalesce(sum(taken_num), 0)::numeric FROM billing_wallet")
            over += cursor.fetchone()[0] > IN_A_WALLET * 36 * 10**9
            cursor.execute("SELECT count(*) FROM billing_hold WHERE covers_until IS NOT NULL")
            covered += cursor.fetchone()[0]
    return over, covered


def main(months: int = MONTHS) -> None:
    figures, waiting = Figures("billing_workers"), build(months)
    fell = at_once(lambda _: closing.close_due(now=NOW))
    with as_staff():
        numbers = sorted(Invoice.objects.filter(series="2026-10").values_list("number", flat=True))
        doubled = len(numbers) - len(set(numbers))
    figures.least("months_closed", len(numbers), unit="1", at_least=months)
    figures.most(
        "numbers_missing_or_twice", doubled + (numbers != list(range(1, months + 1))), unit="1", at_most=0
    )
    fell += at_once(collect)
    with as_staff():
        paid = Payment.objects.filter(status="succeeded").count()
        once = Payment.objects.filter(status="succeeded").values("invoice").distinct().count()
        taken = SimulatedCharge.objects.filter(declined=False).count()
        posted = LedgerTransfer.objects.filter(kind="payment").count()
    figures.least("invoices_paid", once, unit="1", at_least=months)
    figures.most(
        "payments_taken_or_posted_twice", paid - once + taken - once + posted - once, unit="1", at_most=0
    )
    fell += at_once(lambda number: cover(waiting, number))
    over, covered = overdrawn()
    figures.most("wallets_overdrawn", over, unit="1", at_most=0)
    figures.least("leases_that_were_covered", covered, unit="1", at_least=WALLETS * 8)
    with as_staff():
        totals, drifts = books.reckoned()
        below = AccountBalance.objects.filter(account__type__startswith="wallet", minor__lt=0).count()
    off = len(drifts) + below + sum(not each.balanced for each in totals)
    figures.most("accounts_off_or_below_nothing", off, unit="1", at_most=0)
    for what, many in fell.items():
        print(many, what, file=sys.stderr)
    figures.most("workers_that_fell", fell.total(), unit="1", at_most=0)
    figures.leave()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
