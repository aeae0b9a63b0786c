"""Working off what Stripe said: each event is looked at once, later again where nobody knows, or parked for people."""

from datetime import datetime, timedelta

import structlog
from django.db.models import F

from billing.domain.collecting import wait_s
from billing.models import EventState, StripeEvent
from billing.services.stripe import applying
from billing.services.stripe.applying import Parked, TooEarly
from ports import doorbell
from ports.payments import Rejected, Unanswered

log = structlog.get_logger(__name__)
CLAIM = timedelta(seconds=60)
MOST_TRIES = 12  # about three hours; a silence of Stripe's is none, however long it lasts


def work(event_id: str, *, now: datetime) -> None:
    """Look at what an event is about, once; safe to call at any time, any number of times."""
    waiting = StripeEvent.objects.filter(pk=event_id, state=EventState.WAITING)
    if not waiting.filter(due_at__lte=now).update(due_at=now + CLAIM, tries=F("tries") + 1):
        return
    event = StripeEvent.objects.get(pk=event_id)
    try:
        why = applying.apply(event, now=now)
    except Unanswered as silence:
        _later(event, str(silence), now, unheard=True)
    except TooEarly as later:
        _later(event, str(later), now)
    except Rejected as rejection:
        _later(event, rejection.reason, now)
    except Parked as odd:
        _settle(event, EventState.PARKED, str(odd))
    else:
        _settle(event, EventState.DONE, why)


def _later(event: StripeEvent, why: str, now: datetime, *, unheard: bool = False) -> None:
    """Look again, less and less often; where nobody answered, nothing was looked at."""
    silences = event.silences + unheard
    looks = event.tries - silences
    if looks >= MOST_TRIES:
        _settle(event, EventState.PARKED, f"After {looks} looks: {why}")
        return
    wait = wait_s(event.tries)
    mine = StripeEvent.objects.filter(pk=event.pk, state=EventState.WAITING)
    mine.update(due_at=now + timedelta(seconds=wait), why=why[:200], silences=silences)
    doorbell.ring("billing.stripe_event", event.pk, now=now, after_s=wait)


def _settle(event: StripeEvent, state: EventState, why: str) -> None:
    if state is EventState.PARKED:
        log.error("an event of Stripe's waits for a person", event_id=event.pk, type=event.type, why=why)
    waiting = StripeEvent.objects.filter(pk=event.pk, state=EventState.WAITING)
    waiting.update(state=state, due_at=None, why=why[:200])
