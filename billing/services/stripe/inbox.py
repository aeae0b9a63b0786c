"""What Stripe says happened: kept when it comes, twice or late or never. The web keeps it; workers look (working.py).

An event only says where to look. In whichever order they come, what Stripe holds now is what counts.
"""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from billing.domain.stripe_events import VERSION, Told, Untrusted, verified
from billing.models import EventState, StripeEvent
from ports import doorbell
from tenants.services.refusals import Refused

BATCH = 500
ANOTHER_VERSION = "It speaks another version of Stripe's API than ours: set the webhook's to {}."


class EventRefused(Refused):
    code, status, title = "stripe-event-refused", 400, "This is no event of Stripe's for us"


def receive(body: bytes, signature: str, *, now: datetime) -> bool:
    """Keep an event that Stripe signed; tell whether it was new. Raises EventRefused, and then keeps nothing."""
    try:
        told = verified(
            body,
            signature,
            secrets=(each.strip() for each in settings.STRIPE_WEBHOOK_SECRETS.split(",")),
            account=settings.STRIPE_ACCOUNT,
            live="_live_" in settings.STRIPE_SECRET_KEY,
            now=now,
        )
    except Untrusted as why:
        raise EventRefused(
            str(why), fix="Send it as Stripe does, signed with this webhook's secret."
        ) from None
    return keep([told], now=now) == 1


@transaction.atomic
def keep(events: list[Told], *, now: datetime, found: bool = False) -> int:
    """Keep events that are not there yet, and have them looked at; return how many were new."""
    rows = [_row(told, now, found) for told in events]
    known = set(StripeEvent.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", flat=True))
    fresh = [row for row in rows if row.pk not in known]
    StripeEvent.objects.bulk_create(fresh, ignore_conflicts=True)
    for row in fresh:
        if row.state == EventState.WAITING:
            doorbell.ring("billing.stripe_event", row.pk, now=now)
    return len(fresh)


def due(*, now: datetime) -> list[str]:
    """Return the events whose moment has come: hints that were lost, and waits that are over."""
    waiting = StripeEvent.objects.filter(state=EventState.WAITING, due_at__lte=now)
    return list(waiting.order_by("due_at", "pk").values_list("pk", flat=True)[:BATCH])


def look_again(event: StripeEvent, *, now: datetime) -> None:
    """Have a parked event looked at once more: a person says that what stood in its way is mended."""
    parked = StripeEvent.objects.filter(pk=event.pk, state=EventState.PARKED)
    anew = {"state": EventState.WAITING, "due_at": now, "tries": 0, "silences": 0, "why": ""}
    if parked.update(**anew, api_version=VERSION):
        doorbell.ring("billing.stripe_event", event.pk, now=now)


def look_again_at_parked(*, since: datetime, now: datetime) -> int:
    """Have what was parked looked at once more by itself, as each night: what stood in its way may be mended."""
    parked = StripeEvent.objects.filter(state=EventState.PARKED, received_at__gte=since, api_version=VERSION)
    return parked.update(state=EventState.WAITING, due_at=now)


def _row(told: Told, now: datetime, found: bool) -> StripeEvent:
    ours = told.api_version == VERSION
    return StripeEvent(
        id=told.id,
        type=told.type[:80],
        api_version=told.api_version[:40],
        object_id=told.object_id,
        created=told.created,
        received_at=now,
        found=found,
        state=EventState.WAITING if ours else EventState.PARKED,
        due_at=now if ours else None,
        why="" if ours else ANOTHER_VERSION.format(VERSION),
    )
