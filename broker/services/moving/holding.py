"""The next place of a lease that is about to be moved: whether it may still be moved there, and taking that place."""

from datetime import datetime, timedelta

from django.db import connection
from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.geometry import EMPTY, CardState
from broker.domain.states import LeaseState
from broker.models import Allocation, Gpu, LayoutPolicy, Lease, Move
from broker.provisioners.kubernetes.drivers.choosing import sold_uncut
from broker.services.catalogue import profile_of, shape
from broker.services.leases import own_ends

SOON_OVER = timedelta(minutes=5)  # then it is not worth its tenant's while


def why_not(lease: Lease, move: Move, *, now: datetime) -> str:
    """Say why a lease is not moved after all; empty where nothing is in the way. Inside its tenant's transaction."""
    if lease.state != LeaseState.ACTIVE:
        return f"it is {lease.state}"
    if not lease.movable:
        return "its tenant no longer allows it"
    if lease.conditions:
        return "nobody knows for certain how it is just now"
    if (lease.ends_at and lease.ends_at < now + SOON_OVER) or own_ends.seen(lease):
        return "it ends by itself"
    here = Allocation.objects.filter(lease=lease, generation=lease.generation, released_at=None)
    places = here.values_list("gpu_id", "placement__startswith")
    if list(places) != [(move.from_gpu_id, move.from_start)]:
        return "it is no longer where the plan found it"
    return _taken(lease, move)


def _taken(lease: Lease, move: Move) -> str:
    card = Gpu.objects.sellable().select_related("node__cluster").filter(pk=move.to_gpu_id).first()
    if card is None:
        return "the card it was to go to is not in service"
    return "" if _has_room(card, lease, move) else "the place it was to go to is taken"


def _has_room(card: Gpu, lease: Lease, move: Move) -> bool:
    profile = profile_of(lease.offering)
    if card.layout_policy == LayoutPolicy.FIXED:
        cut = [(each["profile"], each["start"]) for each in card.fixed_layout]
        can_be_had = (profile.name, move.to_start) in cut
    elif card.published is not None:
        can_be_had = move.to_start in card.published.get(profile.name, ())
    else:
        can_be_had = profile.isolation in sold_uncut(card.node.cluster.driver)
    return can_be_had and _state(card).fits(profile, profile.placed_at(move.to_start))


def _state(card: Gpu) -> CardState:
    """Return what lies on a card, whosever it is."""
    state = EMPTY
    with connection.cursor() as cursor:
        cursor.execute("SELECT profile, isolation, start FROM broker_occupied WHERE gpu_id = %s", [card.pk])
        for name, isolation, start in cursor.fetchall():
            held = shape(card.gpu_model_id, name, isolation)
            state = state.with_held(held, held.placed_at(start))
    return state


def hold(lease: Lease, move: Move, *, now: datetime) -> bool:
    """Take the next place; False when its card went out of service. PostgreSQL refuses one that is taken."""
    wanted = Gpu.objects.sellable().filter(pk=move.to_gpu_id)
    if not wanted.select_for_update(of=("self",), no_key=True).values_list("pk"):
        return False
    here = Allocation.objects.get(lease=lease, generation=lease.generation, released_at=None)
    Allocation.objects.create(
        tenant_id=lease.tenant_id,
        lease=lease,
        generation=lease.generation + 1,
        gpu_id=move.to_gpu_id,
        placement=NumericRange(move.to_start, move.to_start + move.size, "[)"),
        profile=here.profile,
        isolation=here.isolation,
        may_share=here.may_share,
        for_move=True,
        # Not a second beside the old place while that is charged: the ledger may be ahead of our clock.
        held_at=max(now, lease.at),
    )
    return True
