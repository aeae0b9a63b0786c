"""What is no use to ask again, and what fails as nobody foresaw, waits for a person: seen, told, and never doubled."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest

from billing import tasks
from billing.domain.collecting import MOST_FALLS
from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice, Payment
from billing.services.moves import moving
from billing.services.payments import collecting, opening
from billing.services.payments.opening import NotPayable
from billing.services.payments.standing import Standing, stands
from config import metrics
from ports import clock, payments
from ports.payments import Charge, Declined, Outcome, Succeeded
from tenants.models import AuditEvent
from tenants.services.walls import as_tenant
from tests.billing.payments.bills import NOW, Ill, bill, collect, fresh, ill, pay, sweep, taken, tried

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


class Broken(SimulatedGateway):
    """Takes the money, and then trips over its own feet."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        outcome = super().charge(charge, now=now)
        if self.errors:
            raise self.errors.pop(0)
        return outcome


class Says(SimulatedGateway):
    """Answers with what it was given."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        return self.outcome


def work(payment: Payment, *, now: datetime) -> Payment:
    """Let a worker run the task."""
    with clock.standing_at(now):
        tasks.collect(payment.pk, payment.tenant_id)
    with as_tenant(payment.tenant_id):
        return Payment.objects.get(pk=payment.pk)


@contextmanager
def broken(*errors: Exception) -> Iterator[Broken]:
    gateway = Broken(*errors)
    with payments.through(gateway):
        yield gateway


def stuck(invoice: Invoice) -> Payment:
    """Let its payment be rejected, and return it."""
    ill(invoice, Ill.REJECTED)
    return collect(pay(invoice))


def standing(invoice: Invoice) -> tuple[Standing, bool]:
    with as_tenant(invoice.tenant_id):
        told = stands(fresh(invoice))
        return told.how, told.payable


def acts(invoice: Invoice) -> list[str]:
    with as_tenant(invoice.tenant_id):
        told = AuditEvent.objects.filter(subject_id=invoice.pk).order_by("pk")
        return [each.action for each in told if each.action != "invoice.finalize"]


def told() -> dict[str, float]:
    return {sample.name: sample.value for family in metrics.money() for sample in family.samples}


def test_what_is_no_use_to_ask_again_waits_for_a_person_and_says_why() -> None:
    invoice = bill()
    payment = stuck(invoice)
    assert (payment.status, payment.stuck_at, payment.due_at) == ("stuck", NOW, None)
    assert (payment.code, payment.reason) == (
        "bad_credentials",
        "The simulated gateway does not accept our credentials.",
    )
    assert standing(invoice) == (Standing.STUCK, True)
    assert acts(invoice) == ["payment.open", "payment.stick"]
    assert told()["gpubroker_payments_stuck"] == 1


def test_by_itself_nobody_asks_again_and_no_other_payment_is_begun() -> None:
    invoice = bill()
    payment = stuck(invoice)
    for day in range(10):
        sweep(NOW + timedelta(days=day))
        collect(payment, now=NOW + timedelta(days=day))
    assert [(each.pk, each.tries) for each in tried(invoice)] == [(payment.pk, 1)]
    assert taken(invoice) == []


def test_who_pays_again_has_the_same_payment_asked_for_again(rung: list[tuple[str, ...]]) -> None:
    invoice = bill()
    payment = stuck(invoice)
    again = pay(invoice, now=NOW + HOUR)
    assert (again.pk, again.status, again.due_at, again.reason) == (payment.pk, "pending", NOW + HOUR, "")
    assert rung[-1] == ("billing.collect", payment.pk, payment.tenant_id, NOW + HOUR)
    assert collect(again, now=NOW + HOUR).status == "succeeded"
    assert (fresh(invoice).status, taken(invoice), len(tried(invoice))) == ("paid", [200], 1)
    assert acts(invoice) == ["payment.open", "payment.stick", "payment.retry", "invoice.pay"]
    assert told()["gpubroker_payments_stuck"] == 0


def test_money_that_was_taken_before_the_rejection_is_found_and_not_taken_twice() -> None:
    invoice = bill()
    ill(invoice, Ill.LOST, Ill.REJECTED)
    waiting = collect(pay(invoice))
    assert waiting.due_at is not None
    assert collect(waiting, now=waiting.due_at).status == "stuck"
    assert taken(invoice) == [200]
    collect(pay(invoice, now=NOW + HOUR), now=NOW + HOUR)
    assert (fresh(invoice).status, taken(invoice)) == ("paid", [200])


def test_another_gateway_is_not_asked_about_it() -> None:
    invoice = bill()
    stuck(invoice)

    class Other(SimulatedGateway):
        name = "other"

    for collector in (Other(), None):
        with payments.through(collector):
            assert standing(invoice) == (Standing.STUCK, False)
            with pytest.raises(NotPayable, match="begun through simulated") as refused:
                pay(invoice, now=NOW + HOUR)
            assert "Ask the operator" in refused.value.fix.text
    assert [each.status for each in tried(invoice)] == ["stuck"]


def test_an_answer_that_comes_late_counts_though_it_is_stuck() -> None:
    """The first worker's claim ran out while it waited; the second was rejected; the first brings the reference."""
    invoice = bill()
    payment = pay(invoice)
    slow = collecting.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    assert slow is not None
    ill(invoice, Ill.REJECTED)
    assert collect(payment, now=NOW + 2 * moving.CLAIM).status == "stuck"
    collecting.PAYMENTS.settle(slow, collecting.PAYMENTS.asked(slow, NOW), NOW + HOUR)
    (after,) = tried(invoice)
    assert (after.status, after.stuck_at, after.reason, after.code) == ("succeeded", None, "", "")
    assert (fresh(invoice).status, taken(invoice)) == ("paid", [200])


