"""One card as placement knows it: what it is, where it stands and what lies on it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from broker.domain.geometry import EMPTY, CardState, Geometry, Held, state_of
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement.pool import CardView
from broker.domain.placement.seats import Seat
from broker.domain.placement.warmth import COLD, Cutting, Warm, cutting, still_cut
from broker.domain.profiles import Placement, Profile, ProfileKind
from broker.domain.published import Cut, Published, read_published
from broker.domain.states import Isolation
from broker.services.catalogue import shape, spec_of

# A pool is the cards that may serve each other's requests: one GpuModel in one region.
Pool = tuple[str, str]
STILL_CUT = ", still cut like this"
Lies = tuple[tuple[str, Placement, bool], ...]  # profile, where, whether it is the asker's own


@dataclass(frozen=True, slots=True)
class Card:
    """One card with what lies on it; whose that is nobody is told here, except in `held` of a preview."""

    gpu: str
    node: str
    node_name: str
    cluster_id: str
    cluster: str
    index: int
    shares_soft: bool
    model: str
    region: str
    sellable: bool  # something new may be placed on it
    recuts: bool
    layout: Geometry | None
    uncut: frozenset[Isolation]  # as what it is sold where no layout says that
    fabric: str = ""  # as its node reports them
    numa: str = ""
    state: CardState = EMPTY
    places: int = 0  # that are held on it
    held: Lies = ()
    publishes: Published | None = None  # as what it can be had where that is less than its model can
    warm: Warm | None = None  # what is left cut on it; None: nothing ever is

    @property
    def pool(self) -> Pool:
        return self.model, self.region

    @property
    def view(self) -> CardView:
        return CardView(self.gpu, self.node, self.state, self.cut, self.warm)

    @property
    def cut(self) -> Cut:
        """What it is cut into, or can be."""
        return self.layout or self.publishes

    @property
    def picked_by_node(self) -> bool:
        """Tell whether a share of it may turn out to be one of another card: its node hands out any replica."""
        return self.layout is not None and of_shares(self.layout)

    @property
    def wiring(self) -> tuple[str, int, str, str]:
        """What its links to others hang on."""
        return self.node, self.index, self.fabric, self.numa

    @property
    def where(self) -> str:
        return f"{self.cluster} / {self.node_name} / card {self.index}"

    def sold_as(self, isolation: Isolation) -> bool:
        """Tell whether it can be had so at all, were it empty."""
        return self.layout is not None or isolation in self.uncut


def placed_on(seats: Sequence[Seat], cards: Mapping[str, Card], profile: Profile) -> str:
    """Say where a request was placed, and whether all its slices are still cut there."""
    where = ", ".join(sorted({card.where for card in cards.values()}))
    warm = all(
        cutting(cards[seat.gpu].warm or COLD, profile, seat.placement) is Cutting.WARM for seat in seats
    )
    return f"placed on {where}" + (STILL_CUT if warm else "")


@lru_cache(maxsize=4096)
def of_shares(layout: Geometry) -> bool:
    return any(held.profile.kind is ProfileKind.SHARE for held in layout.held)


@lru_cache(maxsize=4096)
def cut_of(model: str, layout: str) -> Geometry:
    """Read a layout once: a fleet has few, and every placement looks at every card."""
    return fixed_geometry(spec_of(model), json.loads(layout))


publishes_of = lru_cache(maxsize=4096)(read_published)  # nodes of one make publish alike


def fixed_geometry(spec: GpuModelSpec, layout: Iterable[dict[str, object]]) -> Geometry:
    """Turn a card's stored cut into the domain's; raises ValueError for a slice the model does not have."""
    held = []
    for cut in layout:
        profile = spec.profile(str(cut["profile"]), Isolation(str(cut.get("isolation", Isolation.HARDWARE))))
        held.append(Held(profile.placed_at(int(str(cut["start"]))), profile))
    return Geometry(frozenset(held))


@lru_cache(maxsize=65536)
def state_named(model: str, lies: str) -> CardState:
    """Read what lies on a card, `hardware:1g.10gb@0 …`; raises ValueError where it cannot lie so."""
    return state_of(held_named(model, lies))


def warm_named(model: str, lies: str, ended: str) -> Warm:
    """Read what is left cut on a card, by what lies there and by what ended there, the latest first.

    What ended before something that the model does not have any more is not counted on.
    """
    return still_cut(held_named(model, lies), _readable(model, ended))


def _readable(model: str, places: str) -> Iterator[Held]:
    with suppress(ValueError, KeyError):
        for place in places.split():
            yield _held(model, place)


def held_named(model: str, places: str) -> list[Held]:
    """Read places on a card; raises ValueError or KeyError for one that the model does not have."""
    return [_held(model, place) for place in places.split()]


@lru_cache(maxsize=4096)
def _held(model: str, place: str) -> Held:
    isolation, _, rest = place.partition(":")
    name, _, start = rest.rpartition("@")
    profile = shape(model, name, isolation)
    return Held(profile.placed_at(int(start)), profile)
