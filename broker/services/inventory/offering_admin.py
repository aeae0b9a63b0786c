"""Offering administration: rename, publish and retire; CPU, memory and scratch."""

from dataclasses import asdict
from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.domain.geometry.host_resources import FIELDS, LEAST, HostResources
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering, OfferingState
from broker.services.inventory import offering_resources
from broker.services.inventory.offering_resources import COLUMNS, describe_amount
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError, StaleVersion

MAX_LABEL_LENGTH = 120
MAX_AMOUNT = 2**31 - 1
MAX_NOTICE_S, MAX_RUNTIME_S = 86400, 30 * 86400  # as the settings allow
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
    if state == OfferingState.PUBLISHED:
        outbox.enqueue("broker.refresh_statistics", "", now=now)
    offering_resources.update_shortages_of(offering, now=now)
    return offering


@transaction.atomic
def set_offering_resources(
    offering: Offering, wanted: HostResources, *, actor: Actor, now: datetime, version: int | None = None
) -> Offering:
    """Set what a slice brings of its node; leases that were requested before keep theirs.

    Raises InvalidValue for an amount that a node cannot give, StaleVersion when the offering changed, or is not
    of the version that the operator saw.
    """
    before = offering.host_resources
    if version not in (None, offering.version):
        raise _stale(offering)
    if wanted == before:
        return offering
    if offering.is_storage:
        raise InvalidValue("cpu_milli", "Storage brings no CPU, memory or scratch.", fix="Change another offering.")
    largest = offering_resources.largest_resources(offering)
    for name in FIELDS:
        if getattr(wanted, name) != getattr(before, name):
            _check_amount(name, getattr(wanted, name), getattr(largest, name), offering_resources.unit_name(offering))
    _update_offering(offering, **{column: getattr(wanted, name) for name, column in COLUMNS.items()})
    audit.record("offering.set_resources", offering, actor=actor, now=now, before=asdict(before), after=asdict(wanted))
    offering_resources.update_shortages_of(offering, now=now)
    return offering


@transaction.atomic
def set_spot_terms(
    offering: Offering, *, notice_s: int | None, min_runtime_s: int | None, actor: Actor, now: datetime
) -> Offering:
    """Set the terms of new leases of a spot offering; None: those of the installation.

    Raises InvalidValue for an offering of another price class and for too long a time.
    """
    if offering.price_class != PriceClass.SPOT:
        raise InvalidValue(
            "notice_s",
            f"{offering.label} is not a spot offering; its leases are never reclaimed.",
            fix="Choose a spot offering.",
        )
    for name, value, most in (("notice_s", notice_s, MAX_NOTICE_S), ("min_runtime_s", min_runtime_s, MAX_RUNTIME_S)):
        if value is not None and not 0 <= value <= most:
            raise InvalidValue(name, f"The time must be from 0 to {most} s.", fix="Enter another number of seconds.")
    before = {"notice_s": offering.spot_notice_s, "min_runtime_s": offering.spot_min_runtime_s}
    after = {"notice_s": notice_s, "min_runtime_s": min_runtime_s}
    if after != before:
        _update_offering(offering, spot_notice_s=notice_s, spot_min_runtime_s=min_runtime_s)
        audit.record("offering.set_spot_terms", offering, actor=actor, now=now, before=before, after=after)
    return offering


def _check_amount(name: str, amount: int, most: int, unit: str) -> None:
    """Raise InvalidValue unless every node can give the amount; zero as `most`: unknown."""
    least = getattr(LEAST, name)
    if amount < least:
        floor = describe_amount(name, least)
        raise InvalidValue(COLUMNS[name], f"A slice needs at least {floor}.", fix=f"Enter {floor} or more.")
    if most and amount > most:
        ceiling = describe_amount(name, most)
        raise InvalidValue(
            COLUMNS[name],
            f"The smallest node of this model and region has {ceiling} for each {unit}.",
            fix=f"Enter at most {ceiling}.",
        )
    if amount > MAX_AMOUNT:
        raise InvalidValue(COLUMNS[name], "The number is too large.", fix="Enter a smaller one.")


def _update_offering(offering: Offering, **changes: str | int | None) -> None:
    moved = Offering.objects.filter(pk=offering.pk, version=offering.version).update(
        version=F("version") + 1, **changes
    )
    if not moved:
        raise _stale(offering)
    offering.refresh_from_db()


def _stale(offering: Offering) -> StaleVersion:
    return StaleVersion(
        f"{offering.label} was changed in the meantime.", fix="Check the current values, then save again."
    )
