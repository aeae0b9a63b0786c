"""What was given back can go back to the card that it came from: out of the balance, once, never more than was paid."""

from datetime import timedelta
from unittest import mock

import pytest
from django.db import DatabaseError, transaction

from billing import tasks
from billing.domain.collecting import MOST_FALLS
from billing.gateways.simulated import SimulatedGateway
from billing.models import PaymentRefund, PaymentTerms, Refund, TenantTerms
from billing.services import proofs
from billing.services.ledger import accounts, books, catching_up
from billing.services.refunds import collecting, opening
from billing.services.refunds.collecting import SENDING
from billing.services.refunds.opening import NotRefundable
from ports import clock, payments
from ports.payments import Declined, Succeeded
from tenants.models import AuditEvent
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.credits.notes import november
from tests.billing.ledger.ledgers import booked
from tests.billing.payments.bills import MIRA, NOW, Ill, ill, pay
from tests.billing.refunds.ways import balance, every, fresh, paid, payment, send_back, sent, work

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_what_was_given_back_goes_back_to_the_card_and_is_booked() -> None:
    invoice = paid()
    made = send_back(invoice, 100)
    assert (made.status, balance(invoice), sent(invoice)) == ("pending", 20, [])
    done = work(made)
    assert (done.status, done.reference[:6], balance(invoice), sent(invoice)) == (
        "succeeded",
        "simre_",
        20,
        [100],
    )
    assert ("refund", "wallet_paid", "cash", 100) in booked(invoice)
    with as_tenant(invoice.tenant_id):
        mark = PaymentRefund.objects.get()
        told = list(AuditEvent.objects.filter(action__startswith="refund.").order_by("pk"))
    assert (mark.pk, mark.minor, mark.status) == (done.reference, 100, "succeeded")
    assert [each.action for each in told] == ["refund.open", "refund.succeed"]
    assert (told[0].detail["reason"], told[0].detail["minor"]) == ("charged twice elsewhere", 100)
    with as_staff():
        assert books.reckoned()[1] == ()
        assert [proof.name for proof in proofs.check(now=NOW + HOUR) if not proof.holds] == []


def test_the_statement_of_account_tells_of_it() -> None:
    invoice = paid()
    work(send_back(invoice, 100, now=NOW + HOUR), now=NOW + HOUR)
    with as_tenant(invoice.tenant_id):
        told = accounts.account(invoice.tenant_id, "EUR", since=NOW - 99 * HOUR, until=NOW + 99 * HOUR)
    assert (told.entries[-1].words, told.entries[-1].kept) == (
        f"Back to your card, of invoice {invoice}",
        -100,
    )
    assert told.closing_kept == balance(invoice) == 20
    opening.came_back(every(invoice)[0], now=NOW + 2 * HOUR)
    with as_tenant(invoice.tenant_id):
        told = accounts.account(invoice.tenant_id, "EUR", since=NOW, until=NOW + 99 * HOUR)
    assert (told.entries[-1].words, told.entries[-1].kept) == (
        f"Did not reach your card, of invoice {invoice}",
        100,
    )


@pytest.mark.parametrize(
    ("minor", "credited", "why"),
    [
        (0, 120, "Nothing would go back"),
        (-5, 120, "Nothing would go back"),
        (306, 120, r"took €3.05, of which €0.00 went back: €3.05 is left"),
        (121, 120, r"Of the invoice €1.20 was given back to the balance"),
        (1, 0, r"Of the invoice €0.00 was given back to the balance"),
    ],
)
def test_a_refund_larger_than_the_payment_or_than_what_was_given_back_is_refused_and_nothing_is_booked(
    minor: int, credited: int, why: str
) -> None:
    invoice = paid(credited=credited)
    before = booked(invoice)
    with pytest.raises(Invalid, match=why):
        send_back(invoice, minor)
    assert (every(invoice), booked(invoice), balance(invoice)) == ([], before, credited)


def test_what_the_next_invoice_was_settled_from_cannot_go_back_too() -> None:
    invoice = paid()
    november(invoice, 100)
    with pytest.raises(Invalid, match=r"Of the tenant's balance €0.20 is free"):
        send_back(invoice, 21)
    assert work(send_back(invoice, 20)).status == "succeeded"


