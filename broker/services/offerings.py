"""What staff do with derived offerings: name them, publish them, retire them."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.models import Offering, OfferingState
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused, Stale

LONGEST = 120
# An offering that was on sale never becomes a draft again: leases and invoices name it.
NEXT = {
    OfferingState.DRAFT: {OfferingState.PUBLISHED, OfferingState.RETIRED},
    OfferingState.PUBLISHED: {OfferingState.RETIRED},
    OfferingState.RETIRED: {OfferingState.PUBLISHED},
    OfferingState.METERED: set(),
}


class NotThere(Refused):
    code, status, title = "offering-state", 409, "This offering cannot become that"


@transaction.atomic
def rename(offering: Offering, *, label: str, actor: Actor, now: datetime) -> Offering:
    """Call an offering something else; raises Invalid for a label nobody can read, Stale when it changed."""
    text = " ".join(label.split())
    if not text or len(text) > LONGEST or not text.isprintable():
        raise Invalid("label", f"A label has 1 to {LONGEST} characters.", fix="Choose a short, plain name.")
    before = offering.label
    if text != before:
        _change(offering, label=text)
        _record("offering.rename", offering, actor=actor, now=now, before=before, after=text)
    return offering


@transaction.atomic
def move(offering: Offering, state: OfferingState, *, actor: Actor, now: datetime) -> Offering:
    """Publish or retire an offering; running leases go on whatever becomes of it."""
    before = OfferingState(offering.state)
    if state == before:
        return offering
    if state not in NEXT[before]:
        raise NotThere(
            f"{offering.label} is {before}; it cannot become {state}.",
            fix="Retire it instead: leases name it.",
        )
    _change(offering, state=state)
    _record(f"offering.{state}", offering, actor=actor, now=now, before=before.value)
    return offering


def _change(offering: Offering, **changes: str) -> None:
    moved = Offering.objects.filter(pk=offering.pk, version=offering.version).update(
        version=F("version") + 1, **changes
    )
    if not moved:
        raise Stale(f"{offering.label} was changed in the meantime.", fix="Look at it again, then change it.")
    offering.refresh_from_db()


def _record(action: str, offering: Offering, *, actor: Actor, now: datetime, **detail: str) -> None:
    audit.record(action, actor=actor, now=now, subject_id=offering.pk, subject_label=offering.label, **detail)
