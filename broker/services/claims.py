"""Claims of leases in one cluster, as its agent sees them: whether each holds the devices that we sold.

Which device a claim is given is the scheduler's to say, among those that the claim names: another one, a claim that
somebody deleted and one whose devices he took away are news of their lease. What else happens to a claim is not: the
lease's pods tell of it.
"""

import msgspec
import structlog

from broker.models import ClusterObject, Lease
from broker.provisioners.base import order_parts
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.cluster import Way
from broker.provisioners.kubernetes.drivers.dra import astray
from broker.provisioners.kubernetes.kinds import RESOURCE_SLICE
from broker.provisioners.kubernetes.objects import Claim, Given, ResourceSlice
from broker.provisioners.kubernetes.specs import lease_spec
from broker.services.leases.orders import order_of
from tenants.services.walls import as_sweep

log = structlog.get_logger(__name__)


class Claims:
    """What one agent knows of the claims in its cluster."""

    def __init__(self, cluster_id: str, way: Way) -> None:
        self._cluster, self._way = cluster_id, way
        self._given: dict[
            str, tuple[list[Given], str]
        ] = {}  # by uid: what it holds, and what of it is not its own

    def see(self, claim: Claim, order: str, *, how: str) -> bool:
        """Take in a claim of an order, and mark what it was given that was not sold; tell whether that is news.

        What a list shows of thousands is taken as it is: its row keeps what was found of it before.
        """
        before, strange = self._given.pop(claim.metadata.uid, ([], ""))
        if how == "DELETED":
            return True
        if claim.given != before and how != "PAGED":
            strange = self._strange(claim, order) if claim.given else ""
        claim.strange = strange
        self._given[claim.metadata.uid] = claim.given, strange
        return bool(before and claim.given != before) or bool(strange and not before)

    def _strange(self, claim: Claim, order: str) -> str:
        lease_id, generation = order_parts(order)
        with as_sweep():
            lease = Lease.objects.select_related("offering").filter(pk=lease_id).first()
            asked = order_of(lease, generation=generation) if lease else None
        if asked is None or not asked.slices:
            return ""
        spec = lease_spec(asked, self._way.installation)
        ranks = [names.claim(spec.lease_id, spec.generation, rank) for rank in range(len(spec.nodes))]
        if claim.metadata.name not in ranks:
            return ""
        strange = astray(
            spec, ranks.index(claim.metadata.name), claim, self._slices({each.pool for each in claim.given})
        )
        if strange:
            log.error("a claim was given what was not sold", lease=lease_id, device=strange)
        return strange

    def _slices(self, nodes: set[str]) -> list[ResourceSlice]:
        rows = ClusterObject.objects.filter(
            cluster=self._cluster, kind=RESOURCE_SLICE.name, body__spec__nodeName__in=sorted(nodes)
        )
        return [msgspec.convert(body, ResourceSlice) for body in rows.values_list("body", flat=True)]
