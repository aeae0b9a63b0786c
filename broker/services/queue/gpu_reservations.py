"""GPU reservation for leases that have waited too long.

Of all suitable GPUs those are reserved that become free first, as far as the ends of the leases on them
are known. Nothing from the queue is placed on them meanwhile, so they become free at last. A lease that
needs one node blocks no other nodes.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from broker.services.inventory.gpu_catalogue import profile_of
from broker.services.placement.available_capacity import slices_when_empty
from broker.services.placement.gpu_index import DEDICATED
from broker.services.placement.shared_index import current_index
from broker.services.placement.slot_search import PlacementRequest
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import system_scope

MAX_SHAPES = 8  # request shapes with reserved GPUs at once; beyond that all younger leases wait
ENDING_TIMEOUT = timedelta(minutes=5)  # a longer ending may be stuck for good, and is counted on last


@dataclass
class ReservedGpus:
    """GPUs reserved in one queue run, with the reason that others are told."""

    gpus: frozenset[str] = frozenset()
    # The shapes they are reserved for: equal requests come right after.
    shapes: set[object] = field(default_factory=set)
    _whys: list[tuple[frozenset[str], str]] = field(default_factory=list)

    def reserve(self, gpus: frozenset[str], *, why: str) -> None:
        """Reserve GPUs, with the reason for leases that would have used them."""
        self._whys.append((gpus, why))
        self.gpus |= gpus

    def reserve_for(self, request: PlacementRequest, shape: object, *, why: str, now: datetime) -> bool:
        """Reserve GPUs for the oldest request of its shape.

        Returns False where all younger leases have to wait instead.
        """
        if len(self.shapes) >= MAX_SHAPES:
            return False
        room = soonest_free_gpus(request, without=self.gpus, now=now)
        if room is None and not soonest_free_gpus(request, without=(), now=now):
            return False
        self.shapes.add(shape)
        if room:  # else an older lease has reserved what it needs, and it comes after that
            self.reserve(room, why=why)
        return True

    def reason_for(self, wanted: Collection[str]) -> str:
        """Return for whom GPUs are reserved that a request would have used."""
        return next((why for gpus, why in self._whys if not gpus.isdisjoint(wanted)), "")


def soonest_free_gpus(request: PlacementRequest, *, without: Collection[str], now: datetime) -> frozenset[str] | None:
    """Return the GPUs that hold a request when empty and are empty soonest.

    None where a number of GPUs does not tell that: links between GPUs and shares are more than a number.
    """
    if request.topology or request.isolation not in DEDICATED:
        return None
    profile = profile_of(request.offering)
    with current_index() as stock:
        able = [
            (gpu, fits)
            for gpu in stock.by_pool[request.pool].values()
            if gpu.gpu not in without and gpu.sellable and (fits := slices_when_empty(gpu, profile, as_cut_now=True))
        ]
    free_at = _load_free_at([gpu.gpu for gpu, _ in able if gpu.placement_count], now)
    together = defaultdict[str, list[tuple[datetime, str, int]]](list)
    for gpu, fits in able:
        there = gpu.node if request.same_node else gpu.cluster
        together[there].append((free_at.get(gpu.gpu, now), gpu.gpu, fits))
    rooms = [room for gpus in together.values() if (room := _first_that_hold(sorted(gpus), request.quantity))]
    return frozenset(min(rooms)[1]) if rooms else None


def _first_that_hold(
    gpus: Iterable[tuple[datetime, str, int]], quantity: int
) -> tuple[datetime, tuple[str, ...]] | None:
    """Return as many GPUs, in order of becoming free, as hold a request, and when."""
    taken: list[str] = []
    for free_at, gpu, fits in gpus:
        taken.append(gpu)
        quantity -= fits
        if quantity <= 0:
            return free_at, tuple(taken)
    return None


def _load_free_at(gpus: list[str], now: datetime) -> dict[str, datetime]:
    values = {"gpus": gpus, "now": now, "stuck": now - ENDING_TIMEOUT}
    with system_scope():
        return dict(query_rows("broker/queue/gpus_free_at", values))
