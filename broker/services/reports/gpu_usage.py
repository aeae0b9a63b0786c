"""Current use of every unit of a GPU, for operators."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME, device_name
from broker.domain.geometry.gpu_state import GpuState
from broker.domain.geometry.slice_packing import SellableProfiles
from broker.domain.lifecycle.states import LeaseState, PriceClass
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import GpuHealth, NodeState


class UnitUse(StrEnum):
    SOLD = "sold"
    SPOT = "spot"
    RESERVED = "reserved"  # held for a lease that is not charged: provisioning or releasing
    FREE = "free"
    FRAGMENTED = "fragmented"  # free, but no offered profile fits there
    UNHEALTHY = "unhealthy"
    MAINTENANCE = "maintenance"  # free, but its node takes nothing new or others use it


CHARGED = (UnitUse.SOLD, UnitUse.SPOT)


class LeasedSlice(NamedTuple):
    """A placement on a GPU and the lease that holds it.

    Times are seconds since the epoch: a map has thousands and shows few, and a datetime costs more than its
    row.
    """

    start: int
    size: int
    profile: str
    since_s: float  # start of its present state
    lease: str
    lease_name: str
    state: LeaseState
    ends_s: float | None
    offering: str
    price_class: PriceClass
    held_s: float  # when the placement was reserved
    sold_s: int | None  # charged without interruption since; None when it is not charged now
    tenant: str
    tenant_name: str

    @property
    def use(self) -> UnitUse:
        if self.state is not LeaseState.ACTIVE:
            return UnitUse.RESERVED
        return UnitUse.SPOT if self.price_class is PriceClass.SPOT else UnitUse.SOLD

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.since_s, UTC)

    @property
    def ends_at(self) -> datetime | None:
        return None if self.ends_s is None else datetime.fromtimestamp(self.ends_s, UTC)


class UnitRun(NamedTuple):
    """Adjacent units of one use, with the lease that holds them."""

    start: int
    size: int
    use: UnitUse
    slice: LeasedSlice | None = None


class GpuUseLayout(NamedTuple):
    """The layout of a GPU, shared by all GPUs with the same placements."""

    runs: tuple[tuple[int, int, UnitUse, int | None], ...]  # start, size, use, and index of the slice
    units: Mapping[UnitUse, int]


@dataclass
class FleetGpu:
    """A GPU or CPU block and its placements; times are as those of slices."""

    id: str
    index: int
    model: str
    grid: int
    health: GpuHealth
    health_reason: str
    health_since_s: float
    node: str
    node_name: str
    node_state: NodeState
    node_since_s: float
    cluster: str
    cluster_name: str
    region: str
    since_s: int  # when its cluster was added
    shares: bool  # its cluster's owner lets two tenants share one GPU of isolation soft or none
    sellable: SellableProfiles
    closed: bool = False  # its node takes no pods, or pods outside the broker hold all of it
    cutting: str = ""  # step of the repartition while its node is closed for one
    unreadable: str = ""  # why its rows cannot be right; nothing new is placed on it then
    state: GpuState = field(default_factory=GpuState)
    slices: list[LeasedSlice] = field(default_factory=list)

    @property
    def health_since(self) -> datetime:
        return datetime.fromtimestamp(self.health_since_s, UTC)

    @property
    def node_since(self) -> datetime:
        return datetime.fromtimestamp(self.node_since_s, UTC)

    @property
    def location(self) -> str:
        return f"{self.cluster_name} / {self.node_name} / {self.name}"

    @property
    def name(self) -> str:
        return device_name(self.model, self.index)

    @property
    def is_gpu(self) -> bool:
        """Return whether it is a GPU, not a block of CPUs."""
        return self.model != CPU_MODEL_NAME

    @property
    def idle_use(self) -> UnitUse | None:
        """Return the use of free units when the GPU cannot be sold; else None."""
        if self.unreadable or self.cutting == RepartitionStep.QUARANTINED:
            return UnitUse.UNHEALTHY
        out_of_sale = self.cutting or self.closed
        return use_when_free(self.health, self.node_state) or (UnitUse.MAINTENANCE if out_of_sale else None)

    @cached_property
    def use_layout(self) -> GpuUseLayout:
        """Return the layout of its units; many GPUs share one."""
        return use_layout_of(
            self.sellable, self.state, self.idle_use, tuple((s.start, s.size, s.use) for s in self.slices)
        )

    @cached_property
    def unit_runs(self) -> tuple[UnitRun, ...]:
        """Return the GPU's runs from its first unit to its last."""
        return tuple(
            UnitRun(start, size, use, None if which is None else self.slices[which])
            for start, size, use, which in self.use_layout.runs
        )

    def units(self, *uses: UnitUse) -> int:
        return sum(self.use_layout.units.get(use, 0) for use in uses)


