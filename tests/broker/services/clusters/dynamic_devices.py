"""A GPU with dynamic MIG devices, and claims that its scheduler gave some of them."""

from typing import Any

from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, ClusterObject, Gpu, Lease
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes import names
from broker.services.clusters.observed import claimed_placements
from tenants.services.rls import system_scope, tenant_scope
from tests.controlplane import devices
from tests.simulation import Simulation, TenantContext, offering, reload_lease

PROFILES = {each.name: each for each in devices.H100_PROFILES}


class DynamicGpu:
    """The only GPU with dynamic devices, on its node."""

    def __init__(self, sim: Simulation, *, count: int = 1) -> None:
        self.sim, self.version = sim, 1
        self.gpus = list(Gpu.objects.select_related("node").order_by("index")[:count])
        self.gpu = self.gpus[0]
        self.node = self.gpu.node
        self.publish()

    def publish(self) -> None:
        found = [_devices_of(gpu) for gpu in self.gpus]
        pool = {"name": self.node.name, "generation": 1, "resourceSliceCount": len(found)}
        spec = {"driver": devices.DRIVER, "nodeName": self.node.name, "pool": pool}
        for number, its in enumerate(found):
            self._store("ResourceSlice", f"s-{number}", {"spec": {**spec, "devices": its}})

    def book(
        self,
        owner: TenantContext,
        start: int,
        profile: str = "1g.10gb",
        *,
        state: LeaseState = LeaseState.PROVISIONING,
        **wanted: Any,
    ) -> Lease:
        """Return a lease that is placed on the first GPU at a start."""
        lease = self.sim.create_lease(owner, offering(profile), state, **wanted)
        place = NumericRange(start, start + PROFILES[profile].memory, "[)")
        with tenant_scope(lease.tenant_id):
            held = Allocation.objects.filter(lease=lease, released_at=None)
            held.update(gpu=self.gpu, placement=place)
        return lease

    def give(self, lease: Lease, *starts: int, gpu: Gpu | None = None, profile: str = "") -> None:
        """Store the claim of a lease with devices at these starts; without any, it waits."""
        lease = reload_lease(lease)
        of, index = PROFILES[profile or lease.offering.profile], (gpu or self.gpu).index
        given = [devices.device_name(index, of, start) for start in starts]
        self.store_claim(lease, given)

    def store_claim(self, lease: Lease, given: list[str]) -> None:
        results = [{"driver": devices.DRIVER, "pool": self.node.name, "device": each} for each in given]
        status = {"allocation": {"devices": {"results": results}}} if given else {}
        name = names.resource_claim_name(lease.pk, lease.generation, 0)
        self._store("ResourceClaim", name, {"status": status}, spec=spec_name(lease.pk, lease.generation))

    def _store(self, kind: str, name: str, body: dict[str, Any], spec: str = "") -> None:
        self.version += 1
        ClusterObject.objects.update_or_create(
            cluster_id=self.node.cluster_id,
            kind=kind,
            namespace="gt-1" if spec else "",
            name=name,
            defaults={
                "uid": f"u-{name}",
                "version": self.version,
                "spec_name": spec,
                "body": {"metadata": {"name": name}, **body},
                "seen_at": self.sim.now,
            },
        )

    def settle(self) -> bool:
        return claimed_placements.settle_node(self.node.cluster_id, self.node.name, now=self.sim.now)

    def starts(self) -> dict[str, int]:
        """Return the start of each held allocation of the first GPU, by its lease."""
        with system_scope():
            held = Allocation.objects.filter(gpu=self.gpu, released_at=None)
            return {each.lease_id: each.placement.lower for each in held}


def _devices_of(gpu: Gpu) -> list[dict[str, Any]]:
    found = list(devices.cut("", gpu.index, devices.H100_PROFILES))
    for each in found:
        each["attributes"]["parentUUID"] = {"string": gpu.uuid}
    return found
