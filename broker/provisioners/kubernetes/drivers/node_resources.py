"""What a node has for leases: its allocatable amounts minus what its daemon sets use."""

from collections.abc import Mapping
from fractions import Fraction

from broker.domain.geometry.host_resources import HostResources
from broker.provisioners.kubernetes.client.objects import ClusterNode
from broker.provisioners.kubernetes.client.quantities import ZERO, parse_quantity
from broker.provisioners.kubernetes.drivers.discovered_inventory import NO_FOREIGN_USAGE, ForeignNodeUsage

# Kept at least: a daemon set that is added later must not close nodes that are sold. Images and logs fill the disk,
# from which scratch storage is taken.
MARGIN_OF_CPU, LEAST_MARGIN_CPU_MILLI = Fraction(5, 100), 500
MARGIN_OF_MEMORY, LEAST_MARGIN_MEMORY_MIB = Fraction(5, 100), 1024
MARGIN_OF_SCRATCH, LEAST_MARGIN_SCRATCH_MIB = Fraction(10, 100), 2048
AMOUNTS = CPU, MEMORY, SCRATCH = "cpu", "memory", "ephemeral-storage"
MEBIBYTE = 2**20


def node_resources(node: ClusterNode, usage: ForeignNodeUsage = NO_FOREIGN_USAGE) -> HostResources:
    """Return what a node has for leases; zero: it does not report it.

    A margin is kept where they request less. Other pods come and go, and do not count.
    """
    return _resources_beside(node, usage.daemon_sets)


def resources_left(node: ClusterNode, usage: ForeignNodeUsage) -> HostResources:
    """Return what all pods of others leave for leases at present.

    Small ones, such as a cluster's DNS, fit within the margin.
    """
    names = {*usage.daemon_sets, *usage.ordinary}
    return _resources_beside(
        node, {name: usage.daemon_sets.get(name, ZERO) + usage.ordinary.get(name, ZERO) for name in names}
    )


def _resources_beside(node: ClusterNode, used: Mapping[str, Fraction]) -> HostResources:
    def left(name: str, unit: Fraction, margin: Fraction, least_margin: int) -> int:
        amount = _amount(node.status.allocatable, name) * unit
        kept = max(amount * margin, Fraction(least_margin), used.get(name, ZERO) * unit)
        return max(int(amount - kept), 1) if amount > 0 else 0  # at least one, since zero means unknown

    return HostResources(
        cpu_milli=left(CPU, Fraction(1000), MARGIN_OF_CPU, LEAST_MARGIN_CPU_MILLI),
        memory_mib=left(MEMORY, Fraction(1, MEBIBYTE), MARGIN_OF_MEMORY, LEAST_MARGIN_MEMORY_MIB),
        scratch_mib=left(SCRATCH, Fraction(1, MEBIBYTE), MARGIN_OF_SCRATCH, LEAST_MARGIN_SCRATCH_MIB),
    )


def _amount(allocatable: Mapping[str, str], name: str) -> Fraction:
    return parse_quantity(allocatable.get(name, ""))