# A thousand GPUs have few layouts; each is computed once.
@lru_cache(maxsize=16384)
def use_layout_of(
    sellable: SellableProfiles, state: GpuState, idle: UnitUse | None, held: tuple[tuple[int, int, UnitUse], ...]
) -> GpuUseLayout:
    """Return the layout of a GPU; adjacent free units of one use form one run."""
    runs: list[tuple[int, int, UnitUse, int | None]] = [(*each, which) for which, each in enumerate(held)]
    lost = sellable.unsellable_units(state)
    for unit in range(sellable.grid):
        if state.mask >> unit & 1:
            continue
        use = idle or (UnitUse.FRAGMENTED if lost >> unit & 1 else UnitUse.FREE)
        start, size, before, which = runs[-1] if runs else (0, 0, None, None)
        if which is None and (start + size, before) == (unit, use):
            runs[-1] = (start, size + 1, use, None)
        else:
            runs.append((unit, 1, use, None))
    units: Counter[UnitUse] = Counter()
    for _, size, use, _ in runs:
        units[use] += size
    return GpuUseLayout(tuple(sorted(runs, key=lambda run: run[0])), MappingProxyType(units))


def use_when_free(health: GpuHealth, node: NodeState) -> UnitUse | None:
    if health is GpuHealth.UNHEALTHY or node is NodeState.LOST:
        return UnitUse.UNHEALTHY
    return None if node is NodeState.READY else UnitUse.MAINTENANCE


# Filters of the fleet views.
FLEET_FILTERS: dict[str, Callable[[FleetGpu], bool]] = {
    "sold": lambda gpu: gpu.units(*CHARGED) > 0,
    "free": lambda gpu: gpu.units(UnitUse.FREE) > 0,
    "fragmented": lambda gpu: gpu.units(UnitUse.FRAGMENTED) > 0,
    "out": lambda gpu: gpu.idle_use is not None,
}
SCALE = 168_000  # thousandths of a GPU, exact for every GPU's grid (4, 7, 8 and 12 divide 168)


def scaled(units: int, grid: int) -> int:
    """Return units of a GPU in parts of SCALE, rounded down."""
    return units * SCALE // grid


def gpus_by_use(gpus: Iterable[FleetGpu]) -> dict[UnitUse, int]:
    """Return the use of the fleet's GPUs alone, in parts of SCALE of a GPU."""
    return devices_by_use(only_gpus(gpus))


def only_gpus(gpus: Iterable[FleetGpu]) -> list[FleetGpu]:
    """Return the GPUs among GPUs and CPU blocks."""
    return [gpu for gpu in gpus if gpu.is_gpu]


def counted_devices(gpus: Sequence[FleetGpu]) -> Sequence[FleetGpu]:
    """Return the GPUs, or the CPU blocks where there is no GPU; figures count these."""
    return only_gpus(gpus) or gpus


def devices_by_use(gpus: Iterable[FleetGpu]) -> dict[UnitUse, int]:
    """Return the use of GPUs or of CPU blocks in parts of SCALE of one."""
    units: Counter[tuple[UnitUse, int]] = Counter()
    for gpu in gpus:
        for use, count in gpu.use_layout.units.items():
            units[use, gpu.grid] += count
    total = dict.fromkeys(UnitUse, 0)
    for (use, grid), count in units.items():
        total[use] += scaled(count, grid)
    return total
