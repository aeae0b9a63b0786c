"""Customers who pay by transfer: dunning, write-offs and disputes follow at once."""

from datetime import timedelta

import pytest

from billing.models import AccountTerms, DunningStep, Invoice
from billing.services.funds.accounts import account_terms
from billing.services.payments import write_offs
from billing.services.payments.bank_receipts.receipt_records import ReceiptUse
from billing.services.payments.bank_receipts.receipt_reversal import reverse_receipt
from billing.services.payments.bank_statements import entry_decisions, statement_import
from billing.services.payments.dunning import dunning_steps
from billing.services.payments.write_offs import NotWrittenOff
from tenants.services.rls import tenant_scope
from tests.billing.bank_receipts.receipts import account_sums, assert_books_hold, receive, tenant_of
from tests.billing.credit_notes.issued_notes import create_october_invoice_of
from tests.billing.histories import OPERATOR, utc
from tests.billing.payments.payable_invoices import (
    create_final_invoice,
    process_payment,
    reload_invoice,
    request_payment,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("captured")]
DUE, DAY = utc("2026-11-15 00:05:00"), timedelta(days=1)


def dun(*days: int) -> None:
    for day in days:
        dunning_steps.run_dunning(now=DUE + day * DAY)


def steps(invoice: Invoice) -> list[tuple[str, int]]:
    with tenant_scope(invoice.tenant_id):
        return list(DunningStep.objects.filter(invoice=invoice).order_by("n").values_list("action", "minor"))


def standing(invoice: Invoice) -> str:
    with tenant_scope(invoice.tenant_id):
        return account_terms.terms_of(tenant_of(invoice)).account_status


def test_transfer_ends_dunning_and_reactivates_the_tenant_at_once() -> None:
    invoice = create_final_invoice()
    dun(3, 10, 17)
    assert standing(invoice) == "suspended"
    receive(invoice, 200, now=DUE + 18 * DAY)
    assert standing(invoice) == "good"
    dun(30, 60)
    assert steps(invoice) == [("remind", 200), ("remind", 200), ("suspend", 200)]


def test_partial_transfer_is_dunned_for_the_rest_only() -> None:
    invoice = create_final_invoice()
    receive(invoice, 150)
    dun(3)
    assert steps(invoice) == [("remind", 50)]


def test_reversed_transfer_suspends_again_and_restarts_the_days() -> None:
    invoice = create_final_invoice()
    dun(3, 10, 17)
    receipt = receive(invoice, 200, now=DUE + 18 * DAY)
    reverse_receipt(receipt, why="returned by the bank", actor=OPERATOR, now=DUE + 40 * DAY)
    assert standing(invoice) == "suspended"
    dun(40, 52)
    assert steps(invoice)[-1] == ("suspend", 200)
    dun(53)
    assert steps(invoice)[-1] == ("end", 200)


def test_undecided_money_on_a_statement_stops_dunning_at_reminders() -> None:
    invoice = create_final_invoice()
    dun(3, 10)
    content = f"date,amount,currency,remittance\n2026-11-20,2.00,EUR,{invoice}\n".encode()
    statement = statement_import.import_statement(content, file_name="a.csv", actor=OPERATOR, now=DUE)
    dun(17, 30)
    assert steps(invoice) == [("remind", 200)] * 2
    entry_decisions.dismiss_entry(statement.entries.get(), why="not theirs", actor=OPERATOR, now=DUE)
    dun(31)
    assert steps(invoice)[-1] == ("suspend", 200)


def test_money_on_the_balance_stops_dunning_at_reminders() -> None:
    invoice = create_final_invoice()
    receive(invoice, 200, pays=ReceiptUse.BALANCE)
    dun(3, 10, 17, 30)
    assert steps(invoice) == [("remind", 200)] * 2


