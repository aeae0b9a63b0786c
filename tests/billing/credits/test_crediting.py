"""What an invoice should not have charged is given back: off what is due, or to the balance of whoever paid it."""

from typing import Any

import pytest
from django.db.models import Sum

from billing.models import CreditNote, Invoice, InvoiceLine, RatedCharge
from billing.services import crediting, drafts, rating
from billing.services.crediting import NotCreditable
from billing.services.ledger import books
from billing.services.payments.opening import NotPayable
from billing.services.payments.standing import Standing, stands
from tenants.models import AuditEvent
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.credits.notes import LATER, WHY, credit, month_of_two_lines, november
from tests.billing.ledger.ledgers import booked, on_accounts
from tests.billing.payments.bills import NOW, Ill, bill, collect, draft, fresh, ill, pay, sweep, taken

pytestmark = pytest.mark.django_db


def balance(invoice: Invoice) -> int:
    with as_tenant(invoice.tenant_id):
        return books.balance(invoice.tenant_id, invoice.currency)


def test_what_is_given_back_of_an_unpaid_invoice_is_not_due_and_not_collected() -> None:
    invoice = month_of_two_lines()
    note = credit(invoice, {1: 50})
    assert (str(note), note.total, note.off_due, note.to_balance) == ("CN-2026-11-0001", 50, 50, 0)
    assert fresh(invoice).to_pay == 255
    assert collect(pay(invoice)).minor == 255
    assert taken(invoice) == [255]
    assert on_accounts(invoice.tenant_id) == {"receivable": 0, "accrued": 0}
    assert on_accounts() == {"revenue": 255, "cash": 255}


def test_what_is_given_back_of_all_of_it_settles_it_and_nobody_is_asked_for_money() -> None:
    invoice = month_of_two_lines()
    note = credit(invoice)
    assert (note.total, note.off_due) == (305, 305)
    found = fresh(invoice)
    assert (found.status, found.paid_at, found.to_pay) == ("paid", NOW, 0)
    sweep(NOW)
    assert taken(invoice) == []
    with as_tenant(invoice.tenant_id):
        assert (stands(found).how, stands(found).payment) == (Standing.PAID, None)
    assert on_accounts() == {"revenue": 0}


def test_what_was_paid_goes_to_the_balance_and_the_next_invoice_is_settled_from_it() -> None:
    invoice = month_of_two_lines()
    collect(pay(invoice))
    note = credit(invoice, {1: 120})
    assert (note.off_due, note.to_balance, balance(invoice)) == (0, 120, 120)
    following = november(invoice, 200)
    assert (following.settled, following.to_pay, balance(invoice)) == (120, 80, 0)
    assert ("draw", "wallet_paid", "receivable", 120) in booked(following)
    sweep(LATER)
    assert taken(invoice) == [305, 80]
    assert fresh(following).status == "paid"
    with as_staff():
        assert (books.reckoned()[1], books.uncleared()) == ((), [])


def test_an_invoice_that_the_balance_covers_is_paid_without_a_payment() -> None:
    invoice = month_of_two_lines()
    collect(pay(invoice))
    credit(invoice)
    following = november(invoice, 300)
    assert (following.to_pay, balance(invoice)) == (0, 5)
    sweep(LATER)
    assert fresh(following).status == "paid"
    assert taken(invoice) == [305]


def test_what_was_drawn_and_should_not_have_been_charged_is_on_the_balance_again() -> None:
    invoice = month_of_two_lines()
    collect(pay(invoice))
    credit(invoice, {1: 120})
    following = november(invoice, 200)
    note = credit(following, now=LATER)
    assert (note.off_due, note.to_balance, balance(invoice)) == (80, 120, 120)
    assert fresh(following).status == "paid"


def test_every_line_can_be_given_back_in_parts_until_nothing_is_left() -> None:
    invoice = month_of_two_lines()
    numbers = [str(credit(invoice, part)) for part in ({2: 1}, {1: 199, 2: 4}, None)]
    assert numbers == ["CN-2026-11-0001", "CN-2026-11-0002", "CN-2026-11-0003"]
    with as_tenant(invoice.tenant_id):
        assert [line.left for line in crediting.left(invoice)] == [0, 0]
        assert CreditNote.objects.aggregate(all=Sum("total"))["all"] == invoice.total
    with pytest.raises(Invalid, match="Nothing is left"):
        credit(invoice)


