"""Credit notes: amount due, balance, audit and refusals."""

from typing import Any

import pytest
from django.db.models import Sum

from billing.gateways.simulated import GatewayFault
from billing.models import CreditNote, Invoice, InvoiceLine, RatedCharge
from billing.services.invoicing import credit_notes, drafts
from billing.services.invoicing.credit_notes import NotCreditable
from billing.services.ledger import ledger_balances
from billing.services.payments.payment_creation import NotPayable
from billing.services.payments.payment_status import InvoicePaymentState, payment_status
from billing.services.rating import lease_rating
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import (
    LATER,
    WHY,
    create_november_invoice,
    create_october_invoice_of,
    issue_note,
)
from tests.billing.ledger.ledger_rows import account_balances, transfers_of
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

pytestmark = pytest.mark.django_db


def available_balance(invoice: Invoice) -> int:
    with tenant_scope(invoice.tenant_id):
        return ledger_balances.available_balance(invoice.tenant_id, invoice.currency)


def test_a_credited_unpaid_amount_is_neither_due_nor_collected() -> None:
    invoice = create_october_invoice_of()
    note = issue_note(invoice, {1: 50})
    assert (str(note), note.total, note.reduced_due, note.to_balance) == ("CN-2026-11-0001", 50, 50, 0)
    assert reload_invoice(invoice).to_pay == 255
    assert process_payment(request_payment(invoice)).minor == 255
    assert charged_amounts(invoice) == [255]
    assert account_balances(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert account_balances() == {"revenue": 255, "cash": 255}


def test_a_full_credit_note_marks_the_invoice_paid_without_a_charge() -> None:
    invoice = create_october_invoice_of()
    note = issue_note(invoice)
    assert (note.total, note.reduced_due) == (305, 305)
    found = reload_invoice(invoice)
    assert (found.status, found.paid_at, found.to_pay) == ("paid", NOW, 0)
    sweep_payments(NOW)
    assert charged_amounts(invoice) == []
    with tenant_scope(invoice.tenant_id):
        assert (payment_status(found).state, payment_status(found).payment) == (InvoicePaymentState.PAID, None)
    assert account_balances() == {"revenue": 0}


def test_credit_of_a_paid_invoice_goes_to_the_balance_and_the_next_invoice() -> None:
    invoice = create_october_invoice_of()
    process_payment(request_payment(invoice))
    note = issue_note(invoice, {1: 120})
    assert (note.reduced_due, note.to_balance, available_balance(invoice)) == (0, 120, 120)
    following = create_november_invoice(invoice, 200)
    assert (following.settled, following.to_pay, available_balance(invoice)) == (120, 80, 0)
    assert ("draw", "wallet_paid", "receivable", 120) in transfers_of(following)
    sweep_payments(LATER)
    assert charged_amounts(invoice) == [305, 80]
    assert reload_invoice(following).status == "paid"
    with staff_scope():
        assert (ledger_balances.recomputed_trial_balance()[1], ledger_balances.uncleared_invoices()) == (
            (),
            [],
        )


def test_an_invoice_that_the_balance_covers_is_paid_without_a_payment() -> None:
    invoice = create_october_invoice_of()
    process_payment(request_payment(invoice))
    issue_note(invoice)
    following = create_november_invoice(invoice, 300)
    assert (following.to_pay, available_balance(invoice)) == (0, 5)
    sweep_payments(LATER)
    assert reload_invoice(following).status == "paid"
    assert charged_amounts(invoice) == [305]


def test_credit_of_an_invoice_paid_by_balance_returns_to_the_balance() -> None:
    invoice = create_october_invoice_of()
    process_payment(request_payment(invoice))
    issue_note(invoice, {1: 120})
    following = create_november_invoice(invoice, 200)
    note = issue_note(following, now=LATER)
    assert (note.reduced_due, note.to_balance, available_balance(invoice)) == (80, 120, 120)
    assert reload_invoice(following).status == "paid"


def test_lines_can_be_credited_in_parts_up_to_their_full_amount() -> None:
    invoice = create_october_invoice_of()
    numbers = [str(issue_note(invoice, part)) for part in ({2: 1}, {1: 199, 2: 4}, None)]
    assert numbers == ["CN-2026-11-0001", "CN-2026-11-0002", "CN-2026-11-0003"]
    with tenant_scope(invoice.tenant_id):
        assert [line.remaining for line in credit_notes.creditable_lines(invoice)] == [0, 0]
        assert CreditNote.objects.aggregate(all=Sum("total"))["all"] == invoice.total
    with pytest.raises(InvalidValue, match="Nothing is left to credit"):
        issue_note(invoice)


def test_b27_credited_usage_is_not_charged_again() -> None:
    invoice = create_october_invoice_of()
    with tenant_scope(invoice.tenant_id):
        before = [list(model.objects.values()) for model in (RatedCharge, InvoiceLine)]
    issue_note(invoice)
    with tenant_scope(invoice.tenant_id):
        lease_rating.rate_tenant_leases(invoice.tenant, now=LATER)
        drafts.refresh_drafts(invoice.tenant, now=LATER)
        assert [list(model.objects.values()) for model in (RatedCharge, InvoiceLine)] == before


@pytest.mark.parametrize(("wanted", "why"), [({1: 201}, "At most €2.00"), ({9: 1}, "no line 9"), ({1: 0}, "is zero")])
def test_an_excessive_credit_is_refused_and_not_booked(wanted: dict[int, int], why: str) -> None:
    invoice = create_october_invoice_of()
    before = transfers_of(invoice)
    with pytest.raises(InvalidValue, match=why):
        issue_note(invoice, wanted)
    assert transfers_of(invoice) == before
    assert reload_invoice(invoice).to_pay == 305


def test_a_credit_note_requires_a_reason() -> None:
    with pytest.raises(InvalidValue, match="reason"):
        issue_note(create_october_invoice_of(), why=" \n ")


def test_drafts_and_void_invoices_cannot_be_credited() -> None:
    void = create_october_invoice_of()
    with tenant_scope(void.tenant_id):
        Invoice.objects.filter(pk=void.pk).update(status="void")
    for invoice in (create_draft_invoice(), void):
        with pytest.raises(NotCreditable, match="This invoice is"):
            issue_note(invoice)


def test_no_credit_note_is_issued_during_a_payment() -> None:
    invoice = create_october_invoice_of()
    payment = request_payment(invoice)
    with pytest.raises(NotCreditable, match=f"Payment {payment.pk}"):
        issue_note(invoice)
    process_payment(payment)
    assert issue_note(invoice).to_balance == 305


def test_a_full_credit_after_a_declined_payment_settles_the_invoice() -> None:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    issue_note(invoice)
    found = reload_invoice(invoice)
    with tenant_scope(invoice.tenant_id):
        assert (payment_status(found).state, payment_status(found).payment) == (InvoicePaymentState.PAID, None)
    with pytest.raises(NotPayable, match="is paid"):
        request_payment(invoice)


def test_a_credit_note_is_audited_with_operator_amount_and_reason() -> None:
    invoice = create_october_invoice_of()
    note = issue_note(invoice, {1: 50})
    with tenant_scope(invoice.tenant_id):
        event = AuditEvent.objects.get(action="invoice.credit")
    assert (event.subject_id, event.actor_label) == (invoice.pk, "operator@example.org")
    assert event.detail == {
        "credit_note": str(note),
        "amount": 50,
        "currency": "EUR",
        "reason": WHY,
    }


def test_the_audit_log_records_amounts_added_to_and_drawn_from_the_balance() -> None:
    invoice = create_october_invoice_of()
    process_payment(request_payment(invoice))
    issue_note(invoice, {1: 150})
    following = create_november_invoice(invoice, 100)
    assert audit_detail(invoice, "invoice.credit")["to_balance"] == 150
    assert "settled" not in audit_detail(invoice, "invoice.finalize")
    assert audit_detail(following, "invoice.finalize")["settled"] == 100


def test_an_invoice_settled_by_credit_notes_is_audited_as_paid() -> None:
    invoice = create_october_invoice_of()
    issue_note(invoice, {1: 200})
    with tenant_scope(invoice.tenant_id):
        assert not AuditEvent.objects.filter(action="invoice.pay").exists()
    issue_note(invoice)
    assert audit_detail(invoice, "invoice.pay")["amount"] == 0


def audit_detail(invoice: Invoice, action: str) -> dict[str, Any]:
    with tenant_scope(invoice.tenant_id):
        return AuditEvent.objects.get(action=action, subject_id=invoice.pk).detail
