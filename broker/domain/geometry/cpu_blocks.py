"""CPUs of nodes without GPUs, sold in sizes of 2 to 16 vCPUs.

A node's CPUs are divided into blocks of eight units of two vCPUs each. A block is placed, held and charged like a
GPU with slices, so that leases without a GPU have the same life as leases with one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.host_resources import HostResources
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.geometry.published_profiles import PublishedProfiles, published_profiles
from broker.domain.lifecycle.states import Isolation

CPU_MODEL_NAME = "CPU"
VCPUS_PER_UNIT, UNITS_PER_BLOCK = 2, 8
VCPU_SUFFIX = "vcpu"  # of the names of profiles
SIZES_IN_UNITS = (1, 2, 4, 8)
CPU_MILLI_PER_UNIT = VCPUS_PER_UNIT * 1000
# What a block brings where its node does not report memory or scratch: 4 GiB a vCPU.
DEFAULT_OF_A_BLOCK = HostResources(CPU_MILLI_PER_UNIT * UNITS_PER_BLOCK, 65_536, 102_400)


def _profile(units: int) -> Profile:
    starts = range(0, UNITS_PER_BLOCK, units)
    return Profile(
        name=f"{units * VCPUS_PER_UNIT}{VCPU_SUFFIX}",
        compute=units,
        memory=units,
        placements=tuple(Placement(start, units) for start in starts),
        max_instances=UNITS_PER_BLOCK // units,
        media=False,
        isolation=Isolation.HARDWARE,
    )


CPU_PROFILES = tuple(_profile(units) for units in SIZES_IN_UNITS)
CPU_MODEL = GpuModelSpec(
    name=CPU_MODEL_NAME,
    aliases=(),
    pci_ids=(),
    memory_gb=0,
    grid=UNITS_PER_BLOCK,
    compute=UNITS_PER_BLOCK,
    profiles=CPU_PROFILES,
    verified=True,
    label="CPU",
    has_gpu=False,
)


def device_name(model: str, index: int) -> str:
    """Return the name of a device of a node: GPU 0, CPU block 0."""
    return f"{'CPU block' if model == CPU_MODEL_NAME else 'GPU'} {index}"


def units_of_node(resources: HostResources) -> int:
    """Return how many units the CPUs of a node make; the rest stays unused."""
    return resources.cpu_milli // CPU_MILLI_PER_UNIT


def blocks_of_node(resources: HostResources) -> tuple[int, ...]:
    """Return the units of each block of a node; only the last may be smaller."""
    full, rest = divmod(units_of_node(resources), UNITS_PER_BLOCK)
    return (UNITS_PER_BLOCK,) * full + ((rest,) if rest else ())


def profiles_in_block(units: int) -> PublishedProfiles | None:
    """Return the profiles that fit a block of so many units; None: all of them."""
    if units == UNITS_PER_BLOCK:
        return None
    fitting = {
        profile.name: [place.start for place in profile.placements if place.end <= units] for profile in CPU_PROFILES
    }
    return published_profiles({name: starts for name, starts in fitting.items() if starts})


def units_in_block(starts: Mapping[str, Iterable[int]] | None) -> int:
    """Return the units of a block that publishes these profiles."""
    return UNITS_PER_BLOCK if starts is None else len(list(starts.get(CPU_PROFILES[0].name, ())))


def share_of_units(resources: HostResources, units: int, node_units: int) -> HostResources:
    """Return what some units of a node bring: two vCPUs each, and their share."""
    share = resources.share(units, node_units)
    return replace(share, cpu_milli=min(share.cpu_milli, units * CPU_MILLI_PER_UNIT))
