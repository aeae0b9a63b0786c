"""Workers that commit for real: nobody waits for anybody in a circle, and no cent is posted twice or lost."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connection

from billing.models import Invoice
from billing.services.ledger import books, catching_up, posting, sealing
from tenants.services.walls import as_staff, as_tenant
from tests.billing.ledger.ledgers import booked, on_accounts
from tests.billing.ledger.test_catching_up import older_release
from tests.billing.ledger.test_posting import FINAL, PAID
from tests.billing.ledger.test_sealing import later, verdict
from tests.billing.payments.bills import NOW, bill, collect, pay
from tests.database import OwnDatabase

WORKERS = 8


def at_once(*works: Any) -> list[Any]:
    """Let each be done by a worker of its own, all at the same moment."""
    start = Barrier(len(works))

    def run(work: Any) -> Any:
        try:
            start.wait(30)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def whole() -> None:
    with as_staff():
        (euros,), drifts = books.reckoned()
    assert (euros.balanced, drifts) == (True, ())


def test_many_tenants_pay_at_once_into_one_account(own_database: OwnDatabase) -> None:
    payments = [pay(bill()) for _ in range(WORKERS)]
    at_once(*[lambda payment=payment: collect(payment) for payment in payments])
    assert on_accounts() == {"revenue": 200 * WORKERS, "cash": 200 * WORKERS}
    whole()


def test_b15_what_many_workers_find_missing_is_booked_once(own_database: OwnDatabase) -> None:
    """The first postings there ever were: all of them open the same accounts."""
    with older_release():
        invoices = [bill() for _ in range(4)]
        for invoice in invoices[:2]:
            collect(pay(invoice))
    written = at_once(*[lambda: catching_up.post_missing(now=NOW)] * WORKERS)
    assert sum(written) == 10
    assert [booked(each) for each in invoices] == [[*FINAL, PAID]] * 2 + [FINAL] * 2
    assert on_accounts() == {"revenue": 800, "cash": 400}
    whole()


def test_one_invoice_is_posted_once_however_many_post_it(own_database: OwnDatabase) -> None:
    with older_release():
        invoice: Invoice = bill()

    def post() -> int:
        with as_tenant(invoice.tenant_id):
            return posting.finalized([invoice.pk], now=NOW)

    assert sum(at_once(*[post] * WORKERS)) == 2
    assert booked(invoice) == FINAL
    whole()


def test_workers_that_seal_at_once_make_one_chain(own_database: OwnDatabase) -> None:
    for _ in range(3):
        bill()
    assert sum(at_once(*[lambda: sealing.seal(now=later())] * WORKERS)) == 6
    found = verdict()
    assert (found.tenants, found.seals, found.wrong) == (3, 3, ())