def test_a_rejection_that_comes_late_changes_nothing() -> None:
    invoice = bill()
    payment = pay(invoice)
    slow = collecting.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW)
    assert slow is not None
    collect(payment, now=NOW + 2 * moving.CLAIM)
    collecting.PAYMENTS.stick(slow, "No.", "no", NOW + HOUR)
    assert [each.status for each in tried(invoice)] == ["succeeded"]


def test_what_nobody_foresaw_is_noted_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    invoice = bill()
    payment = pay(invoice)
    with broken(KeyError("token=hunter2")):
        waiting = work(payment, now=NOW)
        assert (waiting.status, waiting.fell, waiting.claimed_until) == ("pending", 1, None)
        assert waiting.trouble == "the attempt failed as nobody foresaw, with KeyError"
        assert "nobody foresaw" in caplog.text
        assert (told()["gpubroker_payments_failing"], told()["gpubroker_payments_stuck"]) == (1, 0)
        assert waiting.due_at is not None
        assert work(payment, now=waiting.due_at).status == "succeeded"
    assert (fresh(invoice).status, taken(invoice)) == ("paid", [200])
    assert told()["gpubroker_payments_failing"] == 0


def test_after_some_failures_in_a_row_it_waits_for_a_person() -> None:
    invoice = bill()
    payment, now, waits = pay(invoice), NOW, []
    with broken(*[ValueError("a mistake")] * 50) as gateway:
        while payment.due_at is not None:
            assert taken(invoice) in ([], [200])
            waits.append(payment.due_at - now)
            now = payment.due_at
            payment = work(payment, now=now)
            assert len(waits) < 50
        assert len(waits) == MOST_FALLS
        assert waits == sorted(waits)
        assert payment.status == "stuck"
        assert payment.reason == "8 attempts in a row failed as nobody foresaw, the last with ValueError."
        gateway.errors.clear()
        assert work(pay(invoice, now=now), now=now).status == "succeeded"
    assert (fresh(invoice).status, taken(invoice), len(tried(invoice))) == ("paid", [200], 1)


def test_an_orderly_silence_between_begins_the_count_anew() -> None:
    invoice = bill()
    payment, now = pay(invoice), NOW
    for _ in range(3):
        with broken(*[ValueError("a mistake")] * (MOST_FALLS - 1)):
            for _ in range(MOST_FALLS - 1):
                payment = work(payment, now=now)
                assert payment.due_at is not None
                now = payment.due_at
        ill(invoice, Ill.UNREACHABLE)
        payment = work(payment, now=now)
        assert (payment.status, payment.fell) == ("pending", 0)
        assert payment.due_at is not None
        now = payment.due_at


def test_a_payment_that_its_workers_die_of_is_not_given_to_one_after_the_other_for_ever() -> None:
    invoice = bill()
    payment, now = pay(invoice), NOW
    for _ in range(MOST_FALLS):
        assert (
            collecting.PAYMENTS.claim(payment.pk, payment.tenant_id, now) is not None
        )  # and no more is heard of it
        now += 2 * moving.CLAIM
    payment = collect(payment, now=now)
    assert (payment.status, payment.code) == ("stuck", "unforeseen")
    assert "ended with the death of the process" in payment.reason
    assert taken(invoice) == []


@pytest.mark.parametrize(("reference", "kept"), [("x" * 121, "x" * 120), ("sim\0", "sim")])
def test_money_that_was_taken_counts_whatever_its_reference_is(reference: str, kept: str) -> None:
    invoice = bill()
    with payments.through(Says(Succeeded(reference))):
        payment = work(pay(invoice), now=NOW)
    assert (payment.status, payment.reference) == ("succeeded", kept)
    assert fresh(invoice).status == "paid"


def test_an_answer_that_is_none_is_a_failure_that_is_noted() -> None:
    invoice = bill()
    with payments.through(Says(Succeeded(None))):  # type: ignore[arg-type]
        payment = work(pay(invoice), now=NOW)
    assert (payment.status, payment.fell) == ("pending", 1)
    assert fresh(invoice).status == "finalized"


def test_no_answer_at_all_is_a_failure_that_is_noted() -> None:
    with payments.through(Says(None)):  # type: ignore[arg-type]
        payment = work(pay(bill()), now=NOW)
    assert (payment.status, payment.trouble) == (
        "pending",
        "the attempt failed as nobody foresaw, with AttributeError",
    )


def test_words_that_no_row_can_hold_are_cut() -> None:
    with payments.through(Says(Declined("No\0. " + "x" * 500, "c" * 200))):
        payment = work(pay(bill()), now=NOW)
    assert (payment.status, len(payment.reason), len(payment.code)) == ("declined", 200, 60)
    assert payment.reason.startswith("No. x")


def test_what_fails_before_a_payment_is_reached_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    payment = pay(bill())

    def fails(*given: object) -> None:
        raise ValueError("before the claim")

    monkeypatch.setattr(collecting.PAYMENTS, "claim", fails)
    with pytest.raises(ValueError, match="before the claim"):
        work(payment, now=NOW)


def test_one_payment_that_fails_keeps_no_other_from_being_collected() -> None:
    first, second = bill(), bill()
    with broken(ValueError("a mistake")):
        assert work(pay(first), now=NOW).status == "pending"
        assert work(pay(second), now=NOW).status == "succeeded"
    assert opening.open_due(now=NOW + timedelta(days=3)) == 0