def test_b27_what_was_given_back_is_not_charged_again() -> None:
    invoice = month_of_two_lines()
    with as_tenant(invoice.tenant_id):
        before = [list(model.objects.values()) for model in (RatedCharge, InvoiceLine)]
    credit(invoice)
    with as_tenant(invoice.tenant_id):
        rating.rate_tenant(invoice.tenant, now=LATER)
        drafts.refresh(invoice.tenant, now=LATER)
        assert [list(model.objects.values()) for model in (RatedCharge, InvoiceLine)] == before


@pytest.mark.parametrize(
    ("wanted", "why"), [({1: 201}, "no more than €2.00"), ({9: 1}, "no line 9"), ({1: 0}, "nothing would be")]
)
def test_more_than_there_is_is_refused_and_nothing_is_booked(wanted: dict[int, int], why: str) -> None:
    invoice = month_of_two_lines()
    before = booked(invoice)
    with pytest.raises(Invalid, match=why):
        credit(invoice, wanted)
    assert booked(invoice) == before
    assert fresh(invoice).to_pay == 305


def test_a_credit_note_has_a_reason() -> None:
    with pytest.raises(Invalid, match="reason"):
        credit(month_of_two_lines(), why=" \n ")


def test_a_draft_and_a_void_invoice_are_not_credited() -> None:
    void = month_of_two_lines()
    with as_tenant(void.tenant_id):
        Invoice.objects.filter(pk=void.pk).update(status="void")
    for invoice in (draft(), void):
        with pytest.raises(NotCreditable, match="This invoice is"):
            credit(invoice)


def test_nothing_is_given_back_while_a_payment_may_have_taken_it() -> None:
    invoice = month_of_two_lines()
    payment = pay(invoice)
    with pytest.raises(NotCreditable, match=f"Payment {payment.pk}"):
        credit(invoice)
    collect(payment)
    assert credit(invoice).to_balance == 305


def test_after_a_payment_that_was_declined_it_is_given_back_and_settled() -> None:
    invoice = bill()
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))
    credit(invoice)
    found = fresh(invoice)
    with as_tenant(invoice.tenant_id):
        assert (stands(found).how, stands(found).payment) == (Standing.PAID, None)
    with pytest.raises(NotPayable, match="is paid"):
        pay(invoice)


def test_the_trail_says_who_gave_back_what_and_why() -> None:
    invoice = month_of_two_lines()
    note = credit(invoice, {1: 50})
    with as_tenant(invoice.tenant_id):
        event = AuditEvent.objects.get(action="invoice.credit")
    assert (event.subject_id, event.actor_label) == (invoice.pk, "operator@example.org")
    assert event.detail == {
        "credit_note": str(note),
        "amount": 50,
        "currency": "EUR",
        "reason": WHY,
    }


def test_the_trail_tells_what_went_to_the_balance_and_was_drawn_from_it() -> None:
    invoice = month_of_two_lines()
    collect(pay(invoice))
    credit(invoice, {1: 150})
    following = november(invoice, 100)
    assert detail(invoice, "invoice.credit")["to_balance"] == 150
    assert "settled" not in detail(invoice, "invoice.finalize")
    assert detail(following, "invoice.finalize")["settled"] == 100


def test_the_trail_says_that_an_invoice_is_settled_whoever_paid_none_of_it() -> None:
    invoice = month_of_two_lines()
    credit(invoice, {1: 200})
    with as_tenant(invoice.tenant_id):
        assert not AuditEvent.objects.filter(action="invoice.pay").exists()
    credit(invoice)
    assert detail(invoice, "invoice.pay")["amount"] == 0


def detail(invoice: Invoice, action: str) -> dict[str, Any]:
    with as_tenant(invoice.tenant_id):
        return AuditEvent.objects.get(action=action, subject_id=invoice.pk).detail
