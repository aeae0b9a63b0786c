"""Answers that are lost, late or never come: asked again with the same key, so that nobody pays twice."""

from datetime import timedelta

import pytest

from billing.models import SimulatedCharge
from billing.services.moves import moving
from billing.services.payments import collecting
from tests.billing.payments.bills import NOW, Ill, Rung, bill, collect, fresh, ill, pay, sweep, taken, tried

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_after_a_lost_answer_the_same_key_finds_the_charge() -> None:
    invoice = bill()
    ill(invoice, Ill.LOST)
    payment = collect(pay(invoice))
    assert (payment.status, payment.trouble) == ("pending", "the simulated gateway's answer was lost")
    assert (taken(invoice), fresh(invoice).status) == ([200], "finalized")
    payment = collect(payment, now=NOW + HOUR)
    assert (payment.status, payment.trouble, payment.tries) == ("succeeded", "", 2)
    assert (taken(invoice), fresh(invoice).status) == ([200], "paid")


def test_each_silence_is_waited_for_longer(rung: Rung) -> None:
    invoice = bill()
    ill(invoice, *[Ill.UNREACHABLE] * 6)
    payment, now, waits = pay(invoice), NOW, []
    for _ in range(6):
        payment = collect(payment, now=now)
        assert payment.due_at is not None
        assert rung[-1] == ("billing.collect", payment.pk, payment.tenant_id, payment.due_at)
        waits.append((payment.due_at - now).total_seconds())
        now = payment.due_at
    for wait, least in zip(waits, (5, 10, 20, 40, 80, 160), strict=True):
        assert least <= wait <= least * 3 // 2
    assert collect(payment, now=now).status == "succeeded"
    assert taken(invoice) == [200]


def test_before_its_moment_nobody_asks_again() -> None:
    invoice = bill()
    ill(invoice, Ill.UNREACHABLE)
    payment = collect(pay(invoice))
    assert payment.due_at is not None
    early = collect(payment, now=payment.due_at - timedelta(seconds=1))
    assert (early.tries, taken(invoice)) == (1, [])


def test_a_slow_gateway_is_asked_when_it_said(rung: Rung) -> None:
    invoice = bill()
    ill(invoice, Ill.SLOW)
    payment = collect(pay(invoice))
    made = SimulatedCharge.objects.get(payer=invoice.tenant_id)
    assert payment.due_at is not None
    assert payment.due_at >= made.answers_at
    assert collect(payment, now=payment.due_at).status == "succeeded"


def test_no_second_worker_asks_while_one_is_at_it() -> None:
    invoice = bill()
    payment = pay(invoice)
    assert collecting.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW) is not None
    assert collect(payment, now=NOW + timedelta(seconds=59)).status == "pending"
    assert taken(invoice) == []


def test_a_dead_workers_payment_is_taken_over() -> None:
    invoice = bill()
    payment = pay(invoice)
    collecting.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    after = NOW + moving.CLAIM + timedelta(seconds=1)
    assert collecting.due(now=after) == [("billing.collect", payment.pk, payment.tenant_id)]
    assert collect(payment, now=after).status == "succeeded"
    assert taken(invoice) == [200]


@pytest.mark.parametrize("answer", [Ill.NONE, Ill.DECLINED, Ill.UNREACHABLE])
def test_a_worker_that_comes_too_late_changes_nothing(answer: Ill) -> None:
    """Its claim ran out while it waited for the gateway; another asked with the same key and was faster."""
    invoice = bill()
    payment = pay(invoice)
    slow = collecting.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    assert slow is not None
    ill(invoice, Ill.DECLINED if answer is Ill.DECLINED else Ill.NONE)
    done = collect(payment, now=NOW + timedelta(minutes=5))
    assert done.settled_at is not None
    if answer is Ill.UNREACHABLE:
        collecting.PAYMENTS.wait(slow, 5, "nothing", NOW + timedelta(minutes=6))
    else:
        much_later = NOW + timedelta(minutes=6)
        collecting.PAYMENTS.settle(slow, collecting.PAYMENTS.asked(slow, much_later), much_later)
    (after,) = tried(invoice)
    assert (after.status, after.settled_at) == (done.status, done.settled_at)
    assert taken(invoice) == ([] if answer is Ill.DECLINED else [200])


def test_a_key_that_stands_for_something_else_is_said_aloud(caplog: pytest.LogCaptureFixture) -> None:
    invoice = bill()
    payment = pay(invoice)
    SimulatedCharge.objects.create(
        key=payment.pk, payer="ten_x", minor=1, currency="EUR", text="", declined=False, made_at=NOW,
        answers_at=NOW,
    )  # fmt: skip
    stuck = collect(payment)
    assert (stuck.status, stuck.code) == ("stuck", "key_taken")
    assert "stands for a charge of 1 EUR" in stuck.reason


def test_a_gateway_that_is_away_for_three_days_holds_nothing_up_for_good() -> None:
    invoices = [bill() for _ in range(3)]
    for invoice in invoices:
        ill(invoice, *[Ill.UNREACHABLE] * 40)
    now = NOW
    while now < NOW + timedelta(days=3):
        sweep(now)
        now += timedelta(minutes=30)
    for invoice in invoices:
        ill(invoice)
    sweep(now + timedelta(hours=2))
    assert [fresh(each).status for each in invoices] == ["paid"] * 3
    assert [taken(each) for each in invoices] == [[200]] * 3
    assert [len(tried(each)) for each in invoices] == [1] * 3
