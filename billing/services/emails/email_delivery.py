"""Delivery of queued e-mails: claim, write, send, record, with no transaction open meanwhile.

If a worker dies, its claim expires and another retries: an e-mail may then arrive twice, with the same
Message-ID, but is never lost. E-mails that fail too often, or have no recipient, wait for a person, who
can have them retried.
"""

from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import F, Func, Q, QuerySet, Value

from billing.models import QueuedEmail, UndeliveredReason
from billing.models.emails import NEEDS_ATTENTION
from billing.services.emails.email_composition import compose_email
from billing.services.notifications.email_message import OutgoingEmail
from ports import mail, outbox
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
CLAIM = timedelta(minutes=5)
FIRST_BACKOFF, MAX_BACKOFF = timedelta(minutes=1), timedelta(hours=6)
MAX_TRIES = 24  # over about four days
BATCH = 500
MAX_ERROR_LENGTH = 300


class EmailNotWaiting(ProblemError):
    code, status, title = "email-not-retryable", 409, "This e-mail cannot be retried"


def due_emails(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return the e-mails that are due for a worker, as messages."""
    with system_scope():
        rows = QueuedEmail.objects.filter(_unclaimed(now), due_at__lte=now).order_by("due_at", "pk")
        return [("billing.send_email", *row) for row in rows.values_list("pk", "tenant_id")[:BATCH]]


def deliver_email(email_id: str, tenant_id: str, *, now: datetime) -> None:
    """Send an e-mail to all recipients who have not got it yet; idempotent."""
    email = _claim(email_id, tenant_id, now)
    if email is None:
        return
    with tenant_scope(tenant_id):
        written = compose_email(email, now=now)
    if isinstance(written, UndeliveredReason):
        _close(email, undelivered_reason=written)
    elif refused := _send(email, written):
        _record_failure(email, refused)
    else:
        _close(email, sent_at=now)


def record_unexpected_failure(email_id: str, tenant_id: str, error: Exception, *, now: datetime) -> bool:
    """Record an unexpected failure of an attempt begun at `now`.

    Returns whether the attempt had claimed an e-mail.
    """
    with tenant_scope(tenant_id):
        email = QueuedEmail.objects.filter(pk=email_id, claimed_until=now + CLAIM).first()
    if email is None:
        return False
    log.error("e-mail failed unexpectedly", email=email.pk, exc_info=error)
    _record_failure(email, f"The e-mail could not be written or sent: {type(error).__name__}.")
    return True


@transaction.atomic
def requeue_email(email: QueuedEmail, *, actor: Actor, now: datetime) -> QueuedEmail:
    """Requeue an e-mail that waits for a person, with a full number of attempts.

    Raises EmailNotWaiting for any other.
    """
    with tenant_scope(email.tenant_id):
        found = QueuedEmail.objects.select_for_update().get(pk=email.pk)
        if found.undelivered_reason not in NEEDS_ATTENTION:
            raise EmailNotWaiting(
                f"E-mail {found.pk} cannot be retried: it was sent, is retried automatically, or is not wanted.",
                fix="Reload the list.",
            )
        found.undelivered_reason, found.due_at, found.claimed_until, found.attempts = "", now, None, 0
        found.save(update_fields=["undelivered_reason", "due_at", "claimed_until", "attempts"])
        audit.record("notification.resend", found, found.kind, actor=actor, now=now)
        return found


def _record_failure(email: QueuedEmail, trouble: str) -> None:
    """Record an error; after the last attempt the e-mail is left to people."""
    log.error("e-mail not accepted", email=email.pk, kind=email.kind, attempts=email.attempts, why=trouble)
    if email.attempts >= MAX_TRIES:
        _close(email, undelivered_reason=UndeliveredReason.GIVEN_UP, last_error=trouble)
    else:
        with tenant_scope(email.tenant_id):
            _claimed_rows(email).update(last_error=trouble, claimed_until=None)


def _close(email: QueuedEmail, **outcome: object) -> None:
    """Stop automatic attempts for an e-mail."""
    with tenant_scope(email.tenant_id):
        _claimed_rows(email).update(**{"due_at": None, "claimed_until": None, "last_error": "", **outcome})


def _claimed_rows(email: QueuedEmail) -> QuerySet[QueuedEmail]:
    """Return the e-mail as a queryset while our claim is valid."""
    return QueuedEmail.objects.filter(pk=email.pk, claimed_until=email.claimed_until)


def _claim(email_id: str, tenant_id: str, now: datetime) -> QueuedEmail | None:
    """Claim an e-mail and set when another worker should retry."""
    with tenant_scope(tenant_id):
        own_row = QueuedEmail.objects.select_for_update().filter(_unclaimed(now), pk=email_id, due_at__lte=now)
        email = own_row.first()
        if email is None:
            return None
        if email.attempts >= MAX_TRIES:  # the worker of the last attempt died
            own_row.update(due_at=None, claimed_until=None, undelivered_reason=UndeliveredReason.GIVEN_UP)
            return None
        email.attempts += 1
        email.due_at = now + min(FIRST_BACKOFF * 2 ** (email.attempts - 1), MAX_BACKOFF)
        email.claimed_until = now + CLAIM
        email.save(update_fields=["attempts", "due_at", "claimed_until"])
        return email


def _send(email: QueuedEmail, written: OutgoingEmail) -> str:
    """Send to all remaining recipients; return the mail server's errors."""
    troubles = []
    enclosed = [written.attachment()] if written.attachment and set(written.to) - set(email.sent_to) else []
    for address in written.to:
        if address in email.sent_to:
            continue
        try:
            mail.send_now(to=address, subject=written.subject, text=written.text, ident=email.pk, enclosed=enclosed)
        except OSError as refusal:
            troubles.append(f"{address}: {refusal}")
            continue
        with tenant_scope(email.tenant_id):
            added = Func(F("sent_to"), Value(address), function="array_append")
            QueuedEmail.objects.filter(pk=email.pk).update(sent_to=added)
    return "; ".join(troubles).replace("\0", "")[:MAX_ERROR_LENGTH]


def _unclaimed(now: datetime) -> Q:
    return Q(claimed_until=None) | Q(claimed_until__lt=now)
