"""Concurrent requests of several tenants for shared GPUs."""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from broker.models import Allocation, Cluster, Lease
from broker.services.queue import lease_placement
from ports import clock, outbox
from tenants.services.rls import system_scope, tenant_scope
from tests.broker.services.queue.test_placement_races import Crowd, finish, request_one
from tests.database import OwnDatabase
from tests.simulation import NOW, TenantContext, create_gpus, create_tenant, reload_lease, soft_offering

PARALLEL, TIMES = 8, 5


@pytest.fixture
def crowd_of_eight(own_database: OwnDatabase) -> Iterator[Crowd]:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        crowd = Crowd(PARALLEL)
        yield crowd
        crowd.close()


def request_and_place(owner: TenantContext, offering_id: str, number: int) -> Lease:
    lease = request_one(owner, offering_id, number)
    with tenant_scope(owner.tenant.pk):
        lease_placement.place_lease(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
    return lease


def request_at_once(crowd: Crowd, tenants: list[TenantContext], offering_id: str) -> list[Lease]:
    """Let tenants request shares at once; the unplaced try again."""
    leases = crowd.all_at_once(lambda n: request_and_place(tenants[n % len(tenants)], offering_id, n))
    for lease in leases:
        with tenant_scope(lease.tenant_id):
            if (again := reload_lease(lease)).state == "queued":
                lease_placement.place_lease(again, now=NOW)
    return [reload_lease(lease) for lease in leases]


def tenants_by_gpu() -> dict[str, set[str]]:
    found = defaultdict(set)
    with system_scope():
        for gpu, tenant in Allocation.objects.filter(released_at=None).values_list("gpu_id", "tenant_id"):
            found[gpu].add(tenant)
    return dict(found)


@pytest.mark.deep
def test_concurrent_requests_of_several_tenants_never_share_a_gpu(crowd_of_eight: Crowd) -> None:
    create_gpus(3)
    tenants, quarter = [create_tenant(f"Tenant {n}") for n in range(4)], soft_offering().pk
    for _ in range(TIMES):
        leases = request_at_once(crowd_of_eight, tenants, quarter)
        on = tenants_by_gpu()
        assert len(on) == 3
        assert all(len(theirs) == 1 for theirs in on.values())
        # Tenants that hold a GPU have both their leases on it; the others wait.
        assert [lease.state == "provisioning" for lease in leases] == [
            lease.tenant_id in set.union(*on.values()) for lease in leases
        ]
        for lease in leases:
            finish(lease.pk, lease.tenant_id)


@pytest.mark.deep
def test_eight_concurrent_quarters_are_all_placed_where_sharing_is_allowed(crowd_of_eight: Crowd) -> None:
    create_gpus(3)
    Cluster.objects.update(allow_shared_gpus=True)
    tenants, quarter = [create_tenant(f"Tenant {n}") for n in range(4)], soft_offering().pk
    for _ in range(TIMES):
        leases = request_at_once(crowd_of_eight, tenants, quarter)
        assert {lease.state for lease in leases} == {"provisioning"}
        with system_scope():
            held = Allocation.objects.filter(released_at=None)
            places = {(place.gpu_id, place.placement.lower) for place in held}
        assert len(places) == PARALLEL
        for lease in leases:
            finish(lease.pk, lease.tenant_id)
