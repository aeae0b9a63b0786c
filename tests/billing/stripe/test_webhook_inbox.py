"""Stripe webhooks: order, repetition, unknown states and rejected events."""

import json
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from django.db import transaction
from django.test import Client, override_settings
from stripe import WebhookSignature

from billing.models import (
    LedgerTransfer,
    Payment,
    PaymentDispute,
    PaymentRefund,
    StripeEvent,
)
from billing.services.payments.stripe import webhook_events, webhook_inbox
from billing.services.payments.stripe.webhook_inbox import EventRejected
from ports import clock
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import NOW, payments_of, process_payment, reload_invoice, request_payment
from tests.billing.stripe.stripe_customers import SECRETS, create_invoice_with_card, fail_calls, stripe_invoices
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe, signed
from tests.fakestripe.webhook_delivery import shuffled_webhooks, webhook_of

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=10)
Event = dict[str, Any]


def deliver(event: Event, *, now: Any = NOW) -> bool:
    return webhook_inbox.receive_event(*webhook_of(event, SECRETS[0], now), now=now)


def process_due_events(now: Any = NOW) -> None:
    for event_id in webhook_inbox.due_events(now=now):
        webhook_events.process_event(event_id, now=now)


def event_states() -> dict[str, str]:
    return dict(StripeEvent.objects.values_list("type", "state"))


def test_a_paid_event_settles_a_pending_payment_before_its_next_retry(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="silent")
    payment = process_payment(request_payment(invoice))
    assert payment.due_at is not None
    assert payment.due_at > NOW + timedelta(minutes=20)
    things.bank_pays(fake.things, stripe_invoices(fake)[0])
    for event in fake.things.events:
        deliver(event)
    process_due_events()
    assert process_payment(payment, now=NOW).status == "succeeded"
    assert reload_invoice(invoice).status == "paid"
    assert set(event_states().values()) == {"done"}


def test_a_payment_failed_event_declines_a_pending_payment(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="silent")
    payment = process_payment(request_payment(invoice))
    (intent,) = fake.things.all("payment_intent").values()
    error = {"code": "card_declined", "decline_code": "lost_card", "message": "Your card was declined."}
    intent.update(status="requires_payment_method", last_payment_error=error)
    deliver(fake.things.tell("invoice.payment_failed", stripe_invoices(fake)[0]))
    process_due_events()
    payment = process_payment(payment, now=NOW)
    assert (payment.status, payment.code, payment.reason) == (
        "declined",
        "lost_card",
        "Your card was declined.",
    )
    assert [each["status"] for each in stripe_invoices(fake)] == ["void"]


@pytest.mark.deep
def test_six_events_in_every_order_and_repetition_lead_to_one_state(fake: FakeStripe) -> None:
    """All 720 orders of six events, each of them five times: B32 and B33."""
    invoice = create_invoice_with_card(fake, how="silent")
    payment = process_payment(request_payment(invoice))
    kept = fake.things
    things.bank_pays(kept, stripe_invoices(fake)[0])
    (intent,) = kept.all("payment_intent").values()
    things.disputed(kept, stripe_invoices(fake)[0]["id"])
    things.new_refund(kept, {"payment_intent": intent["id"], "amount": "50"})
    wanted = {
        "invoice.created",
        "invoice.finalized",
        "invoice.paid",
        "payment_intent.succeeded",
        "charge.dispute.created",
        "refund.created",
    }
    events = [each for each in kept.events if each["type"] in wanted]
    assert len(events) == 6
    sent = {each["id"]: webhook_of(each, SECRETS[0], NOW) for each in events}
    ends = set()
    for order in permutations(sent):
        with transaction.atomic():
            for event_id in order:
                for n in range(5):
                    assert webhook_inbox.receive_event(*sent[event_id], now=NOW) is (n == 0)
                webhook_events.process_event(event_id, now=NOW)
            process_due_events()
            process_payment(payment, now=NOW)
            ends.add(final_state(invoice))
            transaction.set_rollback(True)
    assert ends == {("paid", ("succeeded",), (("needs_response", 200),), (("succeeded", 50),), ("done",) * 6, 1)}