def test_what_a_prepaid_tenant_uses_already_is_spoken_for() -> None:
    invoice = paid()
    with as_tenant(invoice.tenant_id):
        TenantTerms.objects.create(tenant_id=invoice.tenant_id, payment=PaymentTerms.PREPAID, since=NOW)
    with mock.patch("billing.services.wallets.money.funds") as funds:
        funds.return_value.available = 30
        with pytest.raises(Invalid, match=r"€0.30 is free"):
            send_back(invoice, 31)
        assert send_back(invoice, 30).minor == 30


def test_in_parts_no_more_goes_back_than_was_given_back() -> None:
    invoice = paid()
    for n in range(3):
        work(send_back(invoice, 40, seen=40 * n))
    assert (sent(invoice), balance(invoice)) == ([40, 40, 40], 0)
    with pytest.raises(Invalid, match=r"€1.20 of that went back to the card"):
        send_back(invoice, 1, seen=120)


def test_asked_twice_it_goes_back_once() -> None:
    invoice = paid()
    made = send_back(invoice, 40)
    with pytest.raises(NotRefundable, match=r"Refund ref_\w+ of €0.40 is pending"):
        send_back(invoice, 40)
    work(made)
    work(made)
    with pytest.raises(NotRefundable, match=r"€0.40 went back by now, not €0.00"):
        send_back(invoice, 40)
    assert (sent(invoice), balance(invoice)) == ([40], 80)


def test_without_a_reason_nothing_goes_back() -> None:
    invoice = paid()
    with pytest.raises(Invalid):
        send_back(invoice, 40, why=" ")
    assert every(invoice) == []


def test_of_a_payment_that_took_nothing_or_whose_gateway_is_gone_nothing_goes_back() -> None:
    invoice = paid()
    with payments.through(None), pytest.raises(NotRefundable, match="not set here any longer"):
        send_back(invoice, 40)
    from tests.billing.payments.bills import bill

    waits = pay(bill())
    with pytest.raises(NotRefundable, match="is pending"):
        opening.refund(waits, minor=1, seen=0, why="x", actor=MIRA, now=NOW)


def test_what_went_back_at_the_gateway_or_to_the_bank_counts() -> None:
    invoice = paid()
    was = payment(invoice)
    with as_tenant(invoice.tenant_id):
        for n, status in enumerate(("succeeded", "pending", "failed", "canceled")):
            PaymentRefund.objects.create(
                id=f"re_{n}", tenant_id=invoice.tenant_id, payment=was, status=status, rank=1, minor=30,
                made_at=NOW, seen_at=NOW,
            )  # fmt: skip
        assert opening.room(was, now=NOW).back == 60
    with pytest.raises(Invalid, match=r"€0.60 of that went back"):
        send_back(invoice, 61, seen=60)
    assert work(send_back(invoice, 60, seen=60)).status == "succeeded"


@pytest.mark.parametrize("silence", [Ill.LOST, Ill.UNREACHABLE])
def test_a_silence_is_asked_about_again_and_it_goes_back_once(silence: Ill) -> None:
    invoice = paid()
    ill(invoice, silence)
    waits = work(send_back(invoice, 40))
    assert (waits.status, waits.trouble != "") == ("pending", True)
    later = NOW + HOUR
    assert collecting.due(now=later) == [("billing.refund", waits.pk, waits.tenant_id)]
    assert work(waits, now=later).status == "succeeded"
    assert (sent(invoice), balance(invoice)) == ([40], 80)


def test_what_the_gateway_declines_is_on_the_balance_again() -> None:
    invoice = paid()
    ill(invoice, Ill.DECLINED)
    done = work(send_back(invoice, 40))
    assert (done.status, done.code, balance(invoice), sent(invoice)) == (
        "declined",
        "not_taken_back",
        120,
        [],
    )
    assert ("refund", "cash", "wallet_paid", 40) in booked(invoice)
    assert work(send_back(invoice, 40)).status == "succeeded"


def test_what_is_stuck_is_asked_for_again_by_a_person() -> None:
    invoice = paid()
    ill(invoice, Ill.REJECTED)
    stuck = work(send_back(invoice, 40))
    assert (stuck.status, balance(invoice)) == ("stuck", 80)
    with pytest.raises(NotRefundable, match="is stuck"):
        send_back(invoice, 40)
    opening.ask_again(stuck, actor=MIRA, now=NOW + HOUR)
    with pytest.raises(NotRefundable, match="is pending"):
        opening.ask_again(stuck, actor=MIRA, now=NOW + HOUR)
    assert work(stuck, now=NOW + HOUR).status == "succeeded"
    assert sent(invoice) == [40]


