"""Links between the GPUs of a gang, over the API."""

from broker.models import Gpu, Lease
from tests.simulation import TenantContext, offering
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted


def test_a_lease_with_a_topology_is_placed_on_one_node(api: Api, kestrel: TenantContext) -> None:
    Gpu.objects.update(fabric="0")
    answer = api.post("leases", wanted(kestrel, offering=offering("whole-gpu").pk, quantity=2, topology="nvlink"))
    assert answer.status_code == 202, answer.body
    assert (answer.body["spec"]["topology"], answer.body["spec"]["same_node"]) == ("nvlink", True)
    plain = api.post("leases", wanted(kestrel, topology=""))
    assert plain.body["spec"]["topology"] == ""


def test_an_unavailable_topology_is_refused_with_the_largest_possible_quantity(
    api: Api, kestrel: TenantContext
) -> None:
    answer = api.post("leases", wanted(kestrel, offering=offering("whole-gpu").pk, quantity=2, topology="numa"))
    assert (answer.status_code, answer.body["code"], answer.body["most"]) == (422, "placement-impossible", 0)


def test_an_unknown_gpu_link_is_refused(api: Api, kestrel: TenantContext) -> None:
    for topology in ("bus", None, 1, ["numa"]):
        answer = api.post("leases", wanted(kestrel, quantity=2, topology=topology))
        assert answer.status_code in (400, 422), answer.body
    assert not Lease.objects.exists()