def final_state(invoice: Any) -> tuple[object, ...]:
    with tenant_scope(invoice.tenant_id):
        return (
            reload_invoice(invoice).status,
            tuple(each.status for each in payments_of(invoice)),
            tuple(PaymentDispute.objects.values_list("status", "minor")),
            tuple(PaymentRefund.objects.values_list("status", "minor")),
            tuple(StripeEvent.objects.values_list("state", flat=True)),
            LedgerTransfer.objects.filter(kind="payment").count(),
        )


@pytest.mark.parametrize("seed", range(10))
def test_repeated_shuffled_and_lost_webhooks_lead_to_the_same_state(fake: FakeStripe, seed: int) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    things.disputed(fake.things, stripe_invoices(fake)[0]["id"])
    for body, header in shuffled_webhooks(fake.things.events, SECRETS[1], NOW, seed=seed, dropped=30):
        webhook_inbox.receive_event(body, header, now=NOW)
    process_due_events()
    assert set(event_states().values()) <= {"done"}
    assert reload_invoice(invoice).status == "paid"


def test_the_status_of_a_stripe_dispute_never_goes_backwards(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    dispute = things.disputed(fake.things, stripe_invoices(fake)[0]["id"])
    reported = []
    for status in ("under_review", "lost", "needs_response"):
        dispute["status"] = status
        deliver(fake.things.tell("charge.dispute.updated", dispute))
        process_due_events()
        with tenant_scope(invoice.tenant_id):
            reported.append(PaymentDispute.objects.get().status)
    assert reported == ["under_review", "lost", "lost"]
    assert reload_invoice(invoice).status == "paid", "a dispute is a mark, and no state of the invoice"


@pytest.mark.parametrize(("kind", "what"), [("invoice.updated", "invoice"), ("charge.dispute.updated", "dispute")])
def test_an_event_with_an_unknown_status_is_parked_with_its_reason(fake: FakeStripe, kind: str, what: str) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    things.disputed(fake.things, stripe_invoices(fake)[0]["id"])
    (thing,) = fake.things.all(what).values()
    thing["status"] = "teleported"
    deliver(fake.things.tell(kind, thing))
    process_due_events()
    event = StripeEvent.objects.get(type=kind)
    assert event.state == "parked"
    assert "'teleported'" in event.why
    assert reload_invoice(invoice).status == "paid"
    thing["status"] = "paid" if what == "invoice" else "won"
    webhook_inbox.retry_event(event, now=LATER)
    process_due_events(LATER)
    assert StripeEvent.objects.get(type=kind).state == "done"


def test_an_event_contradicting_a_settled_charge_is_left_to_an_operator(fake: FakeStripe) -> None:
    refused, paid = create_invoice_with_card(fake, how="declined"), create_invoice_with_card(fake)
    process_payment(request_payment(refused))
    process_payment(request_payment(paid))
    first, second = stripe_invoices(fake)
    first.update(status="paid", amount_paid=200)
    second.update(status="void")
    for each in (first, second):
        deliver(fake.things.tell("invoice.updated", each))
    process_due_events()
    whys = list(StripeEvent.objects.order_by("pk").values_list("state", "why"))
    assert [state for state, _ in whys] == ["parked", "parked"]
    assert "was paid in Stripe but is declined here" in whys[0][1]
    assert "is void in Stripe but paid here" in whys[1][1]


def test_an_event_before_its_payment_is_recorded_is_retried(fake: FakeStripe) -> None:
    """B34: Stripe may be faster than our commit."""
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    sent = stripe_invoices(fake)[0]
    sent["metadata"]["payment"] = "pay_later"
    deliver(fake.things.tell("invoice.paid", sent))
    process_due_events()
    event = StripeEvent.objects.get()
    assert (event.state, event.attempts) == ("waiting", 1)
    assert event.due_at is not None
    assert event.due_at > NOW
    sent["metadata"]["payment"] = payments_of(invoice)[0].pk
    process_due_events(LATER)
    assert event_states() == {"invoice.paid": "done"}


def test_an_event_of_an_unknown_payment_is_finally_parked(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    stripe_invoices(fake)[0]["metadata"]["payment"] = "pay_gone"
    deliver(fake.things.tell("invoice.paid", stripe_invoices(fake)[0]))
    now = NOW
    for _ in range(webhook_events.MAX_TRIES):
        process_due_events(now)
        now += timedelta(hours=2)
    assert StripeEvent.objects.get().why.startswith("After 12 attempts: Payment pay_gone")
    assert event_states() == {"invoice.paid": "parked"}


def test_foreign_invoices_and_disputes_are_ignored(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    foreign = stripe_invoices(fake)[0]
    foreign["metadata"] = {}
    dispute = things.disputed(fake.things, foreign["id"])
    dispute["payment_intent"] = "pi_000000"
    kept = fake.things
    for what, thing in (
        ("invoice.paid", foreign),
        ("charge.dispute.closed", dispute),
        ("plan.made", foreign),
    ):
        deliver(kept.tell(what, thing))
    deliver(kept.tell("invoice.deleted", {**foreign, "id": "in_999999"}))
    process_due_events()
    assert set(StripeEvent.objects.values_list("state", "why")) == {
        ("done", "not from this installation"),
        ("done", "no action needed"),
    }


def test_an_event_is_retried_while_stripe_fails_or_refuses_credentials(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    deliver(fake.things.tell("invoice.paid", stripe_invoices(fake)[0]))
    fake.ill = fail_calls("get", "unreachable", "unauthorized", "500_done")
    for minutes in (0, 1, 2, 5):
        process_due_events(NOW + timedelta(minutes=minutes))
    assert event_states() == {"invoice.paid": "done"}


def test_no_event_is_dropped_during_a_stripe_outage(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    deliver(fake.things.tell("invoice.paid", stripe_invoices(fake)[0]))
    now, fake.down = NOW, True
    for _ in range(2 * webhook_events.MAX_TRIES):
        process_due_events(now)
        now += timedelta(hours=2)
    assert event_states() == {"invoice.paid": "waiting"}
    event = StripeEvent.objects.get()
    assert event.due_at is not None
    assert event.due_at - (now - timedelta(hours=2)) == timedelta(hours=1)  # asked less and less often
    fake.down = False
    process_due_events(now)
    assert event_states() == {"invoice.paid": "done"}


def test_a_paid_event_of_a_refunded_declined_payment_needs_no_action(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake, how="declined")
    process_payment(request_payment(invoice))
    (sent,) = stripe_invoices(fake)
    sent.update(status="paid", amount_paid=200)
    with tenant_scope(invoice.tenant_id):
        PaymentRefund.objects.create(
            id="re_1", tenant_id=invoice.tenant_id, payment=payments_of(invoice)[0],
            status="succeeded", rank=2, minor=200, made_at=NOW, seen_at=NOW,
        )  # fmt: skip
    deliver(fake.things.tell("invoice.paid", sent))
    process_due_events()
    assert event_states() == {"invoice.paid": "done"}


def test_an_event_processed_twice_calls_stripe_once(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    deliver(fake.things.tell("invoice.paid", stripe_invoices(fake)[0]))
    (event_id,) = webhook_inbox.due_events(now=NOW)
    before = fake.calls["get"]
    webhook_events.process_event(event_id, now=NOW)
    webhook_events.process_event(event_id, now=NOW)
    assert fake.calls["get"] == before + 1


# Who may say so


def post(body: str, header: str) -> Any:
    return Client(enforce_csrf_checks=True).post(
        "/webhooks/stripe",
        body,
        content_type="application/json",
        headers={"Stripe-Signature": header} if header else {},
    )


EVENT = {
    "id": "evt_1",
    "object": "event",
    "type": "invoice.paid",
    "api_version": "2026-10-28.endive",
    "created": 1795000000,
    "livemode": False,
    "data": {"object": {"id": "in_1", "object": "invoice"}},
}


@pytest.mark.parametrize("secret", SECRETS)
def test_events_signed_with_either_webhook_secret_are_stored_once(secret: str) -> None:
    body = json.dumps(EVENT)
    with clock.frozen_at(NOW):
        for _ in range(3):
            assert post(body, signed(body, secret, NOW)).status_code == 204
    assert StripeEvent.objects.count() == 1


def altered(body: str) -> str:
    return body.replace("in_1", "in_2")


@pytest.mark.parametrize(
    ("event", "secret", "minutes", "change", "why"),
    [
        (EVENT, "whsec_wrong", 0, str, "signature is not from Stripe"),
        (EVENT, SECRETS[0], 60, str, "signature is too old"),
        (EVENT, SECRETS[0], -60, str, "signature is too old"),
        (EVENT, SECRETS[0], 0, altered, "signature is not from Stripe"),
        ({**EVENT, "account": "acct_other"}, SECRETS[0], 0, str, "another account"),
        ({**EVENT, "livemode": True}, SECRETS[0], 0, str, "test or live"),
        ({**EVENT, "data": {}}, SECRETS[0], 0, str, "event is not readable"),
        ({**EVENT, "id": 5}, SECRETS[0], 0, str, "event is not readable"),
        ({**EVENT, "type": "x" * 200}, SECRETS[0], 0, str, "event is not readable"),
        ([], SECRETS[0], 0, str, "event is not readable"),
    ],
)
def test_an_invalid_event_is_refused_and_not_stored(
    event: Any, secret: str, minutes: int, change: Any, why: str
) -> None:
    body = json.dumps(event)
    header = signed(body, secret, NOW - timedelta(minutes=minutes))
    with clock.frozen_at(NOW):
        answer = post(change(body), header)
    assert answer.status_code == 400
    assert why in answer.json()["detail"]
    assert not StripeEvent.objects.exists()


@pytest.mark.parametrize("header", ["", "t=1", "v1=abc", "t=x,v1=y", "\x00", "t=99999999999999999999,v1=a"])
def test_an_invalid_signature_header_is_rejected(header: str) -> None:
    with pytest.raises(EventRejected):
        webhook_inbox.receive_event(json.dumps(EVENT).encode(), header, now=NOW)


def test_an_event_body_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(EventRejected):
        webhook_inbox.receive_event(b"\xff\xfe", "t=1,v1=a", now=NOW)


def test_a_timestamp_out_of_range_is_rejected() -> None:
    body = json.dumps(EVENT)
    made = signed(body, SECRETS[0], NOW)
    stamp = 10**17
    forged = WebhookSignature.generate_signature_header(body, SECRETS[0], stamp)
    assert made != forged
    with pytest.raises(EventRejected):
        webhook_inbox.receive_event(body.encode(), forged, now=NOW)


def test_without_a_webhook_secret_every_event_is_rejected() -> None:
    body = json.dumps(EVENT)
    with override_settings(STRIPE_WEBHOOK_SECRETS=""), pytest.raises(EventRejected):
        webhook_inbox.receive_event(body.encode(), signed(body, SECRETS[0], NOW), now=NOW)


def test_an_event_of_another_api_version_is_parked_without_a_stripe_call(fake: FakeStripe) -> None:
    deliver({**EVENT, "api_version": "2020-01-01"})
    process_due_events()
    event = StripeEvent.objects.get()
    assert (event.state, sum(fake.calls.values())) == ("parked", 0)
    assert "2026-10-28.endive" in event.why


def test_an_event_of_a_settled_payment_needs_no_action(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    payment = process_payment(request_payment(invoice))
    deliver(fake.things.tell("invoice.paid", stripe_invoices(fake)[0]))
    process_due_events()
    with tenant_scope(invoice.tenant_id):
        assert Payment.objects.get(pk=payment.pk).status == "succeeded"
    assert StripeEvent.objects.get().why == "no action needed"


def test_a_voided_older_invoice_of_a_paid_payment_needs_no_action(fake: FakeStripe) -> None:
    invoice = create_invoice_with_card(fake)
    process_payment(request_payment(invoice))
    paid = stripe_invoices(fake)[0]
    given_up = {**paid, "id": "in_700000", "status": "void", "amount_paid": 0}
    fake.things.all("invoice")["in_700000"] = given_up
    deliver(fake.things.tell("invoice.voided", given_up))
    process_due_events()
    assert event_states() == {"invoice.voided": "done"}


def test_a_processed_event_is_not_retried(fake: FakeStripe) -> None:
    process_payment(request_payment(create_invoice_with_card(fake)))
    deliver(fake.things.tell("invoice.paid", stripe_invoices(fake)[0]))
    process_due_events()
    event = StripeEvent.objects.get()
    webhook_inbox.retry_event(event, now=LATER)
    assert event_states() == {"invoice.paid": "done"}
