"""Giving one queued lease its places, or a plain reason why it waits."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange
from django.db.models import F

from broker.domain.published import placements_of
from broker.domain.states import LeaseState
from broker.models import Allocation, Gpu, Lease, Offering, StaleLease
from broker.services.catalogue import profile_of
from broker.services.leases import bursts, leaving
from broker.services.leases.bursts import LOOK_AGAIN
from broker.services.leases.reserving import Kept
from broker.services.placement.cards import Card, placed_on
from broker.services.placement.engine import up_to_date
from broker.services.placement.seating import (
    NEAR,
    Seating,
    Wish,
    has_strangers,
    pool_of,
    seat,
)
from broker.services.placement.stock import Stock
from broker.services.volumes import mounting
from ports import doorbell

TRIES = 4
AS_IT_STANDS = ["state", "seq", "at", "generation", "version", "max_duration_s", "end_date", "quota_uses"]


def place(lease: Lease, *, now: datetime, kept: Kept | None = None) -> bool:
    """Give one queued lease its places, none that is kept; False leaves it in the queue with a plain reason.

    The caller goes on with it, or rings for somebody who does. Two placers may decide at once: who finds a card in
    another's hands takes the next best, and waits only where there is none; PostgreSQL lets one of them have the
    place, the other looks again.
    """
    kept, in_hands = kept or Kept(), frozenset[str]()
    for _ in range(TRIES):
        wish = _wish(lease)
        wishes = leaving.elsewhere(lease, wish, now=now)
        with up_to_date() as stock:
            seating = _seat(_without(wishes, kept.cards | in_hands), stock)
            waits = seating is None and bool(in_hands)
            if waits:
                seating = _seat(_without(wishes, kept.cards), stock)
            if seating is None:
                kept_from = _seat(wishes, stock) if kept.cards else None
                why = kept.why(kept_from.cards) if kept_from else ""
                lease.waits_for = why or why_not(wish, stock, elsewhere=wishes != [wish])
        if seating is None:
            say([lease.pk], lease.waits_for)
            return False
        try:
            with transaction.atomic():
                if _hold(lease, seating, now, waits):
                    return True
                # Of some cards it may have got a part: who kept those while it waits for others would wait in a circle.
                transaction.set_rollback(True)
            in_hands |= frozenset(seating.cards)
        except StaleLease:
            pass  # it ended, was placed, or only was extended: what it is now decides
        except IntegrityError as error:
            if not bursts.was_faster(error):
                raise
        lease.refresh_from_db(fields=AS_IT_STANDS)
        if lease.state != LeaseState.QUEUED:
            return False
    # Somebody was faster every time; there may be room yet, so look again soon.
    doorbell.ring("broker.serve", "|".join(pool_of(lease.offering)), now=now, after_s=1)
    return False


def _wish(lease: Lease) -> Wish:
    home = mounting.home_of(lease.volume_id)
    return Wish(lease.offering, lease.quantity, lease.same_node, lease.topology, home)


def _without(wishes: Iterable[Wish], cards: frozenset[str]) -> list[Wish]:
    return [replace(each, not_at=cards) for each in wishes]


def _seat(wishes: Iterable[Wish], stock: Stock) -> Seating | None:
    """Choose seats for the first wish that can be had."""
    return next((seating for wish in wishes if (seating := seat(wish, stock))), None)


def has_another_cluster(lease: Lease) -> bool:
    """Tell whether a lease that its cluster fails would find room now in one that has not failed it yet."""
    held = lease.allocations.filter(generation=lease.generation, released_at=None)
    failed = leaving.clusters_left(lease) | set(held.values_list("gpu__node__cluster__name", flat=True))
    with up_to_date() as stock:
        return seat(replace(_wish(lease), not_in=failed), stock) is not None


def foresee(lease: Lease) -> None:
    """Let a lease say what placing it now would do, and do nothing."""
    wish = _wish(lease)
    with up_to_date() as stock:
        if seat(wish, stock):
            lease.state = LeaseState.PROVISIONING.value
        else:
            lease.waits_for = why_not(wish, stock)


def _hold(lease: Lease, seating: Seating, now: datetime, waits: bool = False) -> bool:
    """Take the seats and step to provisioning; False when a card went out of service or is in another's hands.

    Who `waits` is told of the latter only once it is decided.
    """
    offering, generation = lease.offering, lease.generation + 1
    if _meets_strangers(seating):
        return False
    # Locked in order: who waits for another placer of a card does so here, where no circle can come about.
    wanted = Gpu.objects.sellable().filter(pk__in=seating.cards).order_by("pk")
    mine = wanted.select_for_update(of=("self",), no_key=True, skip_locked=not waits)
    if len(mine.values_list("pk")) < len(seating.cards):
        return False
    Allocation.objects.bulk_create(
        [
            Allocation(
                tenant_id=lease.tenant_id,
                lease=lease,
                generation=generation,
                gpu_id=s.gpu,
                placement=NumericRange(s.placement.start, s.placement.end, "[)"),
                profile=offering.profile,
                isolation=offering.isolation,
                may_share=seating.cards[s.gpu].shares_soft,
                held_at=now,
            )
            for s in seating.seats
        ]
    )
    lease.generation = generation
    mounting.settle(lease, next(iter(seating.cards.values())).cluster)
    lease.move(
        LeaseState.PROVISIONING,
        now=now,
        cause=placed_on(seating.seats, seating.cards, profile_of(offering)),
        generation=generation,
        claimed_until=None,
        due_at=now + LOOK_AGAIN,
        tries=0,
        waits_for="",
        progress={},
    )
    return True


def _meets_strangers(seating: Seating) -> bool:
    """Tell whether a stranger came to a node that picks the card of a share itself; else keep others from coming.

    The books have each share on one card, but its node gives a replica of any: so all its cards are one here, and
    are locked, in order, as one.
    """
    unwalled = {card.node for card in seating.cards.values() if card.picked_by_node and not card.shares_soft}
    for node in sorted(unwalled):
        cards = Gpu.objects.filter(node=node).order_by("pk").select_for_update(of=("self",), no_key=True)
        list(cards.values_list("pk"))
        if has_strangers(node):
            return True
    return False


def say(lease_ids: Sequence[str], reason: str) -> None:
    """Write what queued leases of a tenant wait for, where that is news."""
    queued = Lease.objects.filter(pk__in=lease_ids, state="queued").exclude(waits_for=reason)
    queued.update(waits_for=reason, version=F("version") + 1)


def why_not(wish: Wish, stock: Stock, *, elsewhere: bool = False) -> str:
    """Say in one sentence what a request waits for, in its region or where its volume lies.

    `elsewhere` tells that it was not let go everywhere.
    """
    if elsewhere and seat(wish, stock):
        return (
            "Waits for another place: the one it was given did not take it. It is tried again in two minutes."
        )
    label, region = wish.offering.label, wish.offering.region
    if wish.cluster:
        region = f"{wish.cluster}, where its volume lies,"
    cards = [
        card
        for card in stock.by_pool[wish.pool].values()
        if card.sellable and wish.cluster in ("", card.cluster)
    ]
    if not cards:
        return f"Waits for {label}: no card of this model is in service in {region} now."
    if not any(_cut_for(wish.offering, card) for card in cards):
        why = "nodes are cut anew for what is asked for"
        if any(card.publishes for card in cards):
            why = "those that are cut for each lease do not publish it"
        return f"Waits for {label}: no card in {region} can be cut into it now; {why}."
    if wish.quantity == 1:
        return f"Waits for one free {label}. Every one in {region} is taken; the next release starts it."
    together = (" on one node" if wish.same_node else "") + NEAR[wish.topology]
    free = _number(_most_free(wish, stock))
    return f"Waits for {wish.quantity} × {label}, free together{together}. {free} free now."


def _cut_for(offering: Offering, card: Card) -> bool:
    return bool(placements_of(profile_of(offering), card.cut))


def _number(count: int) -> str:
    return {0: "None is", 1: "One is"}.get(count, f"{count} are")


def _most_free(wish: Wish, stock: Stock) -> int:
    """Return how many of a gang would find room together now."""
    counts = range(wish.quantity - 1, 0, -1)
    return next((count for count in counts if seat(replace(wish, quantity=count), stock)), 0)
