"""Which free seat costs the fleet least: the bid-price rule, remembered for every card state it has seen."""

from functools import lru_cache
from typing import NamedTuple

from broker.domain.geometry import CardState, Geometry, Held
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.packing import Packing, seats_of
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation


class Score(NamedTuple):
    """What a seat costs, smaller is better, in the order in which it matters."""

    opens: bool  # an empty card is the last resort: it could still be sold whole
    loss: int  # the best that could still be sold on the card, less the best that could be afterwards
    compute_left: int
    units_left: int


class Ranked(NamedTuple):
    """The best seat for a profile on any card of one state."""

    score: Score
    placement: Placement


class Ranking:
    """The bid-price rule for one set of seats on one grid.

    A unit of memory has the same price wherever it lies and compute breaks ties: on mixes of small slices
    that is the optimum of the covering problem, and it needs neither forecast nor solver.
    """

    def __init__(self, seats: tuple[Held, ...], *, grid: int, compute: int) -> None:
        self._grid = grid
        self._compute = compute
        self._placements: dict[Profile, list[Placement]] = {}
        for seat in seats:
            self._placements.setdefault(seat.profile, []).append(seat.placement)
        self._packing = Packing(seats, grid=grid, worth=self._price)
        self._known: dict[tuple[CardState, Profile], Ranked | None] = {}

    def best(self, state: CardState, profile: Profile) -> Ranked | None:
        """Return the best seat on a card in this state, or None when there is none."""
        key = (state, profile)
        if key not in self._known:
            self._known[key] = min(self._ranked(state, profile), default=None)
        return self._known[key]

    def _ranked(self, state: CardState, profile: Profile) -> list[Ranked]:
        before = self._packing.best(state.mask, state.media)
        found = []
        for placement in self._placements.get(profile, ()):
            if not state.fits(profile, placement):
                continue
            after = state.with_held(profile, placement)
            score = Score(
                opens=state.empty,
                loss=before - self._packing.best(after.mask, after.media),
                compute_left=self._compute - after.compute,
                units_left=self._grid - after.mask.bit_count(),
            )
            found.append(Ranked(score, placement))
        return found

    def _price(self, profile: Profile) -> int:
        # Share of memory in sevenths plus a thousandth per compute slice, both times 1000 x grid.
        return 1000 * self._compute * profile.memory + self._grid * profile.compute


@lru_cache(maxsize=512)
def ranking_of(model: GpuModelSpec, isolation: Isolation, layout: Geometry | None) -> Ranking:
    """Return the shared ranking of a model's cards; a layout is all that a card of fixed layout offers."""
    seats = seats_of(model.sold_as(isolation)) if layout is None else tuple(sorted(layout.held, key=_where))
    return Ranking(seats, grid=model.grid, compute=model.compute)


def _where(held: Held) -> tuple[Placement, str]:
    return held.placement, held.profile.name
