"""Concurrent posting and sealing."""

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
from tests.billing.ledger.test_seals import later, verify_seals
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, process_payment, request_payment
from tests.database import OwnDatabase

WORKERS = 8


def run_concurrently(*works: Any) -> list[Any]:
    """Run each on a worker of its own, all at once."""
    start = Barrier(len(works))

    def run(work: Any) -> Any:
        try:
            start.wait(30)
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def assert_books_balance() -> None:
    with staff_scope():
        (euros,), drifts = ledger_balances.recomputed_trial_balance()
    assert (euros.balanced, drifts) == (True, ())


def test_concurrent_payments_of_many_tenants_add_up_in_one_account(own_database: OwnDatabase) -> None:
    payments = [request_payment(create_final_invoice()) for _ in range(WORKERS)]
    run_concurrently(*[lambda payment=payment: process_payment(payment) for payment in payments])
    assert account_balances() == {"revenue": 200 * WORKERS, "cash": 200 * WORKERS}
    assert_books_balance()


@pytest.mark.deep
def test_b15_concurrent_workers_post_missing_transfers_once(own_database: OwnDatabase) -> None:
    """The first postings there ever were: all of them open the same accounts."""
    with older_release():
        invoices = [create_final_invoice() for _ in range(4)]
        for invoice in invoices[:2]:
            process_payment(request_payment(invoice))
    written = run_concurrently(*[lambda: missing_postings.post_missing(now=NOW)] * WORKERS)
    assert sum(written) == 10
    assert [transfers_of(each) for each in invoices] == [[*FINAL, PAID]] * 2 + [FINAL] * 2
    assert account_balances() == {"revenue": 800, "cash": 400}
    assert_books_balance()


def test_an_invoice_posted_by_concurrent_workers_is_posted_once(own_database: OwnDatabase) -> None:
    with older_release():
        invoice: Invoice = create_final_invoice()

    def post() -> int:
        with tenant_scope(invoice.tenant_id):
            return posting.post_invoices([invoice.pk], now=NOW)

    assert sum(run_concurrently(*[post] * WORKERS)) == 2
    assert transfers_of(invoice) == FINAL
    assert_books_balance()


def test_concurrent_sealing_makes_one_chain_per_tenant(own_database: OwnDatabase) -> None:
    for _ in range(3):
        create_final_invoice()
    assert sum(run_concurrently(*[lambda: ledger_seal.seal_ledger(now=later())] * WORKERS)) == 6
    found = verify_seals()
    assert (found.tenants, found.seals, found.wrong) == (3, 3, ())
