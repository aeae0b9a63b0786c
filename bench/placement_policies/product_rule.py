"""The product's placement rule: without a forecast, first of equals by id."""

from collections import Counter
from collections.abc import Sequence

from bench.placement_policies.gpu_profiles import MODEL, PROFILES, WHOLE
from bench.placement_policies.workloads import Request
from broker.domain.geometry.gpu_state import EMPTY_GPU
from broker.domain.geometry.profiles import Profile
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from broker.domain.placement.warm_slices import NO_WARM_SLICES

SOLD = "as sold"


class Sold:
    """Pool of the product's own, with leftover MIG partitions; whole GPUs stay whole."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.moves = 0
        gpus = (GpuView(f"{gpu:06}", f"{node:06}", EMPTY_GPU, None, NO_WARM_SLICES) for gpu, node in enumerate(nodes))
        self.pool = PoolIndex(MODEL, gpus)
        self.held: dict[int, tuple[Profile, Sequence[Slot]]] = {}
        self.on = Counter[str]()

    def place(self, number: int, request: Request) -> bool:
        profile = MODEL.whole if request.profile == WHOLE else PROFILES[request.profile]
        if request.count > 1:
            slots = find_gang_slots(self.pool, profile, count=request.count, same_node=True)
        else:
            slot = self.pool.find_cheapest_slot(profile)
            slots = (slot,) if slot else None
        if slots is None:
            return False
        for each in slots:
            self.pool.hold(each, profile)
        self.on.update(each.gpu for each in slots)
        self.held[number] = profile, slots
        return True

    def release(self, number: int) -> None:
        profile, slots = self.held.pop(number)
        for slot in slots:
            self.pool.release(slot, profile)
            self.on[slot.gpu] -= 1
            if not self.on[slot.gpu]:
                del self.on[slot.gpu]

    def active(self) -> int:
        return len(self.on)
