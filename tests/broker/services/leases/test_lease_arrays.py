"""Arrays of leases: all or none, each with its index."""

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, LeaseArray
from broker.services.leases import lease_arrays
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.provision_specs import load_provision_spec
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue, QuotaExceeded
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def request_array(sim: Simulation, owner: TenantContext, size: int, **wanted: object) -> LeaseArray:
    values = {"name": "sweep", "max_duration_s": 3600, "workload": "batch", "command": "train", **wanted}
    with tenant_scope(owner.tenant.pk):
        return lease_arrays.request_array(
            LeaseRequest(offering_id=offering().pk, **values),  # type: ignore[arg-type]
            size=size,
            project=owner.project,
            actor=owner.actor,
            now=sim.now,
        )


def test_an_array_queues_its_leases_with_their_index(sim: Simulation, kestrel: TenantContext) -> None:
    array = request_array(sim, kestrel, 3)
    sim.run(20)
    with tenant_scope(kestrel.tenant.pk):
        leases = list(Lease.objects.filter(array=array).select_related("offering", "array").order_by("array_index"))
        specs = [dict(load_provision_spec(lease).env) for lease in leases]
        assert lease_arrays.count_states([array]) == {array.pk: {"active": 3}}
    assert [lease.name for lease in leases] == ["sweep-0", "sweep-1", "sweep-2"]
    assert [env["GPUBROKER_ARRAY_INDEX"] for env in specs] == ["0", "1", "2"]
    assert {env["GPUBROKER_ARRAY_SIZE"] for env in specs} == {"3"}


def test_an_array_beyond_the_quota_creates_nothing(sim: Simulation) -> None:
    create_gpus(1)
    small = create_tenant("Small", units=2)
    with pytest.raises(QuotaExceeded) as refused:
        request_array(sim, small, 5)
    assert refused.value.detail.startswith("Lease 3 of 5 is refused, so none was created. The quota of")
    with tenant_scope(small.tenant.pk):
        assert not Lease.objects.exists()
        assert not LeaseArray.objects.exists()
    assert small.quota_used() == 0


def test_releasing_an_array_ends_all_its_leases(sim: Simulation, kestrel: TenantContext) -> None:
    array, other = request_array(sim, kestrel, 9), sim.request_lease(kestrel, offering())
    sim.run(20)
    with tenant_scope(kestrel.tenant.pk):
        assert lease_arrays.release_array(array, actor=kestrel.actor, now=sim.now) == 9
        assert lease_arrays.release_array(array, actor=kestrel.actor, now=sim.now) == 0
        assert AuditEvent.objects.filter(action="lease_array.release").count() == 2
    sim.run(20)
    with tenant_scope(kestrel.tenant.pk):
        assert lease_arrays.count_states([array]) == {array.pk: {"released": 9}}
        assert Lease.objects.get(pk=other.pk).state != LeaseState.RELEASED


@pytest.mark.parametrize(
    ("size", "wanted", "field"),
    [
        (0, {}, "array_size"),
        (1001, {}, "array_size"),
        (100, {"name": "x" * 119}, "name"),
        (2, {"volume": "vol_1"}, "volume"),
        (2, {"quote": "abc"}, "quote"),
    ],
)
def test_an_impossible_array_is_refused(
    sim: Simulation, kestrel: TenantContext, size: int, wanted: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        request_array(sim, kestrel, size, **wanted)
    assert refused.value.field == field


def test_an_array_of_which_nothing_fits_keeps_the_plain_reason(sim: Simulation) -> None:
    create_gpus(1)
    none = create_tenant("None", units=0)
    with pytest.raises(QuotaExceeded) as refused:
        request_array(sim, none, 5)
    assert refused.value.detail.startswith("The quota of this project")
