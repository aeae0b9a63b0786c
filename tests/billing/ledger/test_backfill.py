"""Backfill of ledger entries for invoices of older releases."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import DatabaseError

from billing import tasks
from billing.models import Invoice, LedgerSeal
from billing.services.ledger import invariant_checks, ledger_balances, missing_postings, posting
from ports import clock
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import create_november_invoice, create_october_invoice_of, issue_note
from tests.billing.ledger.ledger_rows import account_balances, transfers, transfers_of
from tests.billing.ledger.test_posting import FINAL, PAID
from tests.billing.ledger.test_seals import later
from tests.billing.payments.payable_invoices import (
    NOW,
    create_final_invoice,
    process_payment,
    reload_invoice,
    request_payment,
)

pytestmark = pytest.mark.django_db


@contextmanager
def older_release() -> Iterator[None]:
    """Let invoices be closed and paid by a release that posts nothing."""
    with patch.object(posting, "_post_rows", return_value=0):
        yield


def test_backfilled_invoices_and_payments_have_their_original_times() -> None:
    with older_release():
        owed, paid = create_final_invoice(), create_final_invoice()
        process_payment(request_payment(paid))
    assert transfers_of(owed) == transfers_of(paid) == []
    assert missing_postings.post_missing(now=later()) == 5
    assert (transfers_of(owed), transfers_of(paid)) == (FINAL, [*FINAL, PAID])
    assert {each.at for each in transfers(owed)} == {owed.finalized_at}
    assert transfers(paid)[2].at == reload_invoice(paid).paid_at
    assert missing_postings.post_missing(now=later()) == 0


def test_a_voided_invoice_is_backfilled_and_reversed() -> None:
    with older_release():
        invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")
    assert missing_postings.post_missing(now=NOW) == 4
    assert account_balances(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert missing_postings.post_missing(now=NOW) == 0


def test_the_backfill_books_credit_notes_and_draws_in_a_valid_order() -> None:
    with older_release():
        invoice = create_october_invoice_of()
        process_payment(request_payment(invoice))
        issue_note(invoice, {1: 150})
    with staff_scope():
        assert sorted({what for _, what, _ in ledger_balances.missing_events()}) == [
            "credited",
            "finalized",
            "paid",
        ]
    assert missing_postings.post_missing(now=later()) == 5
    assert account_balances(invoice.tenant_id) == {"receivable": 0, "accrued": 0, "wallet_paid": 150}
    with patch.object(posting, "post_invoices", return_value=0):
        following = create_november_invoice(invoice, 100)
    with staff_scope():
        assert ledger_balances.missing_events() == [
            (invoice.tenant_id, "finalized", following.pk), (invoice.tenant_id, "finalized", following.pk)
        ]  # fmt: skip
    assert missing_postings.post_missing(now=later()) == 3
    assert account_balances(invoice.tenant_id)["wallet_paid"] == 50
    assert missing_postings.post_missing(now=later()) == 0


@pytest.mark.parametrize("error", [DatabaseError("no such row"), posting.ConflictingTransfer("otherwise")])
def test_a_backfill_error_for_one_tenant_does_not_block_the_others(error: Exception) -> None:
    with older_release():
        first, second = sorted((create_final_invoice(), create_final_invoice()), key=lambda invoice: invoice.tenant_id)
    real = posting.post_invoices

    def odd(invoices: list[str], *, now: object) -> int:
        if invoices == [first.pk]:
            raise error
        return real(invoices, now=now)  # type: ignore[arg-type]

    with patch.dict(missing_postings.POSTINGS, finalized=odd):
        assert missing_postings.post_missing(now=NOW) == 2
    assert (transfers_of(first), transfers_of(second)) == ([], FINAL)
    assert missing_postings.post_missing(now=NOW) == 2


def test_the_ledger_task_posts_and_seals() -> None:
    with older_release():
        invoice = create_final_invoice()
    tasks.post_and_seal_ledger()
    assert transfers_of(invoice) == FINAL
    with clock.frozen_at(later()):
        tasks.post_and_seal_ledger()
    with staff_scope():
        assert LedgerSeal.objects.get().transfers == [each.pk for each in transfers(invoice)]


def check_invariant(name: str, minutes: int) -> tuple[int, tuple[str, ...]]:
    with staff_scope():
        found = {each.name: each for each in invariant_checks.check_invariants(now=NOW + timedelta(minutes=minutes))}
    return found[name].found, found[name].examples


def test_the_integrity_checks_name_unposted_invoices_after_a_grace_period() -> None:
    with older_release():
        invoice = create_final_invoice()
    assert check_invariant("invoices posted", 5) == (0, ())
    assert check_invariant("invoices posted", 40) == (1, (invoice.pk,))
    missing_postings.post_missing(now=NOW)
    assert check_invariant("invoices posted", 40) == (0, ())
    assert check_invariant("books balance", 40) == (0, ())


def test_the_trial_balance_of_many_tenants_balances() -> None:
    for number in range(4):
        invoice = create_final_invoice((number + 1) * 10**9)
        if number % 2:
            process_payment(request_payment(invoice))
    with staff_scope():
        (euros,) = ledger_balances.stored_trial_balance()
        (reckoned,), drifts = ledger_balances.recomputed_trial_balance()
    assert euros == reckoned
    assert (euros.debit, euros.balanced, drifts) == (1000, True, ())
    assert [(line.type, line.accounts, line.debit, line.credit) for line in euros.lines] == [
        ("receivable", 4, 400, 0),
        ("accrued", 4, 0, 0),
        ("revenue", 1, 0, 1000),
        ("cash", 1, 600, 0),
    ]
