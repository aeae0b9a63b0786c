"""Samples of simulated clusters: what their GPUs would have reported."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.domain.telemetry.simulated_load import GpuLoad, SliceLoad, gpu_load, slice_load
from broker.models import Allocation, Gpu, Node, NodeState, SampleBatch
from broker.services.telemetry.sample_storage import Batch, SlotSamples, store_batch
from tenants.services.rls import system_scope

STEP = timedelta(seconds=10)
BOOT = "simulated"
MOST_BEHIND = timedelta(minutes=10)  # after a pause only so much is made up for; the rest stays a gap
SIMULATED = "simulated"
MIB_PER_GB = 1024


@dataclass(frozen=True, slots=True)
class _Use:
    """A lease's slice on a GPU, and since when its program runs."""

    seed: str
    kind: str
    since: datetime
    placement: tuple[int, int]
    is_isolated: bool


def sample_simulated_gpus(*, now: datetime) -> int:
    """Store what every simulated GPU did since its node's last batch; return how many samples."""
    until = _last_step(now)
    nodes = list(Node.objects.filter(cluster__provisioner=SIMULATED).exclude(state=NodeState.LOST).order_by("id"))
    latest = _latest_samples([node.pk for node in nodes])
    gpus, uses = _gpus_by_node(nodes), _uses_by_gpu(nodes)
    stored = 0
    for node in nodes:
        since = max(latest.get(node.pk, until - STEP), until - MOST_BEHIND)
        times = _times(since, until)
        if not times or not gpus[node.pk]:
            continue
        slots = [each for gpu in gpus[node.pk] for each in _slots(gpu, uses[gpu.pk], times)]
        stored += store_batch(Batch(node.pk, BOOT, int(times[-1].timestamp()), slots), now=now)
    return stored


def _last_step(now: datetime) -> datetime:
    return now.replace(second=now.second // 10 * 10, microsecond=0)


def _times(since: datetime, until: datetime) -> list[datetime]:
    return [since + STEP * (each + 1) for each in range(max(0, (until - since) // STEP))]


def _latest_samples(nodes: Sequence[str]) -> dict[str, datetime]:
    """Return the time of each node's last sample."""
    batches = SampleBatch.objects.filter(node__in=nodes, boot_id=BOOT).order_by("node", "-seq").distinct("node")
    return dict(batches.values_list("node_id", "last_at"))


def _gpus_by_node(nodes: Sequence[Node]) -> dict[str, list[Gpu]]:
    found: defaultdict[str, list[Gpu]] = defaultdict(list)
    listed = Gpu.objects.without_cpu_blocks().filter(node__in=nodes, lost_since=None).select_related("gpu_model")
    for gpu in listed.order_by("node", "index"):
        found[gpu.node_id].append(gpu)
    return found


def _uses_by_gpu(nodes: Sequence[Node]) -> dict[str, list[_Use]]:
    found: defaultdict[str, list[_Use]] = defaultdict(list)
    with system_scope():
        held = Allocation.objects.filter(
            gpu__node__in=nodes, released_at=None, is_relocation=False, lease__state=LeaseState.ACTIVE
        ).values_list("gpu", "lease", "lease__workload", "lease__image", "lease__active_at", "placement", "isolation")
        for gpu, lease, workload, image, since, placement, isolation in held:
            if since is None:
                continue
            kind = workload or ("vllm" if "vllm" in image else "batch")
            span = (placement.lower, placement.upper)
            found[gpu].append(
                _Use(f"{lease} {gpu} {placement.lower}", kind, since, span, isolation == Isolation.HARDWARE)
            )
    return found


def _slots(gpu: Gpu, uses: Sequence[_Use], times: Sequence[datetime]) -> list[SlotSamples]:
    """Return the samples of a GPU and of its MIG devices."""
    grid = gpu.gpu_model.memory_grid or 1
    loads = {use: [_load(use, at) for at in times] for use in uses}
    activity = [
        sum((each.engine_active if (each := load[at]) else 0) * _share(use, grid) for use, load in loads.items()) / 1000
        for at in range(len(times))
    ]
    whole = [gpu_load(gpu.uuid, gpu.gpu_model_id, busy, at=at) for busy, at in zip(activity, times, strict=True)]
    found = [_slice_samples(gpu, use, load, times, grid) for use, load in loads.items() if use.is_isolated]
    full = next((each for each in found if each.placement == (0, grid)), None)
    if full is None:
        used = [sum(_memory(gpu, use, load[at], grid) for use, load in loads.items()) for at in range(len(times))]
        full = SlotSamples(
            gpu.pk,
            (0, grid),
            times,
            {"engine_active": [round(each * 1000) for each in activity], "memory_used_mib": used},
        )
        found.append(full)
    found[found.index(full)] = SlotSamples(full.gpu_id, full.placement, times, {**full.columns, **_gpu_columns(whole)})
    return found


def _load(use: _Use, at: datetime) -> SliceLoad | None:
    running_s = (at - use.since).total_seconds()
    return slice_load(use.seed, use.kind, running_s=running_s, at=at) if running_s > 0 else None


def _share(use: _Use, grid: int) -> float:
    return (use.placement[1] - use.placement[0]) / grid


def _memory(gpu: Gpu, use: _Use, load: SliceLoad | None, grid: int) -> int:
    return round(gpu.gpu_model.memory_gb * MIB_PER_GB * _share(use, grid) * load.memory_share) if load else 0


def _slice_samples(
    gpu: Gpu, use: _Use, load: Sequence[SliceLoad | None], times: Sequence[datetime], grid: int
) -> SlotSamples:
    return SlotSamples(
        gpu.pk,
        use.placement,
        times,
        {
            "engine_active": [each.engine_active if each else None for each in load],
            "sm_active": [each.sm_active if each else None for each in load],
            "tensor_active": [each.tensor_active if each else None for each in load],
            "dram_active": [each.dram_active if each else None for each in load],
            "memory_used_mib": [_memory(gpu, use, each, grid) if each else None for each in load],
        },
    )


def _gpu_columns(loads: Sequence[GpuLoad]) -> dict[str, list[int | None]]:
    seconds = STEP.total_seconds()
    return {
        "power_dw": [each.power_dw for each in loads],
        "temperature_c": [each.temperature_c for each in loads],
        "sm_clock_mhz": [each.sm_clock_mhz for each in loads],
        "throttle_reasons": [each.throttle_reasons for each in loads],
        "energy_mj": [round(each.power_dw * 100 * seconds) for each in loads],  # tenths of a watt to milliwatts
    }
