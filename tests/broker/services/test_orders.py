"""What a provisioner is told of a lease."""

import pytest

from broker.domain.states import LeaseState
from broker.models import Gpu, LayoutPolicy, Lease
from broker.provisioners.kubernetes.specs import lease_spec
from broker.services.leases.orders import order_of
from tenants.services.walls import as_tenant
from tests.world import Life, cards, home, soft_offering


@pytest.mark.parametrize("name", ["", "nvidia.com/gpu"])
def test_an_order_tells_by_which_name_its_node_gives_its_slices(life: Life, name: str) -> None:
    cards(1)
    own = {"asks": name} if name else {}
    quarters = [
        {"profile": "quarter", "start": start, "size": 2, "isolation": "soft", **own}
        for start in (0, 2, 4, 6)
    ]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=quarters)
    lease = life.lease(home(), soft_offering(), LeaseState.PROVISIONING)
    with as_tenant(lease.tenant_id):
        spec = lease_spec(order_of(Lease.objects.select_related("offering", "volume").get(pk=lease.pk)))
    assert [place.asks for place in spec.slices] == [name]
