"""The provision spec of a lease."""

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, LayoutPolicy, Lease
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, soft_offering


@pytest.mark.parametrize("name", ["", "nvidia.com/gpu"])
def test_a_provision_spec_has_the_resource_name_of_its_slices(sim: Simulation, name: str) -> None:
    create_gpus(1)
    own = {"resource_name": name} if name else {}
    quarters = [{"profile": "quarter", "start": start, "size": 2, "isolation": "soft", **own} for start in (0, 2, 4, 6)]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=quarters)
    lease = sim.create_lease(create_tenant(), soft_offering(), LeaseState.PROVISIONING)
    with tenant_scope(lease.tenant_id):
        spec = lease_spec(load_provision_spec(Lease.objects.select_related("offering", "volume").get(pk=lease.pk)))
    assert [place.resource_name for place in spec.slices] == [name]
