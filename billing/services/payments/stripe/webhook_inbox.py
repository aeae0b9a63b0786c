"""Inbox of Stripe events, which may arrive twice, late or never.

The web process stores them and workers process them (webhook_events.py). An event only says where to look: in
whatever order they arrive, the current state at Stripe counts.
"""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from billing.domain.stripe_events import VERSION, UntrustedWebhook, WebhookEvent, verify_webhook
from billing.models import StripeEvent, StripeEventState
from ports import outbox
from tenants.services.errors import ProblemError

BATCH = 500
VERSION_MISMATCH = "The event has another version of Stripe's API. Set the webhook's version to {}."


class EventRejected(ProblemError):
    code, status, title = "stripe-event-refused", 400, "This is not an event from Stripe"


def receive_event(body: bytes, signature: str, *, now: datetime) -> bool:
    """Store an event signed by Stripe; return whether it was new.

    Raises EventRejected, and then stores nothing.
    """
    try:
        event = verify_webhook(
            body,
            signature,
            secrets=(each.strip() for each in settings.STRIPE_WEBHOOK_SECRETS.split(",")),
            account=settings.STRIPE_ACCOUNT,
            live="_live_" in settings.STRIPE_SECRET_KEY,
            now=now,
        )
    except UntrustedWebhook as why:
        raise EventRejected(str(why), fix="Send it signed with this webhook's secret.") from None
    return store_events([event], now=now) == 1


@transaction.atomic
def store_events(events: list[WebhookEvent], *, now: datetime, found: bool = False) -> int:
    """Store new events and enqueue them; return how many were new."""
    rows = [_row(event, now, found) for event in events]
    known = set(StripeEvent.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", flat=True))
    fresh = [row for row in rows if row.pk not in known]
    StripeEvent.objects.bulk_create(fresh, ignore_conflicts=True)
    for row in fresh:
        if row.state == StripeEventState.WAITING:
            outbox.enqueue("billing.stripe_event", row.pk, now=now)
    return len(fresh)


def due_events(*, now: datetime) -> list[str]:
    """Return the events that are due, including those whose hint was lost."""
    waiting = StripeEvent.objects.filter(state=StripeEventState.WAITING, due_at__lte=now)
    return list(waiting.order_by("due_at", "pk").values_list("pk", flat=True)[:BATCH])


def retry_event(event: StripeEvent, *, now: datetime) -> None:
    """Retry a parked event because a person says that the problem is fixed."""
    parked = StripeEvent.objects.filter(pk=event.pk, state=StripeEventState.PARKED)
    anew = {"state": StripeEventState.WAITING, "due_at": now, "attempts": 0, "unanswered_attempts": 0, "why": ""}
    if parked.update(**anew, api_version=VERSION):
        outbox.enqueue("billing.stripe_event", event.pk, now=now)


def retry_parked_events(*, since: datetime, now: datetime) -> int:
    """Retry recently parked events, as every night; return how many."""
    parked = StripeEvent.objects.filter(state=StripeEventState.PARKED, received_at__gte=since, api_version=VERSION)
    return parked.update(state=StripeEventState.WAITING, due_at=now)


def _row(event: WebhookEvent, now: datetime, found: bool) -> StripeEvent:
    same_version = event.api_version == VERSION
    return StripeEvent(
        id=event.id,
        type=event.type[:80],
        api_version=event.api_version[:40],
        object_id=event.object_id,
        created=event.created,
        received_at=now,
        found=found,
        state=StripeEventState.WAITING if same_version else StripeEventState.PARKED,
        due_at=now if same_version else None,
        why="" if same_version else VERSION_MISMATCH.format(VERSION),
    )
