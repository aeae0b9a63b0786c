"""Sending what is in the queue: claim, write, hand to the mail server, note. No transaction is open meanwhile.

A worker that dies leaves a claim that runs out, and another tries again: a letter may come twice then, under the same
Message-ID, and is never lost. What comes to nothing too often is left to people, who see it and may have it tried
again; so is a letter to nobody.
"""

from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import F, Func, Q, QuerySet, Value

from billing.models import Letter, Unsent
from billing.models.letters import FOR_PEOPLE
from billing.services.post.composing import compose
from billing.services.post.written import Written
from ports import mail
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
CLAIM = timedelta(minutes=5)
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=6)
TRIES = 24  # over about four days
MOST = 500
LONGEST_TROUBLE = 300


class NotUnsent(Refused):
    code, status, title = "not-unsent", 409, "This letter waits for nobody"


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
    if isinstance(written, Unsent):
        _close(letter, unsent=written)
    elif refused := _send(letter, written):
        _fail(letter, refused)
    else:
        _close(letter, sent_at=now)


def fall(letter_id: str, tenant_id: str, error: Exception, *, now: datetime) -> bool:
    """Note that a try, begun at `now`, ended as nobody foresaw; tell whether it had come as far as a letter."""
    with as_tenant(tenant_id):
        letter = Letter.objects.filter(pk=letter_id, claimed_until=now + CLAIM).first()
    if letter is None:
        return False
    log.error("a letter's try ended as nobody foresaw", letter=letter.pk, exc_info=error)
    _fail(letter, f"It could not be written or sent: {type(error).__name__}.")
    return True


@transaction.atomic
def try_again(letter: Letter, *, actor: Actor, now: datetime) -> Letter:
    """Have a letter that waits for people tried anew, as often as any. Raises NotUnsent for every other."""
    with as_tenant(letter.tenant_id):
        found = Letter.objects.select_for_update().get(pk=letter.pk)
        if found.unsent not in FOR_PEOPLE:
            raise NotUnsent(
                f"Letter {found.pk} waits for nobody: it was sent, is tried again by itself, or is not wanted.",
                fix="Look at the list again.",
            )
        found.unsent, found.due_at, found.claimed_until, found.tries = "", now, None, 0
        found.save(update_fields=["unsent", "due_at", "claimed_until", "tries"])
        audit.record(
            "letter.again",
            actor=actor,
            now=now,
            tenant_id=found.tenant_id,
            subject_id=found.pk,
            subject_label=found.kind,
        )
        return found


def _fail(letter: Letter, trouble: str) -> None:
    """Keep what went wrong; the last try leaves the letter to people."""
    log.error("a letter was not taken", letter=letter.pk, kind=letter.kind, tries=letter.tries, why=trouble)
    if letter.tries >= TRIES:
        _close(letter, unsent=Unsent.GIVEN_UP, trouble=trouble)
    else:
        with as_tenant(letter.tenant_id):
            _mine(letter).update(trouble=trouble, claimed_until=None)


def _close(letter: Letter, **outcome: object) -> None:
    """Do nothing more about a letter by itself."""
    with as_tenant(letter.tenant_id):
        _mine(letter).update(**{"due_at": None, "claimed_until": None, "trouble": "", **outcome})


def _mine(letter: Letter) -> QuerySet[Letter]:
    """Return it as long as our claim on it stands."""
    return Letter.objects.filter(pk=letter.pk, claimed_until=letter.claimed_until)


def _claim(letter_id: str, tenant_id: str, now: datetime) -> Letter | None:
    """Take a letter into hand, and say when somebody else should try if this comes to nothing."""
    with as_tenant(tenant_id):
        mine = Letter.objects.select_for_update().filter(_free(now), pk=letter_id, due_at__lte=now)
        letter = mine.first()
        if letter is None:
            return None
        if letter.tries >= TRIES:  # whoever made the last of them died
            mine.update(due_at=None, claimed_until=None, unsent=Unsent.GIVEN_UP)
            return None
        letter.tries += 1
        letter.due_at = now + min(FIRST_WAIT * 2 ** (letter.tries - 1), LONGEST_WAIT)
        letter.claimed_until = now + CLAIM
        letter.save(update_fields=["tries", "due_at", "claimed_until"])
        return letter


def _send(letter: Letter, written: Written) -> str:
    """Hand it to the mail server for everybody who lacks it; return what that said of those it did not take."""
    troubles = []
    enclosed = [written.paper()] if written.paper and set(written.to) - set(letter.sent_to) else []
    for address in written.to:
        if address in letter.sent_to:
            continue
        try:
            mail.deliver(
                to=address,
                subject=written.subject,
                text=written.text,
                ident=letter.pk,
                enclosed=enclosed,
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
