"""What operators end: one lease or all of a node, always with a reason that its tenant can read."""

from contextlib import suppress
from datetime import datetime

from django.db import transaction

from broker.domain.lifecycle import HOLDS_CAPACITY
from broker.domain.states import EndReason, LeaseState
from broker.models import Allocation, Lease, Node
from broker.services.leases import ending
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Missing
from tenants.services.walls import as_staff, as_tenant

LONGEST = 150


def evict(lease_id: str, *, why: str, actor: Actor, now: datetime) -> Lease:
    """End a lease of whatever tenant; raises Missing, AlreadyOver, or Invalid without a reason."""
    cause = reason(why)
    with as_staff():
        tenant = Lease.objects.filter(pk=lease_id).values_list("tenant_id", flat=True).first()
    if tenant is None:
        raise Missing(f"There is no lease {lease_id!r}.", fix="Look for it in the control room.")
    return _end(lease_id, tenant, cause=cause, actor=actor, now=now)


@transaction.atomic
def evict_all(node: Node, *, why: str, actor: Actor, now: datetime) -> list[Lease]:
    """End every lease that has its place on a node, and return them; one that went on elsewhere is not there."""
    cause = reason(why)
    with as_staff():
        held = Allocation.objects.filter(gpu__node=node, released_at=None, leaving_since=None, for_move=False)
        running = held.filter(lease__state__in=[s.value for s in HOLDS_CAPACITY - {LeaseState.RELEASING}])
        rows = sorted(set(running.values_list("lease_id", "tenant_id")))
    ended = []
    for lease_id, tenant_id in rows:
        with suppress(ending.AlreadyOver):  # it ended by itself while we looked
            ended.append(_end(lease_id, tenant_id, cause=cause, actor=actor, now=now))
    return ended


def _end(lease_id: str, tenant_id: str, *, cause: str, actor: Actor, now: datetime) -> Lease:
    with as_tenant(tenant_id):
        lease = Lease.objects.select_related("offering", "project").get(pk=lease_id)
        ending.release(lease, reason=EndReason.BY_OPERATOR, now=now, actor=actor, cause=cause)
        return lease


def reason(why: str, *, field: str = "reason") -> str:
    """Return the reason without its borders, or raise Invalid when there is none or it is a novel."""
    text = " ".join(why.split())
    if not text or len(text) > LONGEST or not text.isprintable():
        raise Invalid(
            field,
            f"A reason has 1 to {LONGEST} characters.",
            fix="Say in a few words why; tenants and colleagues will read it.",
        )
    return text
