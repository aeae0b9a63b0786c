"""A tenant's permission to relocate a lease, which it may withdraw until a relocation begins."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from broker.domain.lifecycle.relocation_states import PENDING_RELOCATION_STATES, STARTED_RELOCATION_STATES
from broker.models import Lease, Relocation
from broker.services.leases.lease_requests import not_relocatable_error
from broker.services.leases.lifecycle.extension import ENDING_OR_ENDED
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError


class LeaseBeingRelocated(ProblemError):
    code, status, title = "relocation-in-progress", 409, "This lease is being moved"


@transaction.atomic
def set_relocatable(lease: Lease, relocatable: bool, *, actor: Actor, now: datetime) -> Lease:
    """Allow or forbid relocating a lease; a relocation not yet begun is then cancelled."""
    lease = Lease.objects.select_for_update(of=("self",)).select_related("offering", "project").get(pk=lease.pk)
    if lease.relocatable == relocatable:
        return lease
    if lease.state in ENDING_OR_ENDED:
        raise LeaseAlreadyOver(f"{lease.name} is {lease.state}; it cannot be moved.", fix="Launch a new one.")
    if relocatable and lease.stays:
        raise not_relocatable_error(lease.stays)
    if not relocatable and (move := announced_relocation(lease)) and move.state in STARTED_RELOCATION_STATES:
        raise LeaseBeingRelocated(f"{lease.name} is being moved to another GPU.", fix="Wait until it is active again.")
    lease.relocatable = relocatable
    lease.version = F("version") + 1
    lease.save(update_fields=["relocatable", "version"])
    lease.refresh_from_db(fields=["version"])
    audit.record("lease.relocatable", lease, actor=actor, now=now, after=relocatable)
    return lease


def announced_relocation(lease: Lease) -> Relocation | None:
    """Return the lease's announced relocation that is not over."""
    return announced_relocations([lease]).get(lease.pk)


def announced_relocations(leases: Iterable[Lease]) -> dict[str, Relocation]:
    """Return announced relocations by lease; no query if no lease allows them."""
    relocatable = [lease.pk for lease in leases if lease.relocatable]
    if not relocatable:
        return {}
    return {move.lease_id: move for move in _pending_relocations().filter(lease__in=relocatable)}


def upcoming_relocations(leases: QuerySet[Lease]) -> QuerySet[Relocation]:
    """Return the announced relocations of these leases, by their earliest start."""
    return (
        _pending_relocations()
        .filter(lease__in=leases.filter(relocatable=True))
        .select_related("lease")
        .order_by("not_before", "id")
    )


def _pending_relocations() -> QuerySet[Relocation]:
    return Relocation.objects.filter(state__in=[state.value for state in PENDING_RELOCATION_STATES])