def test_what_the_bank_sends_back_later_is_on_the_balance_once() -> None:
    invoice = paid()
    done = work(send_back(invoice, 40))
    assert opening.came_back(done, now=NOW + HOUR)
    assert not opening.came_back(done, now=NOW + HOUR)
    assert balance(invoice) == 120
    with as_tenant(invoice.tenant_id):
        PaymentRefund.objects.filter(pk=done.reference).update(status="failed")
        assert opening.room(payment(invoice), now=NOW).back == 0
    with as_staff():
        assert books.reckoned()[1] == ()


def test_a_crash_anywhere_books_and_sends_once() -> None:
    invoice = paid()
    made = send_back(invoice, 40)
    with (
        mock.patch.object(SENDING, "book", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
        transaction.atomic(),
    ):
        work(made)
    assert fresh(made).status == "pending"
    assert work(made, now=NOW + HOUR).status == "succeeded"
    assert (sent(invoice), balance(invoice)) == ([40], 80)


def test_what_fails_as_nobody_foresaw_is_left_to_a_person() -> None:
    invoice = paid()
    made, now = send_back(invoice, 40), NOW
    with mock.patch.object(SimulatedGateway, "refund", side_effect=ZeroDivisionError("odd")):
        for _ in range(MOST_FALLS):
            with clock.standing_at(now):
                tasks.refund(made.pk, made.tenant_id)
            now += 2 * HOUR
    assert (fresh(made).status, fresh(made).code) == ("stuck", "unforeseen")
    odd = mock.patch.object(SENDING, "claim", side_effect=ZeroDivisionError)
    with clock.standing_at(now), odd, pytest.raises(ZeroDivisionError):
        tasks.refund("ref_gone", made.tenant_id)


def test_a_refund_the_gateway_told_of_first_is_noted_once() -> None:
    invoice = paid()
    made = send_back(invoice, 40)
    told = {"payment": payment(invoice), "minor": 40, "made_at": NOW, "seen_at": NOW, "rank": 1}
    with as_tenant(invoice.tenant_id):
        PaymentRefund.objects.create(id="re_1", tenant_id=invoice.tenant_id, status="pending", **told)
        row = Refund.objects.select_related("payment__invoice").get()
    SENDING.settle(row, Succeeded("re_1"), NOW)
    SENDING.settle(row, Declined("late", "late"), NOW)
    with as_tenant(invoice.tenant_id):
        assert PaymentRefund.objects.get().status == "succeeded"
    assert (fresh(made).status, balance(invoice)) == ("succeeded", 80)


def test_what_the_books_lack_of_it_is_booked_later() -> None:
    invoice = paid()
    with mock.patch("billing.services.ledger.posting.refunded"):
        made = send_back(invoice, 40)
    assert balance(invoice) == 120
    assert catching_up.post_missing(now=NOW + HOUR) == 1
    ill(invoice, Ill.DECLINED)
    with mock.patch("billing.services.ledger.posting.unrefunded"):
        work(made)
    assert balance(invoice) == 80
    assert catching_up.post_missing(now=NOW + HOUR) == 1
    assert (balance(invoice), catching_up.post_missing(now=NOW + HOUR)) == (120, 0)


# What PostgreSQL keeps


@pytest.mark.parametrize(
    "change", [{"minor": 1}, {"status": "declined"}, {"payment_id": "pay_x"}, {"why": "other"}]
)
def test_a_settled_refund_stays_what_it_is(change: dict[str, object]) -> None:
    invoice = paid()
    done = work(send_back(invoice, 40))
    refused = pytest.raises(DatabaseError, match=r"stays what it is|violates")
    with refused, transaction.atomic(), as_tenant(invoice.tenant_id):
        Refund.objects.filter(pk=done.pk).update(**change)


def test_more_than_a_payment_took_is_refused_by_the_database_too() -> None:
    invoice = paid()
    was = payment(invoice)
    work(send_back(invoice, 40))
    row = {"tenant_id": invoice.tenant_id, "payment": was, "currency": "EUR", "gateway": "simulated", "why": "x",
           "opened_at": NOW, "opened_by": "x", "due_at": NOW}  # fmt: skip
    refused = pytest.raises(DatabaseError, match="no more than it took")
    with refused, transaction.atomic(), as_tenant(invoice.tenant_id):
        Refund.objects.create(**row, minor=266)
    with as_tenant(invoice.tenant_id):
        assert Refund.objects.create(**row, minor=265).minor == 265