def test_write_off_is_a_loss_and_keeps_the_tenant_suspended() -> None:
    invoice = create_final_invoice()
    receive(invoice, 50)
    for _ in range(2):
        write_offs.write_off_invoice(invoice, why="insolvent", actor=OPERATOR, now=DUE)
    assert (reload_invoice(invoice).status, reload_invoice(invoice).due) == ("uncollectible", 0)
    assert account_sums() == {"bank": 50, "bad_debt": 150, "revenue": 200}
    assert standing(invoice) == "suspended"
    dun(3, 60)
    assert steps(invoice) == []
    assert_books_hold(DUE)


def test_later_payment_of_a_written_off_invoice_recovers_the_loss() -> None:
    invoice = create_final_invoice()
    write_offs.write_off_invoice(invoice, why="insolvent", actor=OPERATOR, now=DUE)
    part = receive(invoice, 120, now=DUE)
    assert (reload_invoice(invoice).status, standing(invoice)) == ("uncollectible", "suspended")
    assert account_sums() == {"bank": 120, "bad_debt": 80, "revenue": 200}
    rest = receive(invoice, 80, now=DUE)
    assert (reload_invoice(invoice).status, standing(invoice)) == ("paid", "good")
    assert account_sums() == {"bank": 200, "revenue": 200}
    for receipt in (rest, part):
        reverse_receipt(receipt, why="returned", actor=OPERATOR, now=DUE)
    assert reload_invoice(invoice).status == "uncollectible"
    assert account_sums() == {"bad_debt": 200, "revenue": 200}
    assert_books_hold(DUE)


def test_undone_write_off_makes_the_rest_due_again() -> None:
    invoice = create_final_invoice()
    write_offs.write_off_invoice(invoice, why="insolvent", actor=OPERATOR, now=DUE)
    receive(invoice, 120, now=DUE)
    for _ in range(2):
        write_offs.undo_write_off(invoice, why="they answered", actor=OPERATOR, now=DUE)
    now = reload_invoice(invoice)
    assert (now.status, now.due, standing(invoice)) == ("partially_paid", 80, "good")
    assert account_sums() == {"bank": 120, "receivable": 80, "revenue": 200}
    assert_books_hold(DUE)


def test_write_off_of_nothing_or_during_a_payment_is_refused(simulated_payments: None) -> None:
    paid, pending = create_final_invoice(), create_final_invoice()
    process_payment(request_payment(paid))
    request_payment(pending)
    for invoice, why in ((paid, "Nothing is due"), (pending, "is in progress")):
        with pytest.raises(NotWrittenOff, match=why):
            write_offs.write_off_invoice(invoice, why="x", actor=OPERATOR, now=DUE)


def test_an_operators_suspension_stays_after_payment() -> None:
    invoice = create_final_invoice()
    values = {"payment": "invoice", "account_status": "suspended", "why": "abuse"}
    account_terms.set_account_terms(tenant_of(invoice), **values, actor=OPERATOR, now=DUE)
    receive(invoice, 200)
    assert standing(invoice) == "suspended"
    with tenant_scope(invoice.tenant_id):
        assert AccountTerms.objects.get().why == "abuse"


def test_disputed_part_stays_uncollected_after_the_rest_was_transferred() -> None:
    from billing.services.invoicing.disputes import dispute_requests
    from billing.services.payments.disputed_amounts import collectible_amount

    invoice = create_october_invoice_of(200, 100)
    with tenant_scope(invoice.tenant_id):
        dispute_requests.dispute_lines(
            invoice, lines={1: 200}, reason="it was down", actor=OPERATOR, now=utc("2026-11-02 00:00:00")
        )
    receive(invoice, 100)
    now = reload_invoice(invoice)
    with tenant_scope(invoice.tenant_id):
        assert (now.status, now.due, collectible_amount(now)) == ("partially_paid", 200, 0)
    dun(3, 10, 17, 30)
    assert steps(invoice) == []
    receive(invoice, 200)
    assert reload_invoice(invoice).status == "paid"
