"""Offering administration: rename, publish and retire."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.models import Offering, OfferingState
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError, StaleVersion

MAX_LABEL_LENGTH = 120
# An offering that was published never becomes a draft again: leases and invoices refer to it.
NEXT_STATES = {
    OfferingState.DRAFT: {OfferingState.PUBLISHED, OfferingState.RETIRED},
    OfferingState.PUBLISHED: {OfferingState.RETIRED},
    OfferingState.RETIRED: {OfferingState.PUBLISHED},
    OfferingState.METERED: set(),
}


class OfferingStateConflict(ProblemError):
    code, status, title = "offering-state", 409, "This state change is not possible"


@transaction.atomic
def rename_offering(offering: Offering, *, label: str, actor: Actor, now: datetime) -> Offering:
    """Rename an offering; raise InvalidValue for a bad label, StaleVersion when it changed."""
    text = " ".join(label.split())
    if not text or len(text) > MAX_LABEL_LENGTH or not text.isprintable():
        raise InvalidValue(
            "label", f"A label must have 1 to {MAX_LABEL_LENGTH} characters.", fix="Enter a shorter name."
        )
    before = offering.label
    if text != before:
        _update_offering(offering, label=text)
        audit.record("offering.rename", offering, actor=actor, now=now, before=before, after=text)
    return offering


@transaction.atomic
def set_offering_state(offering: Offering, state: OfferingState, *, actor: Actor, now: datetime) -> Offering:
    """Publish or retire an offering; running leases are not affected."""
    before = OfferingState(offering.state)
    if state == before:
        return offering
    if state not in NEXT_STATES[before]:
        raise OfferingStateConflict(
            f"{offering.label} is {before}; it cannot become {state}.", fix="Retire it instead, as leases refer to it."
        )
    _update_offering(offering, state=state)
    audit.record(f"offering.{state}", offering, actor=actor, now=now, before=before.value)
    return offering


def _update_offering(offering: Offering, **changes: str) -> None:
    moved = Offering.objects.filter(pk=offering.pk, version=offering.version).update(
        version=F("version") + 1, **changes
    )
    if not moved:
        raise StaleVersion(
            f"{offering.label} was changed in the meantime.", fix="Check the current values, then save again."
        )
    offering.refresh_from_db()
