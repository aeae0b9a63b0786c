"""Choice of the spot leases to reclaim, so that a waiting request fits.

All or nothing: none is chosen if the request still would not fit. Fewest leases come first, then the least
work lost. Within one cluster or node the choice is exact while few leases may be reclaimed there; among many
it takes the best one after the other and then spares those that turned out unnecessary.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from broker.domain.geometry.gpu_state import GpuState, PlacedSlice
from broker.domain.geometry.profiles import Profile
from broker.domain.geometry.published_profiles import Partitioning
from broker.domain.geometry.slice_packing import max_instances_that_fit

MAX_COMBINATIONS = 2000  # tried for an exact choice
MAX_ON_A_GPU = 8  # leases of one GPU of which every combination is tried; of more, the cheapest first

LinkedCount = Callable[[Collection[str]], int]  # the most of these GPUs that are linked closely enough


@dataclass(frozen=True, slots=True)
class ReclaimableLease:
    """A spot lease past its minimum runtime, with its slices by GPU."""

    lease_id: str
    slices: tuple[tuple[str, PlacedSlice], ...]
    lost_work: int  # charged since it was last started, in thousandths of a unit times seconds


@dataclass(frozen=True, slots=True)
class ReclaimableGpu:
    """A GPU that may serve the request, without slices that are being freed already."""

    gpu: str
    place: str  # GPUs of one place can serve one request: a node or a cluster
    state: GpuState
    cut: Partitioning
    only_when_empty: bool = False  # its tenants may not share it with the request's tenant


@dataclass(frozen=True, slots=True)
class ReclaimRequest:
    """The slices that are wanted together."""

    profile: Profile
    quantity: int = 1
    # By place, how many of some GPUs are linked closely enough; empty: links do not matter.
    linked: Mapping[str, LinkedCount] | None = None


@dataclass(frozen=True, slots=True)
class ReclaimChoice:
    """The leases to reclaim in one place; none if the request fits without."""

    place: str
    leases: tuple[ReclaimableLease, ...]

    @property
    def cost(self) -> tuple[int, int, str, tuple[str, ...]]:
        return (
            len(self.leases),
            sum(lease.lost_work for lease in self.leases),
            self.place,
            tuple(lease.lease_id for lease in self.leases),
        )


def choose_reclaim(
    request: ReclaimRequest, gpus: Iterable[ReclaimableGpu], leases: Sequence[ReclaimableLease]
) -> ReclaimChoice | None:
    """Return the cheapest choice over all places; None if no place can hold the request."""
    by_place = defaultdict[str, list[ReclaimableGpu]](list)
    for gpu in gpus:
        by_place[gpu.place].append(gpu)
    searches = [_PlaceSearch(request, place, its, leases) for place, its in sorted(by_place.items())]
    found = [(choice, search) for search in searches if (choice := search.choose())]
    if not found:
        return None
    choice, search = min(found, key=lambda pair: pair[0].cost)
    return search.improve(choice)


class _PlaceSearch:
    """The search within one place."""

    def __init__(
        self,
        request: ReclaimRequest,
        place: str,
        gpus: Sequence[ReclaimableGpu],
        leases: Iterable[ReclaimableLease],
    ) -> None:
        self._request, self._place = request, place
        self._gpus = {gpu.gpu: gpu for gpu in gpus}
        self._on_gpu = defaultdict[str, list[ReclaimableLease]](list)
        for lease in sorted(leases, key=lambda each: (each.lost_work, each.lease_id)):
            for gpu in dict.fromkeys(gpu for gpu, _ in lease.slices if gpu in self._gpus):
                self._on_gpu[gpu].append(lease)
        self._ids_on = defaultdict[str, frozenset[str]](frozenset)
        for gpu, its in self._on_gpu.items():
            self._ids_on[gpu] = frozenset(lease.lease_id for lease in its)
        here = {lease.lease_id: lease for its in self._on_gpu.values() for lease in its}
        self._leases = sorted(here.values(), key=lambda each: (each.lost_work, each.lease_id))
        self._known: dict[tuple[str, frozenset[str]], int] = {}

    def choose(self) -> ReclaimChoice | None:
        """Return leases that suffice, none of them unnecessary."""
        taken: list[ReclaimableLease] = []
        while not self._holds(taken):
            bundle = self._best_bundle(taken)
            if bundle is None:
                return None
            taken += bundle
        return self._choice(self._spare_unnecessary(taken))

    def improve(self, choice: ReclaimChoice) -> ReclaimChoice:
        """Return the best choice of at most as many leases.

        Where there are too many combinations to try, that is the given one.
        """
        counts = range(len(choice.leases) + 1)
        if sum(comb(len(self._leases), count) for count in counts) > MAX_COMBINATIONS:
            return choice
        fits_by_count = ([each for each in combinations(self._leases, count) if self._holds(each)] for count in counts)
        fewest = next(fits for fits in fits_by_count if fits)  # the given one is among the last
        return min(map(self._choice, fewest), key=lambda each: each.cost)

    def _choice(self, leases: Iterable[ReclaimableLease]) -> ReclaimChoice:
        return ReclaimChoice(self._place, tuple(sorted(leases, key=lambda each: each.lease_id)))

    def _spare_unnecessary(self, taken: Sequence[ReclaimableLease]) -> list[ReclaimableLease]:
        kept = list(taken)
        for lease in sorted(taken, key=lambda each: (-each.lost_work, each.lease_id)):
            without = [each for each in kept if each is not lease]
            if self._holds(without):
                kept = without
        return kept

    def _best_bundle(self, taken: Sequence[ReclaimableLease]) -> list[ReclaimableLease] | None:
        """Return the leases that free most for their number, then for the work lost."""
        best = None
        missing = max(self._request.quantity - self._count(taken), 1)
        for gpu in sorted(self._on_gpu):
            for bundle in self._bundles_on(gpu, taken):
                gain = min(self._gain(bundle, taken), missing)
                cost = (
                    len(bundle) / gain,
                    sum(lease.lost_work for lease in bundle) / gain,
                    sorted(lease.lease_id for lease in bundle),
                )
                if best is None or cost < best[0]:
                    best = cost, bundle
        return best[1] if best else None

    def _gain(self, bundle: Sequence[ReclaimableLease], taken: Sequence[ReclaimableLease]) -> int:
        """Return how many more slices fit without a bundle; only its own GPUs change."""
        touched = {gpu for lease in bundle for gpu, _ in lease.slices if gpu in self._gpus}
        without = [*taken, *bundle]
        return sum(self._fits_on(gpu, without) - self._fits_on(gpu, taken) for gpu in touched)

    def _bundles_on(self, gpu: str, taken: Sequence[ReclaimableLease]) -> Iterator[list[ReclaimableLease]]:
        """Yield the smallest sets of leases that let one more slice fit on a GPU."""
        left = [lease for lease in self._on_gpu[gpu] if lease not in taken]
        have = self._fits_on(gpu, taken)
        if len(left) > MAX_ON_A_GPU:
            prefixes = (left[:count] for count in range(1, len(left) + 1))
            found = next((each for each in prefixes if self._fits_on(gpu, [*taken, *each]) > have), None)
            yield from [found] if found else []
            return
        for count in range(1, len(left) + 1):
            fits = [list(each) for each in combinations(left, count) if self._fits_on(gpu, [*taken, *each]) > have]
            if fits:
                yield from fits
                return

    def _holds(self, without: Sequence[ReclaimableLease]) -> bool:
        """Return whether the request fits once these leases are gone."""
        if self._request.linked is None:
            return self._count(without) >= self._request.quantity
        if (linked := self._request.linked.get(self._place)) is None:
            return False
        free = [gpu for gpu in self._gpus if self._fits_on(gpu, without)]
        return len(free) >= self._request.quantity and linked(free) >= self._request.quantity

    def _count(self, without: Sequence[ReclaimableLease]) -> int:
        return sum(self._fits_on(gpu, without) for gpu in self._gpus)

    def _fits_on(self, gpu_id: str, without: Sequence[ReclaimableLease]) -> int:
        """Return how many requested slices fit on a GPU without some leases."""
        here = self._ids_on[gpu_id]
        gone = frozenset(lease.lease_id for lease in without if lease.lease_id in here) if here else frozenset()
        if (gpu_id, gone) not in self._known:
            self._known[gpu_id, gone] = self._count_on(self._gpus[gpu_id], gone)
        return self._known[gpu_id, gone]

    def _count_on(self, gpu: ReclaimableGpu, gone: frozenset[str]) -> int:
        state = state_without(gpu.state, self._slices_on(gpu.gpu, gone))
        if gpu.only_when_empty and not state.empty:
            return 0
        return max_instances_that_fit(self._request.profile, state, gpu.cut)

    def _slices_on(self, gpu_id: str, lease_ids: frozenset[str]) -> Iterator[PlacedSlice]:
        for lease in self._on_gpu.get(gpu_id, ()):
            if lease.lease_id in lease_ids:
                yield from (held for gpu, held in lease.slices if gpu == gpu_id)


def state_without(state: GpuState, slices: Iterable[PlacedSlice]) -> GpuState:
    """Return a GPU's state without some of its slices."""
    for held in slices:
        state = state.without(held.profile, held.placement)
    return state
