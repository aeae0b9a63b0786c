"""Eviction of leases by operators, with a reason that the tenant can read."""

from contextlib import suppress
from datetime import datetime

from django.db import transaction

from broker.domain.lifecycle.lease_transitions import HOLDS_CAPACITY
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Allocation, Lease, Node
from broker.services.leases.lifecycle import termination
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import staff_scope, tenant_scope

MAX_REASON_LENGTH = 150


def evict_lease(lease_id: str, *, why: str, actor: Actor, now: datetime) -> Lease:
    """End a lease of any tenant; raise ObjectNotFound, LeaseAlreadyOver, or InvalidValue without a reason."""
    cause = clean_reason(why)
    with staff_scope():
        tenant = Lease.objects.filter(pk=lease_id).values_list("tenant_id", flat=True).first()
    if tenant is None:
        raise ObjectNotFound(f"Lease {lease_id!r} does not exist.", fix="Search for it in the control room.")
    return _end_lease(lease_id, tenant, cause=cause, actor=actor, now=now)


@transaction.atomic
def evict_node_leases(node: Node, *, why: str, actor: Actor, now: datetime) -> list[Lease]:
    """End every lease placed on a node, and return those that were ended.

    A lease that was queued again elsewhere is not counted as placed there.
    """
    cause = clean_reason(why)
    with staff_scope():
        held = Allocation.objects.filter(gpu__node=node, released_at=None, leaving_since=None, is_relocation=False)
        running = held.filter(lease__state__in=[s.value for s in HOLDS_CAPACITY - {LeaseState.RELEASING}])
        rows = sorted(set(running.values_list("lease_id", "tenant_id")))
    ended = []
    for lease_id, tenant_id in rows:
        with suppress(termination.LeaseAlreadyOver):  # it ended by itself meanwhile
            ended.append(_end_lease(lease_id, tenant_id, cause=cause, actor=actor, now=now))
    return ended


def _end_lease(lease_id: str, tenant_id: str, *, cause: str, actor: Actor, now: datetime) -> Lease:
    with tenant_scope(tenant_id):
        lease = Lease.objects.select_related("offering", "project").get(pk=lease_id)
        termination.release_lease(lease, reason=EndReason.BY_OPERATOR, now=now, actor=actor, cause=cause)
        return lease


def clean_reason(why: str, *, field: str = "reason") -> str:
    """Return the reason with normalised spaces; raise InvalidValue if empty or too long."""
    text = " ".join(why.split())
    if not text or len(text) > MAX_REASON_LENGTH or not text.isprintable():
        raise InvalidValue(
            field,
            f"A reason must have 1 to {MAX_REASON_LENGTH} characters.",
            fix="Enter a short reason. Tenants and operators can read it.",
        )
    return text
