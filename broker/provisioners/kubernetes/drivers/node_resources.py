"""What a node has for leases: its allocatable amounts minus a margin for system pods."""

from collections.abc import Mapping
from fractions import Fraction

from broker.domain.geometry.host_resources import HostResources
from broker.provisioners.kubernetes.client.objects import ClusterNode
from broker.provisioners.kubernetes.client.quantities import parse_quantity

# Daemon sets, drivers and monitoring request CPU and memory of their own. Images and logs fill the disk, from which
# scratch storage is taken.
MARGIN_OF_CPU, LEAST_MARGIN_CPU_MILLI = Fraction(5, 100), 500
MARGIN_OF_MEMORY, LEAST_MARGIN_MEMORY_MIB = Fraction(5, 100), 1024
MARGIN_OF_SCRATCH, LEAST_MARGIN_SCRATCH_MIB = Fraction(10, 100), 2048
AMOUNTS = CPU, MEMORY, SCRATCH = "cpu", "memory", "ephemeral-storage"
MEBIBYTE = 2**20


def node_resources(node: ClusterNode) -> HostResources:
    """Return what a node has for leases; zero: it does not report it."""
    there = node.status.allocatable
    return HostResources(
        cpu_milli=_left(_amount(there, CPU) * 1000, MARGIN_OF_CPU, LEAST_MARGIN_CPU_MILLI),
        memory_mib=_left(_amount(there, MEMORY) / MEBIBYTE, MARGIN_OF_MEMORY, LEAST_MARGIN_MEMORY_MIB),
        scratch_mib=_left(_amount(there, SCRATCH) / MEBIBYTE, MARGIN_OF_SCRATCH, LEAST_MARGIN_SCRATCH_MIB),
    )


def _amount(allocatable: Mapping[str, str], name: str) -> Fraction:
    return parse_quantity(allocatable.get(name, ""))


def _left(amount: Fraction, margin: Fraction, least_margin: int) -> int:
    """Return what is left after the margin; at least one, since zero means unknown."""
    if amount <= 0:
        return 0
    return max(int(amount - max(amount * margin, Fraction(least_margin))), 1)
