"""Who waits for the cards of a pool, and what is kept for those who have waited too long or have room made for them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models.functions import Coalesce

from broker.domain.states import Isolation
from broker.models import Lease, MovePlan, Offering
from broker.services.capacity import could_ever_fit
from broker.services.leases.reserving import Kept
from broker.services.placement.cards import Pool
from broker.services.placement.seating import Wish
from broker.services.placement.stock import WALLED
from tenants.services.walls import as_sweep

BATCH = 5000
# From then on cards are kept for it, so that a large gang lands at last, if it can; else the younger wait behind it.
PATIENCE = timedelta(hours=1)
TOO_LONG = "which has waited for more than an hour and is placed first"
MADE_ROOM_FOR = "for which others are being moved out of the way now"
Shape = tuple[str, int, bool, str]  # offering, quantity, same node, topology
Wants = tuple[str, str, int, bool, str]  # the tenant, too: of two equals, both fit or neither
# The pools in which anything may be kept: most have nobody who waits for so long.
PRESSED = """
SELECT o.gpu_model_id, o.region FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id
 WHERE w.created_at < %s
 UNION
SELECT p.gpu_model_id, c.region FROM broker_moveplan p JOIN broker_cluster c ON c.id = p.cluster_id
 WHERE p.state = 'running'
"""


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


class Precedence:
    """What is kept in one look at a queue, from its oldest to its youngest, for those who find no place."""

    def __init__(self, pool: Pool, *, now: datetime) -> None:
        self.kept, self._pool, self._now = Kept(), pool, now
        self._impossible = set[Shape]()
        # For whom others are moved, and which cards: asked where one finds no place.
        self._rooms: dict[str, frozenset[str]] | None = None

    def keep(self, entry: Waiting) -> str:
        """Keep for one who finds no place what is to be theirs; say why all who are younger wait, where they do."""
        if self._rooms is None:
            self._rooms = MovePlan.objects.making_room(*self._pool)
        if entry.lease_id in self._rooms:
            self.kept.keep(self._rooms[entry.lease_id], why=_behind(entry.wish, MADE_ROOM_FOR))
        elif _is_overdue(entry, self._now) and entry.shape not in self._impossible | self.kept.shapes:
            wish = entry.wish
            why = _behind(wish, TOO_LONG)
            if not _may_land(wish):
                self._impossible.add(entry.shape)
            elif not self.kept.keep_for(wish, entry.shape, why=why, now=self._now):
                return why
        return ""


def kept_in(pools: Collection[Pool], *, now: datetime) -> dict[Pool, frozenset[str] | None]:
    """Return the cards that are kept in some pools now; None where nobody who comes now is placed at all.

    It is what the next look at their queues keeps: whoever could be placed has been.
    """
    with connection.cursor() as cursor:
        cursor.execute(PRESSED, [now - PATIENCE])
        pressed = {(model, region) for model, region in cursor.fetchall()}
    return {pool: _kept(pool, now) for pool in pressed.intersection(pools)}


def _kept(pool: Pool, now: datetime) -> frozenset[str] | None:
    first = Precedence(pool, now=now)
    return None if any(first.keep(entry) for entry in waiting(pool)) else first.kept.cards


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
