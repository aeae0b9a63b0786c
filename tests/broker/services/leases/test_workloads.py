"""The workload of a lease, from the request to the provision spec."""

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.lease_requests import LeaseRequest, check_workload
from broker.services.leases.provision_specs import access_token, load_provision_spec
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.broker.domain.workloads.test_workloads import KEY
from tests.simulation import Simulation, TenantContext, create_fleet, create_tenant, offering


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_fleet()
    return create_tenant("Kestrel")


def test_a_workload_reaches_the_provisioner_unchanged(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(
        kestrel, offering(), workload="ssh", env={"B": "2", "A": "$1"}, ssh_keys=[KEY], image="acme/box:1"
    )
    with tenant_scope(kestrel.tenant.pk):
        order = load_provision_spec(Lease.objects.select_related("offering").get(pk=lease.pk))
    assert (order.workload, order.image) == ("ssh", "acme/box:1")
    assert order.env == (("A", "$1"), ("B", "2"))
    assert order.ssh_keys == (KEY,)
    assert order.access_token == access_token(lease.pk)
    assert lease.state == LeaseState.ACTIVE


def test_every_lease_has_its_own_access_token() -> None:
    assert access_token("lse_a") == access_token("lse_a") != access_token("lse_b")
    assert len(access_token("lse_a")) == 40


def test_an_invalid_workload_is_refused_with_all_its_faults(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue) as refused:
        sim.request_lease(
            kestrel,
            offering(),
            workload="vllm",
            image="169.254.169.254/x",
            env={"NVIDIA_VISIBLE_DEVICES": "all"},
        )
    reported = [each["field"] for each in refused.value.extra["errors"]]  # type: ignore[attr-defined]
    assert (refused.value.field, reported) == ("image", ["image", "env"])
    with tenant_scope(kestrel.tenant.pk):
        assert not Lease.objects.exists()


def test_an_ssh_workload_needs_a_public_key() -> None:
    with pytest.raises(InvalidValue, match="at least one public SSH key"):
        check_workload(LeaseRequest("off_1", "job", 3600, workload="ssh"))


def test_a_lease_without_a_workload_needs_no_ssh_key() -> None:
    check_workload(LeaseRequest("off_1", "job", 3600))


def test_an_invalid_ssh_key_is_refused_without_a_workload() -> None:
    with pytest.raises(InvalidValue, match="must start with"):
        check_workload(LeaseRequest("off_1", "job", 3600, ssh_keys=("nonsense",)))
