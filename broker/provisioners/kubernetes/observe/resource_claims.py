"""Compare the devices allocated to a lease's ResourceClaims with its placement.

Also report devices that were taken away.
"""

from collections.abc import Iterable, Mapping

from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.client.kinds import RESOURCE_CLAIM, RESOURCE_SLICE, ObjectRef
from broker.provisioners.kubernetes.client.objects import ResourceClaim, ResourceSlice, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.drivers.dra import misallocated_device
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.render.spec import LeaseSpec

ClaimByRank = Mapping[int, ResourceClaim | None]


def read_claims(api: KubernetesApi, lease: LeaseSpec, ranks: Iterable[int]) -> ClaimByRank:
    """Read the ResourceClaims of these ranks; None if missing or not ours."""
    return {rank: _read_claim(api, lease, rank) for rank in ranks}


def claims_fault(api: KubernetesApi, lease: LeaseSpec, claims: ClaimByRank, *, runs: bool) -> str:
    """Return what is wrong with a lease's claims; empty if nothing is.

    Nothing is wrong when it holds what it was placed on, or may still be given it.
    """
    if runs and None in claims.values():
        return "its resource claim was deleted, and with it its devices"
    there = [(rank, claim) for rank, claim in claims.items() if claim]
    if runs and not all(claim.devices for _, claim in there):
        return "its devices were removed from its resource claim"
    for rank, claim in there:
        for pool in sorted({each.pool for each in claim.devices}):
            items, _ = api.list_all(RESOURCE_SLICE, fields=f"spec.nodeName={pool}")
            if device := misallocated_device(lease, rank, claim, [decode(each, ResourceSlice) for each in items]):
                return f"its resource claim got {device}, where it was not placed"
    return ""


def _read_claim(api: KubernetesApi, lease: LeaseSpec, rank: int) -> ResourceClaim | None:
    name = names.resource_claim_name(lease.lease_id, lease.generation, rank)
    body = api.get(ObjectRef(RESOURCE_CLAIM, name, namespace_of(lease)))
    claim = decode(body, ResourceClaim) if body else None
    return claim if claim and labels.labels_match(claim.metadata.labels, labels.lease_labels(lease)) else None
