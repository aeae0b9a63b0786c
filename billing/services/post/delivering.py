"""Sending what is in the queue: claim, write, hand to the mail server, note. No transaction is open meanwhile.

A worker that dies leaves a claim that runs out, and another tries again: a letter may come twice then, under the same
Message-ID, and is never lost.
"""

from datetime import datetime, timedelta

import structlog
from django.db.models import F, Func, Q, Value

from billing.models import Letter
from billing.services.post.composing import compose
from billing.services.post.written import Written
from ports import mail
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
CLAIM = timedelta(minutes=5)
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=6)
TRIES = 24  # over about four days
MOST = 500
LONGEST_TROUBLE = 300


def due(*, now: datetime) -> list[tuple[str, str, str]]:
    """Name the letters that wait for a worker, as hints."""
    with as_sweep():
        rows = Letter.objects.filter(_free(now), due_at__lte=now).order_by("due_at", "pk")
        return [("billing.deliver", *row) for row in rows.values_list("pk", "tenant_id")[:MOST]]


def deliver(letter_id: str, tenant_id: str, *, now: datetime) -> None:
    """Send one letter to everybody whom it concerns and who has not got it yet. Repeating it sends nothing twice."""
    letter = _claim(letter_id, tenant_id, now)
    if letter is None:
        return
    with as_tenant(tenant_id):
        written = compose(letter, now=now)
    refused = _send(letter, written) if written else ""
    with as_tenant(tenant_id):
        mine = Letter.objects.filter(pk=letter.pk, claimed_until=letter.claimed_until)
        if refused:
            log.error("a letter was not taken", letter=letter.pk, kind=letter.kind, why=refused)
            mine.update(trouble=refused, claimed_until=None)
        else:
            mine.update(sent_at=now, due_at=None, claimed_until=None, trouble="")


def _claim(letter_id: str, tenant_id: str, now: datetime) -> Letter | None:
    """Take a letter into hand, and say when somebody else should try if this comes to nothing."""
    with as_tenant(tenant_id):
        mine = Letter.objects.select_for_update().filter(_free(now), pk=letter_id, due_at__lte=now)
        letter = mine.first()
        if letter is not None:
            letter.tries += 1
            wait = min(FIRST_WAIT * 2 ** (letter.tries - 1), LONGEST_WAIT)
            letter.due_at = now + wait if letter.tries < TRIES else None
            letter.claimed_until = now + CLAIM
            letter.save(update_fields=["tries", "due_at", "claimed_until"])
        return letter


def _send(letter: Letter, written: Written) -> str:
    """Hand it to the mail server for everybody who lacks it; return what that said of those it did not take."""
    troubles = []
    for address in written.to:
        if address in letter.sent_to:
            continue
        try:
            mail.deliver(
                to=address,
                subject=written.subject,
                text=written.text,
                ident=letter.pk,
                enclosed=written.enclosed,
            )
        except OSError as refusal:
            troubles.append(f"{address}: {refusal}")
            continue
        with as_tenant(letter.tenant_id):
            added = Func(F("sent_to"), Value(address), function="array_append")
            Letter.objects.filter(pk=letter.pk).update(sent_to=added)
    return "; ".join(troubles).replace("\0", "")[:LONGEST_TROUBLE]


def _free(now: datetime) -> Q:
    return Q(claimed_until=None) | Q(claimed_until__lt=now)
