"""Giving queued leases their places: oldest first, small ones may pass, and nobody starves."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile

import structlog
from django.db import IntegrityError, connection, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange
from django.db.models import F
from django.db.models.functions import Coalesce

from broker.domain.published import placements_of
from broker.domain.states import Isolation, LeaseState
from broker.models import Allocation, Gpu, Lease, MovePlan, Offering, StaleLease
from broker.services.capacity import could_ever_fit
from broker.services.catalogue import profile_of
from broker.services.leases import bursts, leaving
from broker.services.leases.bursts import LOOK_AGAIN, UNREADABLE
from broker.services.leases.reserving import Kept
from broker.services.placement.cards import Card, Pool, placed_on
from broker.services.placement.engine import up_to_date
from broker.services.placement.seating import (
    NEAR,
    Seating,
    Wish,
    has_strangers,
    pool_of,
    seat,
)
from broker.services.placement.stock import WALLED, Stock
from broker.services.volumes import mounting
from ports import doorbell
from tenants.services.walls import as_sweep, as_tenant

TRIES = 4
BATCH = 5000
# From then on cards are kept for it, so that a large gang lands at last, if it can; else the younger wait behind it.
PATIENCE = timedelta(hours=1)
TOO_LONG = "which has waited for more than an hour and is placed first"
MADE_ROOM_FOR = "for which others are being moved out of the way now"
AS_IT_STANDS = ["state", "seq", "at", "generation", "version", "max_duration_s", "end_date", "quota_uses"]
Shape = tuple[str, int, bool, str]  # offering, quantity, same node, topology
Wants = tuple[str, str, int, bool, str]  # the tenant, too: of two equals, both fit or neither
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Waiting:
    """One lease of a queue, as much of it as the sweep may see."""

    lease_id: str
    tenant_id: str
    offering_id: str
    quantity: int
    same_node: bool
    topology: str
    since: datetime
    waits_for: str
    volume_id: str | None  # it may have to go where that lies, and nobody elsewhere waits behind it
    generation: int
    isolation: str

    @property
    def is_plain(self) -> bool:
        """Tell whether it takes any place there is: a volume, a gang, a share or a second try may not."""
        walled = Isolation(self.isolation) in WALLED
        return self.quantity == 1 and self.volume_id is None and self.generation == 1 and walled

    @property
    def wants(self) -> Wants:
        return self.tenant_id, *self.shape

    @property
    def shape(self) -> Shape:
        return self.offering_id, self.quantity, self.same_node, self.topology

    @property
    def wish(self) -> Wish:
        """What it waits for, wherever that is."""
        offering = Offering.objects.get(pk=self.offering_id)
        return Wish(offering, self.quantity, self.same_node, self.topology)


def serve(pool: Pool, *, now: datetime, upto: str = "") -> int:
    """Place every waiting lease of a pool that fits, oldest first; return how many were placed.

    Whoever has the hint of one lease goes no further: those that came with it have hints of their own.
    """
    hopeless: dict[Wants, str] = {}  # what found no place just now, and why: its like need not try
    queue, impossible = waiting(pool, upto=upto), set[Shape]()
    placed, together, crowded, kept = 0, set[str](), False, Kept()
    rooms: dict[str, frozenset[str]] | None = (
        None  # for whom others are moved: asked where one finds no place
    )
    for number, entry in enumerate(queue, 1):
        reason = hopeless.get(entry.wants)
        if reason is None and not crowded and not kept.cards and entry.lease_id not in together:
            burst = _burst(queue[number - 1 : number - 1 + bursts.MOST])
            settled, crowded = _place_together(pool, burst, now, hinted=bool(upto))
            together |= settled
        if entry.lease_id in together:
            placed += 1
            continue
        try:
            if reason is None and _try(entry, hopeless, now, kept, hinted=bool(upto)):
                placed += 1
                continue
        except UNREADABLE:  # one row that nobody foresaw must not halt the pool
            log.exception("lease cannot be placed", lease_id=entry.lease_id)
            continue
        if reason is not None and reason != entry.waits_for:
            with as_tenant(entry.tenant_id):
                _say([entry.lease_id], reason)
        if rooms is None:
            rooms = MovePlan.objects.making_room(*pool)
        if entry.lease_id in rooms:
            kept.keep(rooms[entry.lease_id], why=_behind(entry.wish, MADE_ROOM_FOR))
        elif _is_overdue(entry, now) and entry.shape not in impossible | kept.shapes:
            wish = entry.wish
            if not _may_land(wish):
                impossible.add(entry.shape)
            elif not kept.keep_for(wish, entry.shape, why=_behind(wish, TOO_LONG), now=now):
                _hold_back(queue[number:], _behind(wish, TOO_LONG))
                break
    return placed


def _burst(queue: Sequence[Waiting]) -> list[Waiting]:
    """Return the head of a queue that may be placed together: slices of one tenant that need no closer look."""
    head = queue[0]
    return list(takewhile(lambda each: each.tenant_id == head.tenant_id and each.is_plain, queue))


def _place_together(pool: Pool, burst: Sequence[Waiting], now: datetime, *, hinted: bool) -> bursts.Outcome:
    if len(burst) <= 1:
        return bursts.Outcome(set(), crowded=False)
    ids = [each.lease_id for each in burst]
    # Nobody has looked at the others of a hint: their own are on their way, and go on with them.
    rings_for = [each.lease_id for each in burst if not hinted or each.waits_for]
    return bursts.place(pool, burst[0].tenant_id, ids, rings_for=rings_for, now=now)


def _is_overdue(entry: Waiting, now: datetime) -> bool:
    """Tell whether it has waited for too long for something that others could take."""
    return now - entry.since > PATIENCE and not entry.volume_id


def _may_land(wish: Wish) -> bool:
    """Tell whether the cards in service could hold it once they are empty; else nobody need wait behind it."""
    most = could_ever_fit(
        wish.offering,
        quantity=wish.quantity,
        same_node=wish.same_node,
        topology=wish.topology,
        in_service=True,
    )
    return most >= wish.quantity


def _behind(older: Wish, why: str) -> str:
    return f"Waits behind an older request for {older.quantity} × {older.offering.label}, {why}."


def _hold_back(younger: Iterable[Waiting], reason: str) -> None:
    """Leave who came later in the queue, so that nobody takes a place that becomes free for who came before."""
    untold: defaultdict[str, list[str]] = defaultdict(list)
    for entry in younger:
        if entry.waits_for != reason:
            untold[entry.tenant_id].append(entry.lease_id)
    for tenant_id, lease_ids in untold.items():
        with as_tenant(tenant_id):
            _say(lease_ids, reason)


def _try(entry: Waiting, hopeless: dict[Wants, str], now: datetime, kept: Kept, *, hinted: bool) -> bool:
    with as_tenant(entry.tenant_id):
        lease = Lease.objects.select_related("offering").filter(pk=entry.lease_id, state="queued").first()
        if lease is None:
            return True  # somebody was faster: it waits no longer
        if place(lease, now=now, kept=kept):
            if not hinted or entry.waits_for:
                doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)
            # else nobody has looked at it: the hint with which it came is on its way, and goes on with it
            return True
        if lease.generation == 1 and not lease.volume_id:  # others are choosier than their like
            hopeless[entry.wants] = lease.waits_for
        return False


def waiting(pool: Pool, *, upto: str = "") -> list[Waiting]:
    """Return a pool's queue, oldest first: all of it, or as far as one lease."""
    model, region = pool
    columns = (
        *("id", "tenant_id", "offering_id", "quantity", "same_node", "topology"),
        *("since", "waits_for", "volume_id"),
        *("generation", "offering__isolation"),
    )
    with as_sweep():
        queued = Lease.objects.filter(state="queued", offering__gpu_model=model, offering__region=region)
        rows = queued.annotate(since=Coalesce("waits_since", "created_at")).order_by("since", "id")
        queue = [Waiting(*row) for row in rows.values_list(*columns)[:BATCH]]
    if not upto:
        return queue
    ids = [entry.lease_id for entry in queue]
    return queue[: ids.index(upto) + 1] if upto in ids else []  # it waits no longer: nor need anybody for it


OLDER = """
SELECT EXISTS (
  SELECT FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id
   WHERE o.gpu_model_id = %s AND o.region = %s AND (w.created_at, w.lease_id) < (%s, %s))
"""


def is_first(lease: Lease) -> bool:
    """Tell whether nobody of any tenant has waited longer for a card of its pool."""
    with connection.cursor() as cursor:
        cursor.execute(OLDER, [*pool_of(lease.offering), lease.queues_since, lease.pk])
        return not cursor.fetchone()[0]


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
            _say([lease.pk], lease.waits_for)
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


def _say(lease_ids: Sequence[str], reason: str) -> None:
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
