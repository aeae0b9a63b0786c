"""Processing of Stripe events: once, retried if there is no answer, or parked for people."""

from datetime import datetime, timedelta

import structlog
from django.db.models import F

from billing.domain.payment_retries import backoff_s
from billing.models import StripeEvent, StripeEventState
from billing.services.payments.stripe import event_effects
from billing.services.payments.stripe.event_effects import EventNeedsAttention, EventTooEarly
from ports import outbox
from ports.payments import GatewayRejected, OutcomeUnknown

log = structlog.get_logger(__name__)
CLAIM = timedelta(seconds=60)
MAX_TRIES = 12  # about three hours; unanswered calls do not count


def process_event(event_id: str, *, now: datetime) -> None:
    """Process an event; idempotent."""
    waiting = StripeEvent.objects.filter(pk=event_id, state=StripeEventState.WAITING)
    if not waiting.filter(due_at__lte=now).update(due_at=now + CLAIM, attempts=F("attempts") + 1):
        return
    event = StripeEvent.objects.get(pk=event_id)
    try:
        why = event_effects.apply_event(event, now=now)
    except OutcomeUnknown as error:
        _retry_later(event, str(error), now, unheard=True)
    except EventTooEarly as later:
        _retry_later(event, str(later), now)
    except GatewayRejected as rejection:
        _retry_later(event, rejection.reason, now)
    except EventNeedsAttention as error:
        _settle(event, StripeEventState.PARKED, str(error))
    else:
        _settle(event, StripeEventState.DONE, why)


def _retry_later(event: StripeEvent, why: str, now: datetime, *, unheard: bool = False) -> None:
    """Retry later, less and less often; unanswered calls do not count as attempts."""
    unanswered_attempts = event.unanswered_attempts + unheard
    looks = event.attempts - unanswered_attempts
    if looks >= MAX_TRIES:
        _settle(event, StripeEventState.PARKED, f"After {looks} attempts: {why}")
        return
    wait = backoff_s(event.attempts)
    own_row = StripeEvent.objects.filter(pk=event.pk, state=StripeEventState.WAITING)
    own_row.update(due_at=now + timedelta(seconds=wait), why=why[:200], unanswered_attempts=unanswered_attempts)
    outbox.enqueue("billing.stripe_event", event.pk, now=now, after_s=wait)


def _settle(event: StripeEvent, state: StripeEventState, why: str) -> None:
    if state is StripeEventState.PARKED:
        log.error("Stripe event needs attention", event_id=event.pk, type=event.type, why=why)
    waiting = StripeEvent.objects.filter(pk=event.pk, state=StripeEventState.WAITING)
    waiting.update(state=state, due_at=None, why=why[:200])
