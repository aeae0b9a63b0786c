"""Concurrent refunds and credit notes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from billing.gateways.simulated import SimulatedGateway
from billing.services.ledger import ledger_balances
from billing.services.payments.refunds import refund_submission
from billing.services.payments.refunds.refund_creation import NotRefundable
from ports import clock, outbox, payments
from ports.payments import Declined, Succeeded
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.payments.payable_invoices import NOW
from tests.billing.refunds.refund_setup import (
    balance_of,
    create_paid_invoice,
    process_refund,
    refunded_amounts,
    refunds_of,
    reload_refund,
    request_refund,
)
from tests.database import OwnDatabase

MANY = 32


@pytest.fixture(autouse=True)
def _ours(own_database: OwnDatabase) -> Iterator[None]:
    with (
        clock.frozen_at(NOW),
        outbox.captured(lambda *hint: None),
        payments.using_gateway(SimulatedGateway()),
    ):
        yield


def run_concurrently(acts: list[Callable[[], Any]]) -> list[str]:
    """Run all on own connections at once; return the refusals."""
    start = Barrier(len(acts))

    def one(act: Callable[[], Any]) -> str:
        try:
            start.wait(60)
            act()
        except (NotRefundable, InvalidValue) as refusal:
            return refusal.detail
        else:
            return ""
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


def test_one_of_many_concurrent_refunds_is_accepted_and_named_to_the_others() -> None:
    invoice = create_paid_invoice()
    found = run_concurrently([partial(request_refund, invoice, 100)] * MANY)
    assert found.count("") == 1
    assert all("of €1.00 is pending" in each for each in found if each)
    process_refund(refunds_of(invoice)[0])
    assert (refunded_amounts(invoice), balance_of(invoice)) == ([100], 20)


def test_a_refund_settled_concurrently_with_different_answers_counts_one() -> None:
    invoice = create_paid_invoice()
    made = reload_refund(request_refund(invoice, 100))
    answers = [Succeeded("simre_1"), Declined("no", "no")] * (MANY // 2)
    run_concurrently([partial(refund_submission.REFUND_TRANSACTIONS.settle, made, answer, NOW) for answer in answers])
    assert balance_of(invoice) == {"succeeded": 20, "declined": 120}[reload_refund(made).status]
    with staff_scope():
        assert ledger_balances.recomputed_trial_balance()[1] == ()


def test_a_credit_note_during_a_refund_never_returns_more_than_was_paid() -> None:
    invoice = create_paid_invoice(credited=0)
    acts: list[Callable[[], Any]] = [partial(issue_note, invoice, {1: 120}), partial(request_refund, invoice, 121)]
    assert "" in run_concurrently(acts)[:1]
    assert "given back to the balance" in run_concurrently([partial(request_refund, invoice, 121)])[0]
    assert (refunds_of(invoice), balance_of(invoice)) == ([], 120)
