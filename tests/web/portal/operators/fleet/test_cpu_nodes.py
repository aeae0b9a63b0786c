"""Fleet pages of operators show CPU nodes and count no block as a GPU."""

import pytest
from django.test import Client

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.host_resources import HostResources
from broker.models import Gpu, Lease, Node, Offering
from tests.simulation import Simulation, TenantContext, create_cpu_nodes, offering
from tests.web.portal.signed_in_user import visible_text

pytestmark = pytest.mark.django_db
ODD_NODE = HostResources(22_000, 90_112, 112_640)


@pytest.fixture
def lease(sim: Simulation, kestrel: TenantContext) -> Lease:
    """Rent half a block of a CPU node beside four GPUs."""
    create_cpu_nodes(cpu_node=ODD_NODE)
    return sim.create_lease(kestrel, offering("8vcpu", model=CPU_MODEL_NAME))


def read(operator: Client, path: str) -> str:
    answer = operator.get(path)
    assert answer.status_code == 200, path
    return visible_text(answer)


def block(index: int = 0) -> Gpu:
    return Gpu.objects.get(gpu_model=CPU_MODEL_NAME, index=index)


def test_the_control_room_counts_gpus_alone(lease: Lease, operator: Client) -> None:
    page = read(operator, "/ops/")
    assert "4 GPUs in 2 clusters; 1 tenant runs 1 lease" in page
    assert "0.0 of 4 GPUs" in page


def test_the_map_names_cpu_blocks(lease: Lease, operator: Client) -> None:
    markup = operator.get("/ops/").content.decode()
    assert "Fleet map, 4 GPUs, 2 CPU blocks." in markup
    assert "cpu-1 n01 CPU block 0: 4 of 8 sold" in markup
    assert "cpu-1 n01 CPU block 1: 0 of 3 sold" in markup
    assert "CPU · 2 CPU blocks · 25 % sold" in markup


def test_the_list_of_clusters_counts_cpu_blocks_as_such(lease: Lease, operator: Client) -> None:
    page = read(operator, "/ops/clusters/")
    assert "eu-north · CPU · 0.5 of 2 CPU blocks sold" in page
    assert "0.0 of 4 GPUs sold" in page


def test_a_cpu_node_shows_its_blocks_and_amounts(lease: Lease, operator: Client) -> None:
    page = read(operator, f"/ops/nodes/{Node.objects.get(gpus=block()).pk}/")
    assert "2 CPU blocks, 0.5 sold; 1 lease of 1 tenant" in page
    assert "22 CPUs, 88 GiB memory, 110 GiB scratch for leases." in page


def test_the_list_of_all_hardware_has_cpu_blocks(lease: Lease, operator: Client) -> None:
    page = read(operator, "/ops/gpus/")
    assert "4 GPUs, 2 CPU blocks." in page
    assert "cpu-1 / n01 / CPU block 0" in page
    assert "8 vCPU @0" in page


def test_a_block_has_a_page_without_the_word_whole_gpu(lease: Lease, operator: Client) -> None:
    page = read(operator, f"/ops/gpus/{block().pk}/")
    assert "cpu-1 / n01 / CPU block 0" in page
    assert "1 slice held, 4 of 8 units available." in page
    assert "whole GPU" not in page


def test_a_block_can_be_quarantined_by_its_name(lease: Lease, operator: Client) -> None:
    page = read(operator, f"/ops/gpus/{block(1).pk}/quarantine/")
    assert "Quarantine cpu-1 / n01 / CPU block 1?" in page


def test_the_lease_page_of_operators_names_the_block(lease: Lease, operator: Client) -> None:
    assert "cpu-1 / n01 / CPU block 0" in read(operator, f"/ops/leases/{lease.pk}/")


def test_the_price_list_of_operators_shows_no_memory_of_cpus(lease: Lease, operator: Client) -> None:
    page = read(operator, "/ops/offerings/")
    assert "CPU 8 vCPU 8 CPUs" in page
    assert "no GPU" in page


def test_the_amounts_of_a_cpu_offering_can_be_edited_up_to_the_share(lease: Lease, operator: Client) -> None:
    cpus = Offering.objects.get(pk=lease.offering_id)
    page = read(operator, f"/ops/offerings/{cpus.pk}/")
    assert (
        "The smallest node of this model and region has 8 CPUs, 32 GiB memory, 40 GiB scratch for each slice." in page
    )


def test_a_dense_map_names_the_devices_of_a_cpu_node(sim: Simulation, operator: Client) -> None:
    create_cpu_nodes(82)
    markup = operator.get("/ops/").content.decode()
    assert 'data-gpus="0:0/8;1:0/8" data-device="CPU block"' in markup
    assert len(markup) < 100_000
