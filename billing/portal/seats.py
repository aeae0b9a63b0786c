"""The cards a lease lies on, drawn: its own slices, the neighbours without a name, and what is free."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from broker.models import Allocation, Lease
from broker.services.capacity import Card, Seating
from broker.services.catalogue import spec_of

SHOWN = 4
Span = tuple[int, int, str, str]  # start, size, kind, word
OCCUPIED = "SELECT gpu_id, start, size, profile, mine FROM broker_occupied WHERE gpu_id = ANY(%s)"


@dataclass(frozen=True)
class Drawing:
    """One card as a row of slices."""

    where: str
    cells: int
    spans: tuple[Span, ...]
    words: str

    @property
    def shared(self) -> bool:
        """Say whether somebody else is on the card."""
        return any(kind == "oth" for _, _, kind, _ in self.spans)


def held(lease: Lease) -> tuple[list[Drawing], int]:
    """Draw the cards of the lease's present generation, a few of them, and count the rest; two queries."""
    rows = Allocation.objects.filter(lease=lease, generation=lease.generation, for_move=False)
    seats = list(rows.select_related("gpu__node__cluster").order_by("gpu_id", "placement"))
    by_card: defaultdict[str, list[Allocation]] = defaultdict(list)
    for seat in seats:
        by_card[seat.gpu_id].append(seat)
    shown = dict(list(by_card.items())[:SHOWN])
    grid = spec_of(lease.offering.model).grid
    taken = _taken(shown)
    return [_drawing(own, taken[gpu], grid) for gpu, own in shown.items()], len(by_card) - len(shown)


def _taken(gpus: Iterable[str]) -> defaultdict[str, list[tuple[int, int, str, bool]]]:
    found: defaultdict[str, list[tuple[int, int, str, bool]]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(OCCUPIED, [list(gpus)])
        for gpu, start, size, profile, mine in cursor.fetchall():
            found[gpu].append((start, size, profile, mine))
    return found


def _drawing(own: list[Allocation], taken: list[tuple[int, int, str, bool]], grid: int) -> Drawing:
    gpu = own[0].gpu
    starts = {seat.placement.lower for seat in own if seat.released_at is None}
    spans = [
        (start, size, _kind(start in starts, mine), short(profile) if mine else "")
        for start, size, profile, mine in taken
    ]
    where = f"{gpu.node.cluster.name} / {gpu.node.name} / card {gpu.index}"
    return finished(where, grid, spans)


def _kind(own: bool, mine: bool) -> str:
    if own:
        return "own"
    return "k-sold" if mine else "oth"


def previewed(seating: Seating, *, profile: str) -> list[Drawing]:
    """Draw the cards a request would go to now."""
    found = []
    for gpu, card in list(seating.cards.items())[:SHOWN]:
        mine = [seat.placement for seat in seating.seats if seat.gpu == gpu]
        spans = [(p.start, p.size, "k-sold" if own else "oth", short(name)) for name, p, own in card.held]
        spans += [(p.start, p.size, "own", _own(p.size, profile)) for p in mine]
        found.append(finished(card.where, grid_of(card), spans))
    return found


def _own(size: int, profile: str) -> str:
    """Name what would be one's own; on a single memory slice there is room for no more than that."""
    return f"yours · {short(profile)}" if size > 1 else "yours"


def grid_of(card: Card) -> int:
    return spec_of(card.model).grid


def finished(where: str, grid: int, spans: list[Span]) -> Drawing:
    """Add the free slices between the others, and say in words what the picture shows."""
    covered = {cell for start, size, _, _ in spans for cell in range(start, start + size)}
    free: list[Span] = [(cell, 1, "fre", "") for cell in range(grid) if cell not in covered]
    own = [f"{s} to {s + n - 1}" if n > 1 else str(s) for s, n, kind, _ in sorted(spans) if kind == "own"]
    others = sum(size for _, size, kind, _ in spans if kind != "own")
    words = f"{where}: yours {', '.join(own) or 'none'} of {grid} memory slices; {others} others, {len(free)} free"
    return Drawing(where, grid, tuple(sorted(spans + free)), words)


def short(profile: str) -> str:
    """Return a profile as briefly as it fits on a slice: 3g, card."""
    return profile.partition(".")[0]
