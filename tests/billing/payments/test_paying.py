"""A final invoice is asked for by a person or by itself, and becomes paid with the money, never before."""

from datetime import timedelta

import pytest
from django.db import OperationalError

from billing.domain.collecting import MOST_UNASKED
from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice, Payment
from billing.services.payments import collecting, opening
from billing.services.payments.opening import NotPayable
from billing.services.payments.standing import Standing, stands
from ports import payments
from ports.payments import Charge, Outcome
from tenants.models import AuditEvent
from tenants.services.walls import as_tenant
from tests.billing.payments.bills import (
    MIRA,
    NOW,
    Ill,
    Rung,
    bill,
    collect,
    draft,
    fresh,
    ill,
    pay,
    sweep,
    taken,
    tried,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def standing(invoice: Invoice) -> tuple[Standing, bool]:
    with as_tenant(invoice.tenant_id):
        told = stands(fresh(invoice))
        return told.how, told.payable


def test_an_invoice_somebody_pays_is_paid_by_one_charge_of_all_of_it() -> None:
    invoice = bill()
    payment = pay(invoice)
    assert (payment.status, payment.minor, payment.currency, payment.automatic) == (
        "pending",
        200,
        "EUR",
        False,
    )
    later = NOW + timedelta(seconds=3)
    payment = collect(payment, now=later)
    assert (payment.status, payment.settled_at, payment.due_at) == ("succeeded", later, None)
    assert payment.reference.startswith("sim_")
    assert (fresh(invoice).status, fresh(invoice).paid_at) == ("paid", later)
    assert taken(invoice) == [200]


def test_a_worker_is_rung_for_at_once(rung: Rung) -> None:
    payment = pay(bill())
    assert ("billing.collect", payment.pk, payment.tenant_id, NOW) in rung


def test_it_is_paid_without_anybody_asking() -> None:
    first, second = bill(), bill(5 * 10**9, currency="JPY")
    sweep(NOW)
    assert [fresh(each).status for each in (first, second)] == ["paid", "paid"]
    assert [payment.automatic for payment in tried(first)] == [True]
    assert (taken(first), taken(second)) == ([200], [5])


def test_a_second_sweep_finds_nothing_to_do() -> None:
    invoice = bill()
    sweep(NOW)
    sweep(NOW + DAY)
    assert opening.open_due(now=NOW + 2 * DAY) == 0
    assert taken(invoice) == [200]


def test_the_audit_trail_says_who_asked_and_what_came_of_it() -> None:
    invoice = bill()
    collect(pay(invoice))
    with as_tenant(invoice.tenant_id):
        told = AuditEvent.objects.filter(subject_id=invoice.pk, action__in=["payment.open", "invoice.pay"])
        found = [(each.action, each.actor_label, each.detail["amount"]) for each in told.order_by("pk")]
    assert found == [("payment.open", MIRA.label, 200), ("invoice.pay", "billing", 200)]


def test_an_invoice_of_nothing_is_paid_without_a_charge() -> None:
    invoice = bill(0)
    with pytest.raises(NotPayable, match="Nothing is due"):
        pay(invoice)
    with payments.through(None):
        assert opening.open_due(now=NOW) == 1
    assert (fresh(invoice).status, fresh(invoice).paid_at) == ("paid", NOW)
    assert (tried(invoice), taken(invoice)) == ([], [])
    assert standing(invoice) == (Standing.PAID, False)


def test_a_declined_one_stays_due_says_why_and_can_be_tried_again() -> None:
    invoice = bill()
    ill(invoice, Ill.DECLINED)
    first = collect(pay(invoice))
    assert (first.status, first.code, first.settled_at) == ("declined", "insufficient_funds", NOW)
    assert "not enough money" in first.reason
    assert fresh(invoice).status == "finalized"
    assert standing(invoice) == (Standing.DECLINED, True)
    with as_tenant(invoice.tenant_id):
        told = stands(fresh(invoice))
    assert (told.payment, told.tried_again_at) == (first, NOW + DAY)
    second = collect(pay(invoice))
    assert second.pk != first.pk
    assert (second.status, fresh(invoice).status, taken(invoice)) == ("succeeded", "paid", [200])


def test_a_declined_one_is_tried_again_by_itself_once_a_day_and_five_times_in_all() -> None:
    invoice = bill()
    ill(invoice, *[Ill.DECLINED] * 50)
    for hour in range(24 * 10):
        sweep(NOW + timedelta(hours=hour))
    attempts = tried(invoice)
    assert len(attempts) == MOST_UNASKED
    assert [each.opened_at for each in attempts] == [NOW + n * DAY for n in range(MOST_UNASKED)]


def test_a_person_who_tries_in_vain_is_left_in_peace_for_a_day() -> None:
    invoice = bill()
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))
    assert opening.open_due(now=NOW + DAY - timedelta(seconds=1)) == 0
    assert opening.open_due(now=NOW + DAY) == 1


