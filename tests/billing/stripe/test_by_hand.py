"""Where operators find that nothing was taken, Stripe is asked first, and what is there can be paid by nobody later."""

from datetime import timedelta

import pytest

from billing.models import Invoice, Payment, StripeDifference, TopUp
from billing.services.moves import by_hand
from billing.services.payments.collecting import PAYMENTS
from billing.services.stripe import planning, reconciling
from billing.services.topups.collecting import TOPUPS
from ports import payments
from tenants.services.walls import as_tenant
from tests.billing.payments.bills import MIRA, NOW, collect, fresh, pay, tried
from tests.billing.stripe.purses import at, billed, book, commands, taken, there
from tests.billing.topups import tills
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import holder
from tests.world import NOW as WORLD_NOW
from tests.world import home

pytestmark = pytest.mark.django_db
LATER, HOUR = NOW + timedelta(hours=1), timedelta(hours=1)


def stuck(fake: FakeStripe, step: str, *ills: str) -> Payment:
    """Return a payment that got as far as this step, and then waits for a person."""
    invoice = billed(fake, how="silent")
    fake.ill = at(step, *ills, "unauthorized")
    payment, now = collect(pay(invoice)), NOW
    while payment.status != "stuck":
        assert payment.due_at is not None
        now = payment.due_at
        payment = collect(payment, now=now)
    return payment


def of(payment: Payment) -> Invoice:
    with as_tenant(payment.tenant_id):
        return Invoice.objects.get(pk=payment.invoice_id)


def untaken(payment: Payment) -> Payment:
    by_hand.nothing_was_taken(PAYMENTS, payment, why="looked at it", actor=MIRA, now=LATER)
    return collect(payment, now=LATER)


@pytest.mark.parametrize(
    ("step", "ills", "left"),
    [
        ("invoices", (), []),
        ("invoices", ("lost",), []),
        ("add_lines", (), []),
        ("finalize", (), []),
        ("finalize", ("lost",), ["void"]),
        ("pay", (), ["void"]),
    ],
)
def test_however_far_it_came_nothing_is_left_there_that_can_be_paid(
    fake: FakeStripe, step: str, ills: tuple[str, ...], left: list[str]
) -> None:
    payment = untaken(stuck(fake, step, *ills))
    assert (payment.status, payment.code) == ("declined", "nothing_taken")
    assert [each["status"] for each in there(fake)] == left
    assert book(of(payment)).outcome == "declined"
    again = collect(pay(fresh(of(payment)), now=LATER), now=LATER)
    assert again.status == "pending"  # the card's bank dawdles, and is asked about this one alone
    assert len([each for each in there(fake) if each["status"] == "open"]) == 1


def test_what_was_paid_there_is_paid_and_not_taken_twice(fake: FakeStripe) -> None:
    payment = stuck(fake, "pay")
    (sent,) = there(fake)
    card = next(iter(fake.things.all("payment_method").values()))
    card["how"] = "ok"
    things.pay(fake.things, sent["id"], {"payment_method": card["id"]})
    assert untaken(payment).status == "succeeded"
    assert (fresh(of(payment)).status, taken(fake)) == ("paid", [200])


def test_what_the_bank_has_not_answered_is_waited_for(fake: FakeStripe) -> None:
    payment = stuck(fake, "pay")
    (sent,) = there(fake)
    card = next(iter(fake.things.all("payment_method").values()))
    things.pay(fake.things, sent["id"], {"payment_method": card["id"]})
    waits = untaken(payment)
    assert (waits.status, "bank has not answered" in waits.trouble) == ("pending", True)
    things.bank_pays(fake.things, sent)
    assert collect(payment, now=LATER + HOUR).status == "succeeded"


def test_without_an_answer_of_stripes_nothing_is_settled(fake: FakeStripe) -> None:
    payment = stuck(fake, "pay")
    fake.ill = at("get", "unauthorized")
    waits = untaken(payment)
    assert (waits.status, waits.reason) == ("stuck", "Stripe does not accept our credentials.")
    assert [each["status"] for each in there(fake)] == ["open"]


def test_an_invoice_that_is_odd_there_is_left_to_people(fake: FakeStripe) -> None:
    payment = stuck(fake, "pay")
    there(fake)[0]["amount_paid"] = 70
    waits = untaken(payment)
    assert (waits.status, waits.code) == ("stuck", "unforeseen_at_stripe")


def test_what_is_void_or_gone_there_already_is_declined(fake: FakeStripe) -> None:
    payment = stuck(fake, "pay")
    there(fake)[0]["status"] = "void"
    assert untaken(payment).status == "declined"
    other = stuck(fake, "pay")
    fake.things.all("invoice").clear()
    assert untaken(other).status == "declined"


def test_a_gateway_that_is_gone_leaves_its_charge_and_the_night_says_what_can_still_be_paid(
    fake: FakeStripe,
) -> None:
    payment = stuck(fake, "pay")
    with payments.through(None):
        by_hand.nothing_was_taken(PAYMENTS, payment, why="gone", actor=MIRA, now=LATER)
    assert [each.status for each in tried(of(payment))] == ["declined"]
    fake.now = now = NOW + timedelta(days=1)
    planning.plan(now=now)
    for day in planning.due(now=now):
        reconciling.work(day, now=now)
    assert [each.kind for each in StripeDifference.objects.all()] == ["open_there_declined_here"]


def test_a_top_up_that_is_stuck_is_settled_by_hand_as_payments_are(fake: FakeStripe) -> None:
    owner = home("Kestrel")
    holder(fake, owner.tenant.pk)
    fake.ill = at("pay", "unauthorized")
    waits = tills.collect(tills.top_up(owner, 5000))
    assert (waits.status, waits.stuck_at) == ("stuck", WORLD_NOW)
    later = WORLD_NOW + HOUR
    by_hand.nothing_was_taken(TOPUPS, waits, why="nothing there", actor=owner.actor, now=later)
    done = tills.collect(waits, now=later)
    assert (done.status, done.code, tills.balance(owner)) == ("declined", "nothing_taken", 0)
    assert [each["status"] for each in there(fake)] == ["void"]
    with as_tenant(owner.tenant.pk):
        assert TopUp.objects.get().untaken == "nothing there"
    assert tills.collect(tills.top_up(owner, 5000, now=later), now=later).status == "succeeded"


def test_the_web_sends_nothing_when_operators_decide(fake: FakeStripe) -> None:
    payment = stuck(fake, "pay")
    before = sum(fake.calls.values())
    by_hand.nothing_was_taken(PAYMENTS, payment, why="looked", actor=MIRA, now=LATER)
    assert sum(fake.calls.values()) == before
    assert "void" not in commands(of(payment))
