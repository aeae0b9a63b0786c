"""What operators settle by hand: that nothing was taken, with a reason, and only while nobody brings another answer."""

from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice, Payment
from billing.services.moves import by_hand, moving
from billing.services.moves.by_hand import NotByHand
from billing.services.moves.moving import Moved
from billing.services.payments import collecting, waiting
from billing.services.payments.standing import Standing, stands
from ports import payments
from ports.payments import Declined
from tenants.models import AuditEvent
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.payments.bills import NOW, Ill, bill, collect, fresh, ill, pay, sweep, taken, tried

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(hours=1)
ADA = Actor("staff", "usr_ada", "ada@operator.example")


class Other(SimulatedGateway):
    name = "other"


def stuck(invoice: Invoice) -> Payment:
    ill(invoice, Ill.REJECTED)
    return collect(pay(invoice))


def untaken(payment: Payment, *, why: str = "the account was closed", now: datetime = LATER) -> Payment:
    """Say so, as operators do, and let a worker see to it."""
    by_hand.nothing_was_taken(collecting.PAYMENTS, payment, why=why, actor=ADA, now=now)
    return collect(payment, now=now)


def test_where_nothing_was_taken_the_invoice_is_due_again_through_the_gateway_of_now() -> None:
    invoice = bill()
    payment = stuck(invoice)
    with payments.through(Other()):
        untaken(payment)
        with as_tenant(invoice.tenant_id):
            told = stands(fresh(invoice))
        assert (told.how, told.payable) == (Standing.DECLINED, True)
        assert collect(pay(invoice, now=LATER), now=LATER).status == "succeeded"
    first, second = tried(invoice)
    assert (first.status, first.code, first.settled_at) == ("declined", "nothing_taken", LATER)
    assert first.reason == "Operators found that nothing was taken: the account was closed"
    assert (second.gateway, fresh(invoice).status, taken(invoice)) == ("other", "paid", [200])


def test_who_said_so_and_why_stands_in_the_tenants_trail() -> None:
    invoice = bill()
    payment = stuck(invoice)
    untaken(payment)
    with as_tenant(invoice.tenant_id):
        event = AuditEvent.objects.get(action="payment.nothing_taken")
    assert (event.actor_kind, event.actor_label, event.subject_id) == ("staff", ADA.label, invoice.pk)
    assert event.detail["reason"] == "the account was closed"
    assert event.detail["payment"] == payment.pk
    assert (event.detail["gateway"], event.detail["code"]) == ("simulated", "bad_credentials")


def test_it_is_asked_for_unasked_again_where_it_was_before() -> None:
    invoice = bill()
    payment = stuck(invoice)
    untaken(payment)
    sweep(NOW + timedelta(days=2))
    assert fresh(invoice).status == "paid"
    assert [each.automatic for each in tried(invoice)] == [False, True]


def test_without_a_reason_nothing_changes() -> None:
    invoice = bill()
    payment = stuck(invoice)
    with pytest.raises(Invalid):
        untaken(payment, why=" ")
    assert [each.status for each in tried(invoice)] == ["stuck"]


def test_as_long_as_a_worker_may_bring_the_answer_it_is_refused() -> None:
    invoice = bill()
    payment = stuck(invoice)
    with pytest.raises(NotByHand, match="may still get an answer"):
        untaken(payment, now=NOW + moving.CLAIM - timedelta(seconds=1))
    assert [each.status for each in tried(invoice)] == ["stuck"]
    untaken(payment, now=NOW + moving.CLAIM)
    assert [each.status for each in tried(invoice)] == ["declined"]


def test_what_is_settled_or_can_still_be_asked_for_is_not_settled_by_hand() -> None:
    invoice = bill()
    payment = pay(invoice)
    with pytest.raises(NotByHand, match="is pending"):
        untaken(payment)
    collect(payment)
    with pytest.raises(NotByHand, match="is succeeded"):
        untaken(payment)
    assert (fresh(invoice).status, [each.status for each in tried(invoice)]) == ("paid", ["succeeded"])


def test_what_a_worker_takes_into_its_hands_meanwhile_is_not_settled_by_hand() -> None:
    invoice = bill()
    payment = stuck(invoice)
    real = by_hand._check

    def meanwhile(*told: Any) -> None:
        real(*told)
        with as_tenant(invoice.tenant_id):
            Payment.objects.update(status="pending", due_at=LATER, stuck_at=None, claimed_until=LATER)

    refused = pytest.raises(NotByHand, match="has just moved on")
    with payments.through(Other()), mock.patch.object(by_hand, "_check", meanwhile), refused:
        untaken(payment)
    with mock.patch.object(by_hand, "_check", meanwhile), pytest.raises(Moved, match="has just moved on"):
        untaken(payment)


def test_what_waits_for_a_gateway_that_is_gone_is_listed_and_may_be_settled() -> None:
    invoice = bill()
    payment = pay(invoice)
    with payments.through(None):
        collect(payment)
        with as_staff():
            seen = waiting.look(now=LATER)
        assert ([each.pk for each in seen.stuck], seen.pending) == ([payment.pk], 0)
        untaken(payment)
        with as_tenant(invoice.tenant_id):
            assert stands(fresh(invoice)).how is Standing.TRANSFER
        with as_staff():
            assert waiting.look(now=LATER).stuck_in_all == 0


def test_a_claim_of_a_worker_with_other_settings_is_waited_for() -> None:
    invoice = bill()
    payment = pay(invoice)
    assert collecting.PAYMENTS.claim(payment.pk, payment.tenant_id, NOW) is not None
    with payments.through(None), pytest.raises(NotByHand, match="may still get an answer from simulated"):
        untaken(payment, now=NOW)


def test_where_it_was_taken_after_all_the_invoice_is_paid_whatever_operators_say() -> None:
    invoice = bill()
    ill(invoice, Ill.LOST, Ill.REJECTED)
    payment = pay(invoice)
    collect(payment)
    assert collect(payment, now=NOW + timedelta(minutes=5)).status == "stuck"
    assert untaken(payment).status == "succeeded"
    assert (fresh(invoice).status, taken(invoice)) == ("paid", [200])


def test_while_the_gateway_cannot_be_asked_nothing_is_settled_and_the_word_is_kept() -> None:
    invoice = bill()
    payment = stuck(invoice)
    ill(invoice, Ill.UNREACHABLE, Ill.REJECTED)
    waits = untaken(payment)
    assert (waits.status, waits.untaken) == ("pending", "the account was closed")
    again = collect(payment, now=LATER + timedelta(minutes=5))
    assert (again.status, again.untaken, again.code) == ("stuck", "", "bad_credentials")
    with as_tenant(invoice.tenant_id):
        assert collect(pay(invoice, now=LATER + timedelta(hours=1)), now=LATER + timedelta(hours=1)).status
    assert taken(invoice) == [200]


def test_what_was_withdrawn_is_never_taken_under_its_key_again() -> None:
    invoice = bill()
    payment = untaken(stuck(invoice))
    with as_tenant(invoice.tenant_id):
        charge = collecting.charge_of(Payment.objects.select_related("invoice").get(pk=payment.pk))
    assert isinstance(SimulatedGateway().charge(charge, now=LATER), Declined)
    assert taken(invoice) == []
