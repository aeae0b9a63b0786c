"""Wallet top-ups through Stripe."""

from datetime import timedelta

import pytest

from billing.models import StripeDifference, StripeEvent
from billing.services.payments.stripe import (
    reconciliation,
    reconciliation_schedule,
    webhook_events,
    webhook_inbox,
)
from tests.billing.payments.payable_invoices import CapturedMessages
from tests.billing.stripe.stripe_customers import SECRETS, stripe_invoices
from tests.billing.topups.topup_setup import process_topup, reload_topup, request_topup, wallet_balance
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import create_card_holder
from tests.fakestripe.webhook_delivery import webhook_of
from tests.simulation import NOW, create_tenant

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def test_a_webhook_settles_a_pending_top_up_and_the_ledger_agrees(fake: FakeStripe, enqueued: CapturedMessages) -> None:
    owner = create_tenant("Kestrel")
    fake.now = NOW
    create_card_holder(fake, owner.tenant.pk, how="silent")
    topup = process_topup(request_topup(owner, 5000))
    assert (topup.status, wallet_balance(owner)) == ("pending", 0)
    things.bank_pays(fake.things, stripe_invoices(fake)[0])
    webhook_inbox.receive_event(*webhook_of(fake.things.events[-1], SECRETS[0], NOW), now=NOW)
    (event_id,) = webhook_inbox.due_events(now=NOW)
    webhook_events.process_event(event_id, now=NOW)
    assert ("billing.top_up", topup.pk, topup.tenant_id, NOW) in enqueued
    assert process_topup(topup).status == "succeeded"
    assert (reload_topup(topup).reference, wallet_balance(owner)) == (stripe_invoices(fake)[0]["id"], 5000)
    fake.now = NOW + DAY
    reconciliation_schedule.schedule_days(now=NOW + DAY)
    for day in reconciliation_schedule.due_days(now=NOW + DAY):
        reconciliation.reconcile_day(day, now=NOW + DAY)
    assert not StripeDifference.objects.exists()


def test_a_disputed_top_up_is_left_to_an_operator(fake: FakeStripe) -> None:
    owner = create_tenant("Kestrel")
    fake.now = NOW
    create_card_holder(fake, owner.tenant.pk)
    topup = process_topup(request_topup(owner, 5000))
    things.disputed(fake.things, stripe_invoices(fake)[0]["id"])
    webhook_inbox.receive_event(*webhook_of(fake.things.events[-1], SECRETS[0], NOW), now=NOW)
    (event_id,) = webhook_inbox.due_events(now=NOW)
    webhook_events.process_event(event_id, now=NOW)
    event = StripeEvent.objects.get()
    assert event.state == "parked"
    assert f"belongs to top-up {topup.pk}" in event.why
