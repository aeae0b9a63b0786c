"""Workers post concurrently without deadlocks, losses or doubles."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from billing.models import Invoice
from billing.services.ledger import ledger_balances, ledger_seal, missing_postings, posting
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.ledger.ledger_rows import account_balances, transfers_of
from tests.billing.ledger.test_backfill import older_release
from tests.billing.ledger.test_posting import FINAL, PAID
from tests.billing.ledger.test_seals import later, verdict
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, process_payment, request_payment
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
    with staff_scope():
        (euros,), drifts = ledger_balances.recomputed_trial_balance()
    assert (euros.balanced, drifts) == (True, ())


def test_many_tenants_pay_at_once_into_one_account(own_database: OwnDatabase) -> None:
    payments = [request_payment(create_final_invoice()) for _ in range(WORKERS)]
    at_once(*[lambda payment=payment: process_payment(payment) for payment in payments])
    assert account_balances() == {"revenue": 200 * WORKERS, "cash": 200 * WORKERS}
    whole()


@pytest.mark.deep
def test_b15_concurrent_workers_post_missing_transfers_once(own_database: OwnDatabase) -> None:
    """The first postings there ever were: all of them open the same accounts."""
    with older_release():
        invoices = [create_final_invoice() for _ in range(4)]
        for invoice in invoices[:2]:
            process_payment(request_payment(invoice))
    written = at_once(*[lambda: missing_postings.post_missing(now=NOW)] * WORKERS)
    assert sum(written) == 10
    assert [transfers_of(each) for each in invoices] == [[*FINAL, PAID]] * 2 + [FINAL] * 2
    assert account_balances() == {"revenue": 800, "cash": 400}
    whole()


def test_one_invoice_is_posted_once_however_many_post_it(own_database: OwnDatabase) -> None:
    with older_release():
        invoice: Invoice = create_final_invoice()

    def post() -> int:
        with tenant_scope(invoice.tenant_id):
            return posting.post_invoices([invoice.pk], now=NOW)

    assert sum(at_once(*[post] * WORKERS)) == 2
    assert transfers_of(invoice) == FINAL
    whole()


def test_workers_that_seal_at_once_make_one_chain(own_database: OwnDatabase) -> None:
    for _ in range(3):
        create_final_invoice()
    assert sum(at_once(*[lambda: ledger_seal.seal_ledger(now=later())] * WORKERS)) == 6
    found = verdict()
    assert (found.tenants, found.seals, found.wrong) == (3, 3, ())
