"""Detection of ResourceClaims whose allocated devices differ from what was sold.

The scheduler chooses the device among those that a claim names. A different device, a deleted claim, or
one whose devices were taken away is reported to its lease. Other changes of a claim are not: the lease's
pods show them. Placements on the nodes of new devices follow what was chosen.
"""

from datetime import datetime

import msgspec
import structlog

from broker.models import ClusterObject, Lease
from broker.provisioners.base import parse_spec_name
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.client.kinds import RESOURCE_SLICE
from broker.provisioners.kubernetes.client.objects import AllocatedDevice, ResourceClaim, ResourceSlice
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.drivers.dra import misallocated_device
from broker.provisioners.kubernetes.drivers.dra_devices import DRA_DRIVER_NAME
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.services.clusters.observed import claimed_placements
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.rls import system_scope

log = structlog.get_logger(__name__)
NODES_PER_TURN = 8  # a restarted agent reads the claims of all nodes, and must not be silent meanwhile


class ObservedClaims:
    """The ResourceClaims of one cluster, as its agent knows them."""

    def __init__(self, cluster_id: str, connection: ClusterConnection) -> None:
        self._cluster, self._connection = cluster_id, connection
        self._given: dict[
            str, tuple[list[AllocatedDevice], str]
        ] = {}  # uid -> (allocated devices, the unexpected one or "")
        self._unsettled = set[str]()  # nodes whose placements may differ from the devices of claims
        self._later = set[str]()  # those that could not be settled yet

    def see(self, claim: ResourceClaim, name: str, *, how: str) -> bool:
        """Record a claim, mark unexpected devices, and return whether its lease must know.

        Claims from a paged list are taken as they are: their rows keep what was found before.
        """
        before, unexpected_device = self._given.pop(claim.metadata.uid, ([], ""))
        if how == "DELETED":
            return True
        if claim.devices != before:
            self._unsettled |= {each.pool for each in claim.devices if each.driver == DRA_DRIVER_NAME}
        if claim.devices != before and how != "PAGED":
            unexpected_device = self._unexpected_device(claim, name) if claim.devices else ""
        claim.strange = unexpected_device
        self._given[claim.metadata.uid] = claim.devices, unexpected_device
        return bool(before and claim.devices != before) or bool(unexpected_device and not before)

    def settle_placements(self, *, now: datetime) -> None:
        """Let placements follow the stored claims, on a few nodes per turn."""
        for node in sorted(self._unsettled)[:NODES_PER_TURN]:
            self._unsettled.discard(node)
            if not claimed_placements.settle_node(self._cluster, node, now=now):
                self._later.add(node)

    def retry_later(self) -> None:
        """Try nodes again that could not be settled."""
        self._unsettled |= self._later
        self._later.clear()

    def _unexpected_device(self, claim: ResourceClaim, name: str) -> str:
        lease_id, generation = parse_spec_name(name)
        with system_scope():
            lease = Lease.objects.select_related("offering").filter(pk=lease_id).first()
            specified = load_provision_spec(lease, generation=generation) if lease else None
        if specified is None or not specified.slices:
            return ""
        spec = lease_spec(specified, self._connection.installation)
        ranks = [names.resource_claim_name(spec.lease_id, spec.generation, rank) for rank in range(len(spec.nodes))]
        if claim.metadata.name not in ranks:
            return ""
        unexpected_device = misallocated_device(
            spec, ranks.index(claim.metadata.name), claim, self._slices({each.pool for each in claim.devices})
        )
        if unexpected_device:
            log.error("resource claim got a device that was not sold", lease=lease_id, device=unexpected_device)
        return unexpected_device

    def _slices(self, nodes: set[str]) -> list[ResourceSlice]:
        rows = ClusterObject.objects.filter(
            cluster=self._cluster, kind=RESOURCE_SLICE.name, body__spec__nodeName__in=sorted(nodes)
        )
        return [msgspec.convert(body, ResourceSlice) for body in rows.values_list("body", flat=True)]
