"""Transfers to our bank account: what they pay, and what happens to the rest."""

from datetime import timedelta

import pytest
from django.db import DatabaseError

from billing.gateways.simulated import GatewayFault
from billing.models import BankReceipt, BankReceiptPart, Invoice
from billing.services.payments.bank_receipts import receipt_assignment
from billing.services.payments.bank_receipts.receipt_assignment import NotAssignable, assign_rest
from billing.services.payments.bank_receipts.receipt_records import ReceiptKeyReused, ReceiptUse
from billing.services.payments.bank_receipts.receipt_reversal import NotReversible, reverse_receipt
from billing.services.payments.payment_creation import NotPayable
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.bank_receipts.receipts import account_sums, assert_books_hold, balance_of, receive
from tests.billing.credit_notes.issued_notes import create_november_invoice, create_october_invoice_of, issue_note
from tests.billing.histories import OPERATOR
from tests.billing.payments.payable_invoices import (
    NOW,
    charged_amounts,
    create_draft_invoice,
    create_final_invoice,
    fail_next_charges,
    process_payment,
    reload_invoice,
    request_payment,
    sweep_payments,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments", "captured")]


def state(invoice: Invoice) -> tuple[str, int, int]:
    """Return an invoice's status, what was paid of it, and what is due."""
    now = reload_invoice(invoice)
    return now.status, now.paid, now.due


def test_transfer_of_all_that_is_due_pays_the_invoice() -> None:
    invoice = create_final_invoice()
    receive(invoice, 200)
    assert state(invoice) == ("paid", 200, 0)
    assert reload_invoice(invoice).paid_at == NOW
    assert account_sums() == {"bank": 200, "revenue": 200}
    assert_books_hold()


def test_partial_transfers_add_up_until_it_is_paid() -> None:
    invoice = create_final_invoice()
    receive(invoice, 50)
    assert state(invoice) == ("partially_paid", 50, 150)
    assert account_sums() == {"bank": 50, "receivable": 150, "revenue": 200}
    receive(invoice, 149)
    assert state(invoice) == ("partially_paid", 199, 1)
    receive(invoice, 1)
    assert state(invoice) == ("paid", 200, 0)
    assert_books_hold()


def test_overpayment_goes_to_the_balance_and_pays_the_next_invoice() -> None:
    invoice = create_final_invoice()
    receive(invoice, 500)
    assert (state(invoice), balance_of(invoice)) == (("paid", 200, 0), 300)
    november = create_november_invoice(invoice, 400)
    assert (november.settled, november.due, balance_of(invoice)) == (300, 100, 0)
    assert_books_hold()


def test_transfer_without_an_invoice_pays_the_oldest_open_one_first() -> None:
    october = create_final_invoice()
    november = create_november_invoice(october, 400)
    receive(october, 250, pays=ReceiptUse.OLDEST)
    assert (state(october), state(november)) == (("paid", 200, 0), ("partially_paid", 50, 350))


def test_transfer_to_the_balance_is_assigned_later() -> None:
    invoice = create_final_invoice()
    receipt = receive(invoice, 250, pays=ReceiptUse.BALANCE)
    assert (state(invoice), balance_of(invoice)) == (("finalized", 0, 200), 250)
    assign_rest(receipt, invoice, actor=OPERATOR, now=NOW)
    assert (state(invoice), balance_of(invoice)) == (("paid", 200, 0), 50)
    assert_books_hold()
    with pytest.raises(NotAssignable, match="Nothing is due"):
        assign_rest(receipt, invoice, actor=OPERATOR, now=NOW)


def test_same_key_records_once_and_refuses_another_amount() -> None:
    invoice = create_final_invoice()
    assert receive(invoice, 50, idem="key 1").pk == receive(invoice, 50, idem="key 1").pk
    assert state(invoice) == ("partially_paid", 50, 150)
    with pytest.raises(ReceiptKeyReused):
        receive(invoice, 60, idem="key 1")


def test_reversal_makes_the_invoice_due_again_and_is_done_once() -> None:
    invoice = create_final_invoice()
    receive(invoice, 50)
    wrong = receive(invoice, 500)
    assert balance_of(invoice) == 350
    for _ in range(2):
        reverse_receipt(wrong, why="typed for the wrong tenant", actor=OPERATOR, now=NOW + timedelta(days=1))
    assert (state(invoice), balance_of(invoice)) == (("partially_paid", 50, 150), 0)
    assert reload_invoice(invoice).paid_at is None
    assert account_sums() == {"bank": 50, "receivable": 150, "revenue": 200}
    assert_books_hold()


def test_reversal_after_the_rest_was_spent_is_refused() -> None:
    invoice = create_final_invoice()
    receipt = receive(invoice, 300)
    create_november_invoice(invoice, 100)
    with pytest.raises(NotReversible, match=r"€1\.00 of the transfer was on the balance and has been spent"):
        reverse_receipt(receipt, why="wrong", actor=OPERATOR, now=NOW)


def test_reversal_after_a_credit_of_paid_money_is_refused() -> None:
    invoice = create_final_invoice()
    receipt = receive(invoice, 200)
    issue_note(invoice)
    assert balance_of(invoice) == 200
    with pytest.raises(NotReversible, match="credit note"):
        reverse_receipt(receipt, why="wrong", actor=OPERATOR, now=NOW)


def test_credit_note_lowers_what_is_left_due_after_a_transfer() -> None:
    invoice = create_october_invoice_of(200, 100)
    receive(invoice, 250)
    note = issue_note(invoice, {1: 120})
    assert (note.reduced_due, note.to_balance) == (50, 70)
    assert (state(invoice), balance_of(invoice)) == (("paid", 250, 0), 70)
    assert_books_hold()


def test_card_payment_of_the_rest_after_a_transfer() -> None:
    invoice = create_final_invoice()
    receive(invoice, 50)
    process_payment(request_payment(invoice))
    assert (state(invoice), charged_amounts(invoice)) == (("paid", 200, 0), [150])
    assert account_sums() == {"bank": 50, "cash": 150, "revenue": 200}
    assert_books_hold()


def test_transfer_while_a_card_payment_succeeds_stays_on_the_balance() -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    receipt = receive(invoice, 200)
    assert (state(invoice), balance_of(invoice), receipt.waits) == (("finalized", 0, 200), 200, True)
    process_payment(payment)
    receipt_assignment.assign_waiting_receipts(now=NOW)
    assert (state(invoice), balance_of(invoice)) == (("paid", 200, 0), 200)
    with tenant_scope(invoice.tenant_id):
        assert not BankReceipt.objects.get().waits
    assert_books_hold()


def test_transfer_while_a_card_payment_is_declined_pays_at_once() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    payment = request_payment(invoice)
    receive(invoice, 250)
    process_payment(payment)
    assert (state(invoice), balance_of(invoice)) == (("paid", 200, 0), 50)
    sweep_payments(NOW + timedelta(days=2))
    assert charged_amounts(invoice) == []
    assert_books_hold()


def test_paid_part_by_card_leaves_the_rest_of_a_reversed_transfer_to_transfers() -> None:
    invoice = create_final_invoice()
    receipt = receive(invoice, 50)
    process_payment(request_payment(invoice))
    reverse_receipt(receipt, why="returned by the bank", actor=OPERATOR, now=NOW)
    assert state(invoice) == ("partially_paid", 150, 50)
    with pytest.raises(NotPayable, match="already collected its part"):
        request_payment(invoice)
    sweep_payments(NOW + timedelta(days=9))
    receive(invoice, 50)
    assert (state(invoice), charged_amounts(invoice)) == (("paid", 200, 0), [150])
    assert_books_hold()


def test_drafts_foreign_invoices_and_currencies_are_refused() -> None:
    draft, foreign = create_draft_invoice(), create_final_invoice(currency="USD")
    with pytest.raises(InvalidValue, match="no final invoice of this tenant"):
        receive(draft, 50)
    foreign.currency = "EUR"
    with pytest.raises(InvalidValue, match="billed in USD"):
        receive(foreign, 50)
    with pytest.raises(InvalidValue, match="above zero"):
        receive(draft, 0)


def test_database_refuses_money_that_nobody_received() -> None:
    invoice = create_final_invoice()
    with pytest.raises(DatabaseError, match="is paid by a payment"), tenant_scope(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="paid", paid_at=NOW, received=200)
    receipt = receive(invoice, 50)
    with pytest.raises(DatabaseError, match="at most its amount"), tenant_scope(invoice.tenant_id):
        BankReceiptPart.objects.create(tenant=invoice.tenant, receipt=receipt, invoice=invoice, minor=1, at=NOW)


def test_recording_and_reversing_are_audited_with_the_person() -> None:
    invoice = create_final_invoice()
    reverse_receipt(receive(invoice, 50), why="typed twice", actor=OPERATOR, now=NOW)
    with staff_scope():
        events = AuditEvent.objects.filter(action__startswith="bank_receipt.").order_by("at", "pk")
        assert {(each.action, each.actor_label, each.tenant_id) for each in events} == {
            ("bank_receipt.record", OPERATOR.label, invoice.tenant_id),
            ("bank_receipt.reverse", OPERATOR.label, invoice.tenant_id),
        }
