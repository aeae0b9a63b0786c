"""Whether a lease may be moved to another card: its tenant says so, and may take it back until a move begins."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from broker.domain.moves import BEGUN, PROMISED
from broker.models import Lease, Move
from broker.services.leases.ending import AlreadyOver
from broker.services.leases.growing import ENDED
from broker.services.leases.request import never_moved
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused


class BeingMoved(Refused):
    code, status, title = "being-moved", 409, "This lease is being moved just now"


@transaction.atomic
def allow_moves(lease: Lease, movable: bool, *, actor: Actor, now: datetime) -> Lease:
    """Let a lease be moved, or no longer; one that its tenant was told of but has not begun is then called off."""
    lease = (
        Lease.objects.select_for_update(of=("self",)).select_related("offering", "project").get(pk=lease.pk)
    )
    if lease.movable == movable:
        return lease
    if lease.state in ENDED:
        raise AlreadyOver(f"{lease.name} is {lease.state}; it goes nowhere.", fix="Launch a new one.")
    if movable and lease.stays:
        raise never_moved(lease.stays)
    if not movable and (move := open_move(lease)) and move.state in BEGUN:
        raise BeingMoved(
            f"{lease.name} is on its way to another card.",
            fix="Wait until it is active; that takes a moment.",
        )
    lease.movable = movable
    lease.version = F("version") + 1
    lease.save(update_fields=["movable", "version"])
    lease.refresh_from_db(fields=["version"])
    audit.record(
        "lease.movable",
        actor=actor,
        now=now,
        tenant_id=lease.tenant_id,
        subject_id=lease.pk,
        subject_label=lease.name,
        after=movable,
    )
    return lease


def open_move(lease: Lease) -> Move | None:
    """Return the move that a lease's tenant was told of and that is not over."""
    return open_moves([lease]).get(lease.pk)


def open_moves(leases: Iterable[Lease]) -> dict[str, Move]:
    """Return such moves by lease; asks nothing where none of them allows it."""
    movable = [lease.pk for lease in leases if lease.movable]
    if not movable:
        return {}
    return {move.lease_id: move for move in _promised().filter(lease__in=movable)}


def moves_ahead(leases: QuerySet[Lease]) -> QuerySet[Move]:
    """Return the moves that tenants of these were told of, the first to begin first."""
    return (
        _promised()
        .filter(lease__in=leases.filter(movable=True))
        .select_related("lease")
        .order_by("not_before", "id")
    )


def _promised() -> QuerySet[Move]:
    return Move.objects.filter(state__in=[state.value for state in PROMISED])