def test_what_was_found_due_is_looked_at_again_behind_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, declined = bill(), bill()
    pay(waiting)
    ill(declined, Ill.DECLINED)
    collect(pay(declined))
    late = [(each.pk, each.tenant_id) for each in (waiting, declined)]
    monkeypatch.setattr(opening, "_due", lambda now: late)
    assert opening.open_due(now=NOW) == 0
    assert [len(tried(each)) for each in (waiting, declined)] == [1, 1]


def test_a_draft_is_not_paid() -> None:
    invoice = draft()
    with pytest.raises(NotPayable, match="is draft; only a final one"):
        pay(invoice)
    assert standing(invoice) == (Standing.NOTHING_DUE, False)
    assert opening.open_due(now=NOW) == 0


def test_a_paid_one_is_not_paid_again() -> None:
    invoice = bill()
    collect(pay(invoice))
    with pytest.raises(NotPayable, match="is paid"):
        pay(invoice)
    assert standing(invoice) == (Standing.PAID, False)


def test_while_one_payment_is_under_way_there_is_no_second() -> None:
    invoice = bill()
    payment = pay(invoice)
    with pytest.raises(NotPayable, match=payment.pk) as refused:
        pay(invoice)
    assert refused.value.fix.href == f"/api/v1/payments/{payment.pk}"
    assert standing(invoice) == (Standing.PENDING, False)


def test_where_nobody_collects_people_are_told_to_pay_by_transfer() -> None:
    invoice = bill()
    assert standing(invoice) == (Standing.DUE, True)
    with as_tenant(invoice.tenant_id):
        assert (stands(invoice).payment, stands(invoice).tried_again_at) == (None, None)
    with payments.through(None):
        with pytest.raises(NotPayable, match="collects no payments") as refused:
            pay(invoice)
        assert opening.open_due(now=NOW) == 0
        assert standing(invoice) == (Standing.TRANSFER, False)
    assert invoice.pk in refused.value.fix.text
    assert fresh(invoice).status == "finalized"


def test_what_was_to_be_paid_by_transfer_is_never_collected_unasked() -> None:
    with payments.through(None):
        invoice = bill()
    assert opening.open_due(now=NOW + 400 * DAY) == 0
    assert standing(invoice) == (Standing.DUE, True)
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))
    with as_tenant(invoice.tenant_id):
        assert (stands(invoice).how, stands(invoice).tried_again_at) == (Standing.DECLINED, None)
    assert opening.open_due(now=NOW + 400 * DAY) == 0
    assert taken(invoice) == []


def test_an_invoice_that_cannot_be_asked_for_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bill(), bill()

    def refuse(invoice: Invoice, *given: object, **more: object) -> Payment:
        if invoice.pk == first.pk:
            raise OperationalError("canceling statement due to lock timeout")
        return really(invoice, *given, **more)

    really = opening._open
    monkeypatch.setattr(opening, "_open", refuse)
    assert opening.open_due(now=NOW) == 1
    assert [len(tried(each)) for each in (first, second)] == [0, 1]


def test_a_payment_waits_for_the_gateway_it_was_begun_with() -> None:
    """Another one knows nothing of its key, and would take the money a second time."""
    invoice = bill()
    payment = pay(invoice)

    class Other(SimulatedGateway):
        name = "other"

        def charge(self, charge: Charge, *, now: object) -> Outcome:
            raise AssertionError(f"asked for {charge}")

    with payments.through(Other()):
        waiting = collect(payment)
    with payments.through(None):
        waiting = collect(payment, now=NOW + timedelta(hours=2))
    assert (waiting.status, waiting.tries) == ("pending", 2)
    assert "the gateway simulated, which is not set" in waiting.trouble
    assert collecting.due(now=NOW + DAY) == [("billing.collect", payment.pk, payment.tenant_id)]
