"""Lease arrays: equal leases from one request, all of them or none."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Count

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, LeaseArray
from broker.services.leases import lease_requests
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle import termination
from tenants.domain.single_line_text import NAME_LENGTH, is_name
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError

MAX_SIZE = 1000
ENDED_STATES = (LeaseState.RELEASING.value, LeaseState.RELEASED.value, LeaseState.FAILED.value)


@transaction.atomic
def request_array(wanted: LeaseRequest, *, size: int, project: Project, actor: Actor, now: datetime) -> LeaseArray:
    """Queue equal leases if every gate lets all pass; else write nothing."""
    _check_array(wanted, size)
    array = LeaseArray.objects.create(
        tenant_id=project.tenant_id,
        project=project,
        name=wanted.name.strip(),
        size=size,
        created_at=now,
        requested_by=actor.id,
        requested_by_label=actor.label,
    )
    for index in range(size):
        each = replace(wanted, name=f"{array.name}-{index}", array=array, array_index=index)
        try:
            lease_requests.queue_lease(each, project=project, actor=actor, now=now)
        except ProblemError as refusal:
            if index:
                refusal.detail = f"Lease {index + 1} of {size} is refused, so none was created. {refusal.detail}"
            raise
    audit.record("lease_array.request", array, array.name, actor=actor, now=now, size=size)
    return array


def release_array(array: LeaseArray, *, actor: Actor, now: datetime) -> int:
    """End every lease of an array that is not over; return how many were ended."""
    rows = Lease.objects.filter(array=array).exclude(state__in=ENDED_STATES).select_related("offering", "project")
    released = 0
    for lease in list(rows.order_by("array_index")):
        with suppress(termination.LeaseAlreadyOver):  # it ended by itself meanwhile
            termination.release_lease(lease, reason=EndReason.BY_TENANT, actor=actor, now=now)
            released += 1
    audit.record("lease_array.release", array, array.name, actor=actor, now=now, released=released)
    return released


def count_states(arrays: Iterable[LeaseArray]) -> Mapping[str, Mapping[str, int]]:
    """Return by array how many of its leases are in each state; one query."""
    found: dict[str, dict[str, int]] = {array.pk: {} for array in arrays}
    counted = Lease.objects.filter(array__in=found).values_list("array", "state").annotate(Count("pk")).order_by()
    for array_id, state, count in counted:
        found[array_id][state] = count
    return found


def _check_array(wanted: LeaseRequest, size: int) -> None:
    if not 1 <= size <= MAX_SIZE:
        raise InvalidValue(
            "array_size", f"An array has 1 to {MAX_SIZE} leases.", fix=f"Choose at most {MAX_SIZE}, or several arrays."
        )
    longest = NAME_LENGTH - len(f"-{size - 1}")
    if not is_name(wanted.name.strip()) or len(wanted.name.strip()) > longest:
        raise InvalidValue(
            "name", f"The name of this array must have 1 to {longest} characters.", fix="Enter a shorter name."
        )
    if wanted.volume:
        raise InvalidValue(
            "volume", "A volume is used by one lease at a time.", fix="Leave it out, and store results elsewhere."
        )
    if wanted.quote:
        raise InvalidValue("quote", "A quote is for one lease.", fix="Leave it out: the current price applies.")
