"""Drawing of the GPUs a lease is placed on: own slices, anonymous neighbours, free slices."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.utils.translation import gettext as _

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME, VCPUS_PER_UNIT, units_in_block
from broker.models import Allocation, Lease
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from broker.services.placement.available_capacity import FoundSlots, PlacementGpu
from web.ui.formatting import short_profile

MAX_GPUS = 4
Span = tuple[int, int, str, str]  # start, size, kind, word
OCCUPIED_SLICES_SQL = "SELECT gpu_id, start, size, profile, mine FROM broker_occupied WHERE gpu_id = ANY(%s)"


@dataclass(frozen=True)
class LeaseGpuDrawing:
    """One GPU as a row of slices."""

    where: str
    cells: int
    spans: tuple[Span, ...]
    alt_text: str
    cells_text: str  # 8 memory slices, 4 equal parts, 8 units of 2 vCPUs

    @property
    def shared(self) -> bool:
        """Return whether another lease is on the GPU."""
        return any(kind == "other-slice" for _, _, kind, _ in self.spans)


def lease_drawings(lease: Lease) -> tuple[list[LeaseGpuDrawing], int]:
    """Draw some GPUs of the lease's current generation, and count the rest; two queries."""
    rows = Allocation.objects.filter(lease=lease, generation=lease.generation, is_relocation=False)
    allocations = list(rows.select_related("gpu__node__cluster").order_by("gpu_id", "placement"))
    by_gpu: defaultdict[str, list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        by_gpu[allocation.gpu_id].append(allocation)
    shown = dict(list(by_gpu.items())[:MAX_GPUS])
    taken = _occupied_slices(shown)
    return [_lease_drawing(own, taken[gpu]) for gpu, own in shown.items()], len(by_gpu) - len(shown)


def _occupied_slices(gpus: Iterable[str]) -> defaultdict[str, list[tuple[int, int, str, bool]]]:
    found: defaultdict[str, list[tuple[int, int, str, bool]]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(OCCUPIED_SLICES_SQL, [list(gpus)])
        for gpu, start, size, profile, mine in cursor.fetchall():
            found[gpu].append((start, size, profile, mine))
    return found


def _lease_drawing(own: list[Allocation], taken: list[tuple[int, int, str, bool]]) -> LeaseGpuDrawing:
    gpu = own[0].gpu
    starts = {allocation.placement.lower for allocation in own if allocation.released_at is None}
    spans = [
        (start, size, _slice_kind(start in starts, mine), short_profile(profile) if mine else "")
        for start, size, profile, mine in taken
    ]
    where = f"{gpu.node.cluster.name} / {gpu.node.name} / {gpu}"
    grid = gpu_model_spec(gpu.gpu_model_id).grid if gpu.has_gpu else units_in_block(gpu.published)
    return complete_drawing(where, gpu.gpu_model_id, grid, spans)


def _slice_kind(own: bool, mine: bool) -> str:
    if own:
        return "own-slice"
    return "fill-sold" if mine else "other-slice"


def preview_drawings(free_slots: FoundSlots, *, profile: str) -> list[LeaseGpuDrawing]:
    """Draw the GPUs a request would be placed on now."""
    found = []
    for gpu_id, gpu in list(free_slots.gpus.items())[:MAX_GPUS]:
        mine = [slot.placement for slot in free_slots.slots if slot.gpu == gpu_id]
        spans = [
            (p.start, p.size, "fill-sold" if own else "other-slice", short_profile(name)) for name, p, own in gpu.held
        ]
        spans += [(p.start, p.size, "own-slice", _own_label(p.size, profile)) for p in mine]
        found.append(complete_drawing(gpu.location, gpu.model, gpu_grid(gpu), spans))
    return found


def _own_label(size: int, profile: str) -> str:
    """Return the label of a slice of one's own; shorter on a single memory slice."""
    return _("yours · {profile}").format(profile=short_profile(profile)) if size > 1 else "yours"


def gpu_grid(gpu: PlacementGpu) -> int:
    if gpu.model == CPU_MODEL_NAME:
        return units_in_block(gpu.publishes.starts() if gpu.publishes else None)
    return gpu_model_spec(gpu.model).grid


def complete_drawing(where: str, model: str, grid: int, spans: list[Span]) -> LeaseGpuDrawing:
    """Return the drawing with its free slices and its text description."""
    covered = {cell for start, size, _, _ in spans for cell in range(start, start + size)}
    free: list[Span] = [(cell, 1, "free-slice", "") for cell in range(grid) if cell not in covered]
    own = [f"{s} to {s + n - 1}" if n > 1 else str(s) for s, n, kind, _ in sorted(spans) if kind == "own-slice"]
    others = sum(size for _, size, kind, _ in spans if kind != "own-slice")
    cells = _describe_cells(model, grid)
    words = _("{where}: yours {own} of {cells}; {others} others, {free} free").format(
        where=where, own=", ".join(own) or "none", cells=cells, others=others, free=len(free)
    )
    return LeaseGpuDrawing(where, grid, tuple(sorted(spans + free)), words, cells)


def _describe_cells(model: str, grid: int) -> str:
    """Return in words what a GPU or CPU block is divided into."""
    spec = gpu_model_spec(model)
    if not spec.has_gpu:
        return _("{grid} units of {vcpus} vCPUs").format(grid=grid, vcpus=VCPUS_PER_UNIT)
    if not spec.has_mig_placements:
        return _("{grid} equal parts").format(grid=grid)
    return _("{grid} memory slices").format(grid=grid)
