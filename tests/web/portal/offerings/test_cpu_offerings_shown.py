"""Pages show CPU-only offerings and leases without claiming a GPU."""

import pytest

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.host_resources import HostResources
from broker.models import Gpu, Lease, NodeState, Offering
from broker.services.inventory import hardware
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.billing.histories import LONG_AGO, set_price
from tests.simulation import OPERATOR, create_cpu_nodes, offering
from tests.web.portal.signed_in_user import EURO, PortalSession, visible_text

pytestmark = pytest.mark.django_db
ODD_NODE = HostResources(22_000, 90_112, 112_640)  # a block of eight units and one of three
FOUR = "4 CPUs, 16 GiB memory, 20 GiB scratch"


def cpu_offering(profile: str = "4vcpu", price_class: str = "on_demand") -> Offering:
    return offering(profile, price_class=price_class, model=CPU_MODEL_NAME)


@pytest.fixture
def cpus(portal: PortalSession) -> PortalSession:
    """Add a CPU node, priced at five cents a vCPU and hour."""
    create_cpu_nodes(cpu_node=ODD_NODE)
    for each in Offering.objects.filter(gpu_model=CPU_MODEL_NAME):
        spot = 2 if each.price_class == "spot" else 1
        set_price(each, EURO * each.cpu_milli // 20_000 // spot, since=LONG_AGO)
    return portal


def lease_on(cpus: PortalSession, **wanted: object) -> Lease:
    return cpus.sim.create_lease(cpus.owner, cpu_offering(), **wanted)


def launch(cpus: PortalSession, **form: object) -> str:
    values = {"offering": cpu_offering().pk, "class": "on_demand", "name": "prepare", "count": "1", "lasts": "8 h",
              "runs": "jupyter", "key": "k1", **form}  # fmt: skip
    return visible_text(cpus.post("/launch/", **values))


def test_the_catalogue_lists_cpus_with_their_amounts_and_no_gpu(cpus: PortalSession) -> None:
    page = cpus.read("/catalogue/?model=CPU")
    assert f"4 vCPU CPU, no GPU {FOUR} no GPU container eu-north" in page
    assert "€0.20/h" in page


def test_the_catalogue_can_be_filtered_for_cpus(cpus: PortalSession) -> None:
    assert "H100 SXM" not in cpus.read("/catalogue/?model=CPU").partition("Free now")[2]
    assert "16 vCPU" not in cpus.read("/catalogue/?memory=16")
    assert "16 vCPU" not in cpus.read("/catalogue/?isolation=hardware")


@pytest.mark.parametrize("sort", ["price", "gb", "memory", "free"])
def test_the_catalogue_can_be_sorted_with_cpus_in_it(cpus: PortalSession, sort: str) -> None:
    assert "16 vCPU" in cpus.read(f"/catalogue/?sort={sort}")


def test_the_launch_page_offers_cpus_as_their_own_choice(cpus: PortalSession) -> None:
    page = cpus.read("/launch/")
    assert "H100 SXM 80GB CPU, no GPU All" in page
    assert "This offering has no GPU." not in page


def test_no_cpus_are_chosen_for_who_did_not_ask_for_them(cpus: PortalSession) -> None:
    Gpu.objects.without_cpu_blocks().update(health="unhealthy")
    assert "This offering has no GPU." not in cpus.read("/launch/")


def test_the_quote_of_cpus_shows_price_amounts_and_placement_without_a_gpu(cpus: PortalSession) -> None:
    cpus.owner.set_quota(QuotaKind.UNITS, 0)
    page = cpus.read(f"/launch/?offering={cpu_offering().pk}&lasts=8+h")
    assert "This offering has no GPU." in page
    assert "€0.20/h CPU 4 vCPU · on-demand Maximum, 8 h €1.60 GPU none" in page
    assert f"Each slice has {FOUR}" in page
    assert "cpu-1 / n01 / CPU block" in page
    assert "units of 2 vCPUs" in page
    assert "GPU interconnect" not in page


def test_a_cpu_lease_can_be_launched_from_the_form(cpus: PortalSession) -> None:
    launch(cpus)
    with tenant_scope(cpus.owner.tenant.pk):
        assert Lease.objects.get().offering == cpu_offering()


def test_a_model_server_is_refused_without_a_gpu(cpus: PortalSession) -> None:
    assert "vLLM endpoint needs a GPU, and CPU 4 vCPU has none." in launch(cpus, runs="vllm")


def test_relocation_has_no_effect_without_a_gpu(cpus: PortalSession) -> None:
    page = cpus.read(f"/launch/?offering={cpu_offering().pk}&relocatable=on")
    assert "“Allow relocation” has no effect here: not available without a GPU." in page


def test_the_lease_page_shows_cpus_and_no_gpu(cpus: PortalSession) -> None:
    page = cpus.read(f"/leases/{lease_on(cpus).pk}/")
    assert "GPU memory no GPU" in page
    assert f"Each slice has {FOUR}" in page
    assert "Each unit has 2 vCPUs and its share of the node's memory" in page
    for claim in ("isolated by hardware", "hardware isolation", "whole GPU", "GPU 0", "0 GB"):
        assert claim not in page


def test_the_list_of_leases_names_the_size_of_a_cpu_lease(cpus: PortalSession) -> None:
    lease_on(cpus, quantity=2)
    assert "2 × 4 vCPU CPU" in cpus.read("/leases/")


def test_the_drawing_of_a_smaller_block_has_only_its_units(cpus: PortalSession) -> None:
    small = cpus.sim.create_lease(cpus.owner, cpu_offering("16vcpu"))
    last = cpus.sim.create_lease(cpus.owner, cpu_offering("2vcpu"))
    assert "of 8 units of 2 vCPUs; 0 others, 0 free" in cpus.get(f"/leases/{small.pk}/").content.decode()
    assert "of 3 units of 2 vCPUs; 0 others, 2 free" in cpus.get(f"/leases/{last.pk}/").content.decode()


def test_the_simulated_page_of_a_cpu_lease_says_that_there_is_no_gpu(cpus: PortalSession) -> None:
    lease = lease_on(cpus, workload="jupyter")
    assert "What the lease has GPU none CPUs 4 Memory 16 GiB" in cpus.read(f"/leases/{lease.pk}/simulated-page/")


def test_a_waiting_cpu_lease_is_offered_other_sizes_only(cpus: PortalSession) -> None:
    cpus.sim.create_lease(cpus.owner, cpu_offering("16vcpu"))
    cpus.sim.request_lease(cpus.owner, cpu_offering("8vcpu"))
    cpus.sim.run(5)
    page = cpus.read("/queue/")
    assert "Start now on CPU 4 vCPU 16 GiB memory each" in page
    assert "Start now on H100" not in page


def test_a_waiting_gpu_lease_is_not_offered_cpus(cpus: PortalSession) -> None:
    for gpu in Gpu.objects.without_cpu_blocks():
        hardware.set_node_state(gpu.node, NodeState.CORDONED, reason="test", actor=OPERATOR, now=cpus.sim.now)
    cpus.sim.request_lease(cpus.owner, offering("1g.10gb"))
    cpus.sim.run(5)
    assert "Start now on CPU" not in cpus.read("/queue/")


@pytest.mark.parametrize("path", ["/catalogue/", "/launch/?model=CPU"])
def test_pages_with_cpus_stay_small(cpus: PortalSession, path: str) -> None:
    assert len(cpus.get(path).content) < 100_000
