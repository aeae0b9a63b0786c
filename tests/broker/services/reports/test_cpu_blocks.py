"""Blocks of CPUs in reports: shown, but never counted as GPUs."""

from datetime import timedelta

import pytest

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.host_resources import HostResources
from broker.models import Gpu, Lease, NodeState, Offering, OfferingState
from broker.services.reports import attention_items, fleet_gpus, fleet_summary, fleet_usage
from broker.services.reports.gpu_usage import SCALE, FleetGpu, UnitUse, gpus_by_use, only_gpus
from broker.services.reports.queue_report import QueueFigures
from tenants.services.rls import staff_scope
from tests.simulation import (
    Simulation,
    create_cpu_nodes,
    create_gpus,
    create_tenant,
    node_of,
    offering,
    set_node_state,
)


@pytest.fixture
def lease(sim: Simulation) -> Lease:
    """Rent half of a node's first CPU block beside a fleet of one GPU."""
    create_gpus(1)
    create_cpu_nodes(cpu_node=HostResources(22_000, 90_112, 112_640))
    return sim.create_lease(create_tenant(), offering("8vcpu", model=CPU_MODEL_NAME))


def load() -> list[FleetGpu]:
    with staff_scope():
        return fleet_gpus.load_gpus()


def attention(sim: Simulation) -> list[attention_items.AttentionItem]:
    with staff_scope():
        return attention_items.find_attention_items(fleet_gpus.load_gpus(), QueueFigures(0, None, None), now=sim.now)


def test_a_cpu_block_is_named_by_its_kind_and_number(lease: Lease) -> None:
    blocks = [each for each in load() if not each.is_gpu]
    assert [each.location for each in blocks] == ["cpu-1 / n01 / CPU block 0", "cpu-1 / n01 / CPU block 1"]
    assert [str(each) for each in Gpu.objects.order_by("node__cluster__name", "index")] == [
        "CPU block 0",
        "CPU block 1",
        "GPU 0",
    ]


def test_a_smaller_last_block_has_only_the_units_that_exist(lease: Lease) -> None:
    first, last = (each for each in load() if not each.is_gpu)
    assert (first.grid, last.grid) == (8, 3)
    assert (last.units(UnitUse.FREE), last.units(UnitUse.FRAGMENTED)) == (3, 0)


def test_the_summary_counts_gpus_alone_and_the_leases_of_both(lease: Lease) -> None:
    with staff_scope():
        found = fleet_summary.load_summary()
    assert (found.clusters, found.gpus, found.active, found.tenants, found.sold) == (2, 1, 1, 1, 0)
    assert found == fleet_summary.summarise(load())


def test_the_use_of_gpus_leaves_out_cpu_blocks(lease: Lease) -> None:
    assert sum(gpus_by_use(load()).values()) == SCALE
    assert [each.model for each in only_gpus(load())] == ["H100-80GB"]


def test_a_cpu_lease_has_no_gpu_hours(lease: Lease, sim: Simulation) -> None:
    sim.run(600)
    sim.release_lease(lease)
    sim.run(60)
    with staff_scope():
        found = fleet_usage.measure_fleet_usage(sim.now - timedelta(seconds=600), fleet_gpus.load_gpus(), now=sim.now)
    assert found.total == found.by_use[UnitUse.FREE] == 600 * SCALE


def test_a_lost_cpu_node_is_reported_with_its_blocks(lease: Lease, sim: Simulation) -> None:
    set_node_state(node_of(lease), NodeState.LOST, sim)
    [item] = [each for each in attention(sim) if each.kind == attention_items.AttentionKind.NODE]
    assert item.why == "2 CPU blocks, one lease still on them"


def test_unsold_cpu_blocks_are_not_called_gpus(lease: Lease, sim: Simulation) -> None:
    Offering.objects.filter(gpu_model=CPU_MODEL_NAME).update(state=OfferingState.RETIRED)
    [item] = [each for each in attention(sim) if each.kind == attention_items.AttentionKind.OFFERINGS]
    assert (item.what, item.why) == ("CPU has no published offering in eu-north", "2 CPU blocks earn no revenue")
