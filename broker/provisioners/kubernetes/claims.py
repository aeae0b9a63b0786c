"""What leases were given that ask for devices by claims: held against what they were placed on, and missed if taken."""

from collections.abc import Sequence

from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.dra import astray
from broker.provisioners.kubernetes.kinds import RESOURCE_CLAIM, RESOURCE_SLICE, Ref
from broker.provisioners.kubernetes.objects import Claim, ResourceSlice, read
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.spec import LeaseSpec
from broker.provisioners.kubernetes.transport import Api


def claims_of(api: Api, lease: LeaseSpec) -> list[Claim | None]:
    """Read the claims of a lease's ranks; None for one that is not there, or that is a stranger's."""
    return [_claim(api, lease, rank) for rank in range(len(lease.nodes))]


def wrong(api: Api, lease: LeaseSpec, claims: Sequence[Claim | None], *, runs: bool) -> str:
    """Say what is wrong with a lease's claims; empty when it holds what it was placed on, or may yet be given it."""
    if runs and None in claims:
        return "its claim is gone, and with it its devices"
    there = [(rank, claim) for rank, claim in enumerate(claims) if claim]
    if runs and not all(claim.given for _, claim in there):
        return "its devices were taken away from its claim"
    for rank, claim in there:
        for pool in sorted({each.pool for each in claim.given}):
            items, _ = api.list_all(RESOURCE_SLICE, fields=f"spec.nodeName={pool}")
            if device := astray(lease, rank, claim, [read(each, ResourceSlice) for each in items]):
                return f"its claim was given {device}, where it was not placed"
    return ""


def _claim(api: Api, lease: LeaseSpec, rank: int) -> Claim | None:
    name = names.claim(lease.lease_id, lease.generation, rank)
    body = api.get(Ref(RESOURCE_CLAIM, name, namespace_of(lease)))
    claim = read(body, Claim) if body else None
    return claim if claim and labels.fit(claim.metadata.labels, labels.of_lease(lease)) else None
