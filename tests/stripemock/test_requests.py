"""Every request to Stripe matches Stripe's own API description."""

from datetime import timedelta

import pytest
from django.db import transaction

from billing.models import Invoice
from billing.services.payments import manual_settlements
from billing.services.payments.payment_collection import PAYMENTS
from billing.services.payments.stripe import (
    card_setup,
    payment_cards,
    reconciliation,
    reconciliation_schedule,
    webhook_events,
    webhook_inbox,
)
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.payments.payable_invoices import MIRA, NOW, create_final_invoice, process_payment, request_payment
from tests.billing.refunds.refund_setup import process_refund, request_refund
from tests.billing.stripe.stripe_customers import create_invoice_with_card, fail_calls, stripe_invoices
from tests.fakestripe import things
from tests.fakestripe.things import ROUTES
from tests.stripemock.beside import Beside

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
# What the tests' Stripe can do besides, and we never ask for.
NEVER = {
    ("get", "/v1/disputes"),
    ("get", r"/v1/events/([a-z_]+_[0-9]+)"),
    ("post", r"/v1/payment_methods/([a-z_]+_[0-9]+)/detach"),
}


def card(beside: Beside) -> Invoice:
    """Save a card by the setup form."""
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        form = payment_cards.request_card_form(invoice.tenant, actor=MIRA, now=NOW)
    beside.fake.ill = fail_calls("customers", "500_done")  # so that the customer is looked for
    for minutes in (0, 1, 2):
        card_setup.process_card_form(form.pk, form.tenant_id, now=NOW + timedelta(minutes=minutes))
    with tenant_scope(form.tenant_id):
        form.refresh_from_db()
        things.fill_in(beside.fake.things, form.session_id)
        payment_cards.check_form_now(form, now=NOW + timedelta(hours=1))
    card_setup.process_card_form(form.pk, form.tenant_id, now=NOW + timedelta(hours=1))
    return invoice


@pytest.mark.deep
def test_every_request_is_accepted_by_stripe_mock(beside: Beside) -> None:
    beside.fake.now = NOW
    paid = card(beside)
    process_payment(request_payment(paid))
    issue_note(paid)
    beside.fake.ill = fail_calls("refunds", "500_done")  # so that it is looked for
    back = process_refund(request_refund(paid, 150))
    process_refund(back, now=NOW + DAY)
    process_payment(request_payment(create_invoice_with_card(beside.fake, how="declined")))  # is voided
    lost = create_invoice_with_card(beside.fake)
    beside.fake.ill = fail_calls("invoices", "500_done")  # is looked for
    waits = process_payment(request_payment(lost))
    process_payment(waits, now=NOW + timedelta(hours=2))
    off = create_invoice_with_card(beside.fake)
    beside.fake.total_off = 1
    stuck = process_payment(request_payment(off))  # the draft is deleted
    beside.fake.total_off = 0
    manual_settlements.settle_as_not_taken(PAYMENTS, stuck, why="x", actor=MIRA, now=NOW + timedelta(hours=1))
    process_payment(stuck, now=NOW + timedelta(hours=1))
    things.disputed(beside.fake.things, stripe_invoices(beside.fake)[0]["id"])
    beside.fake.things.refund_as = "pending"
    slow = process_refund(request_refund(paid, 10, seen=150, now=NOW + DAY), now=NOW + DAY)
    process_refund(slow, now=NOW + 2 * DAY)
    now = beside.fake.now = NOW + 3 * DAY
    reconciliation_schedule.schedule_days(now=now)
    for day in reconciliation_schedule.due_days(now=now):
        reconciliation.reconcile_day(day, now=now)
    for event_id in webhook_inbox.due_events(now=now):
        webhook_events.process_event(event_id, now=now)
    assert beside.refused == []
    known = {(method, pattern) for method, pattern, _, _ in ROUTES}
    assert known - beside.requests == NEVER


@pytest.mark.deep
def test_an_invalid_request_is_refused_by_stripe_mock(beside: Beside) -> None:
    """Without this, accepted requests would prove nothing."""
    with transaction.atomic():
        process_payment(request_payment(create_invoice_with_card(beside.fake)))
    assert beside.refused == []
    from billing.gateways.stripe.connection import stripe_client

    with pytest.raises(AssertionError):
        stripe_client().v1.invoices.create({"customer": 5, "no_such": "x"}, {"idempotency_key": "x"})  # type: ignore[typeddict-unknown-key,typeddict-item]
    assert "additional properties are not allowed" in beside.refused[0]
