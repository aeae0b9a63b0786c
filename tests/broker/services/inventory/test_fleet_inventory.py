"""Operators' changes to the fleet, GPU models and offerings."""

import pytest

from broker.models import Gpu, GpuHealth, GpuModel, InventoryChange, LayoutPolicy, Node, NodeState, Offering
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.inventory.hardware import SimulatedRack
from tenants.models import AuditEvent
from tenants.services.rls import staff_scope
from tests.broker.domain.fleet import MODELS
from tests.simulation import (
    MODEL,
    NOW,
    OPERATOR,
    REGION,
    Simulation,
    create_fleet,
    create_gpus,
    offering,
    set_node_state,
)


def test_simulated_racks_are_added_once(sim: Simulation) -> None:
    rack = SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=4)
    create_fleet(rack)
    assert Gpu.objects.count() == 8
    assert hardware.add_simulated_racks([rack], now=NOW) == 0
    assert hardware.add_simulated_racks([SimulatedRack("north-1", REGION, MODEL, nodes=1, first=3)], now=NOW) == 8
    assert sorted(Node.objects.values_list("name", flat=True)) == ["n01", "n02", "n03"]


def test_an_unknown_gpu_model_is_refused(sim: Simulation) -> None:
    with pytest.raises(KeyError):
        hardware.add_simulated_racks([SimulatedRack("north-1", REGION, "H900", nodes=1)], now=NOW)
    assert not Node.objects.exists()


def test_node_state_changes_are_stored_audited_and_trigger_scheduling(sim: Simulation) -> None:
    create_gpus(1)
    node = Node.objects.get()
    set_node_state(node, NodeState.CORDONED, sim)
    set_node_state(node, NodeState.CORDONED, sim)
    change = InventoryChange.objects.get()
    assert (change.before, change.after, change.gpu_id, change.reason) == (
        "ready",
        "cordoned",
        None,
        "a test",
    )
    assert {hint[2] for hint in sim.messages} == {"broker.run_queue", "broker.sweep_all"}
    with staff_scope():
        event = AuditEvent.objects.get(action="node.cordoned")
    assert event.actor_label == OPERATOR.label
    assert (event.tenant_id, event.subject_label) == ("", "n01")


def test_gpu_health_changes_are_stored_and_audited(sim: Simulation) -> None:
    create_gpus(1)
    gpu = Gpu.objects.get()
    for _ in range(2):
        hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="ECC", actor=OPERATOR, now=NOW)
    hardware.set_gpu_health(gpu, GpuHealth.HEALTHY, reason="swapped", actor=OPERATOR, now=NOW)
    changes = InventoryChange.objects.order_by("id").values_list("before", "after", "reason")
    assert list(changes) == [("healthy", "unhealthy", "ECC"), ("unhealthy", "healthy", "swapped")]
    with staff_scope():
        assert AuditEvent.objects.get(action="gpu.unhealthy").subject_label == "n01 GPU 0"


def test_gpu_models_of_the_geometry_file_and_cpus_are_loaded_once(sim: Simulation) -> None:
    assert gpu_catalogue.load_gpu_models() == len(MODELS) + 1
    assert gpu_catalogue.load_gpu_models() == len(MODELS) + 1
    assert GpuModel.objects.get(pk=MODEL).memory_grid == 8


def test_offerings_are_derived_once_from_the_installed_gpus(sim: Simulation) -> None:
    create_gpus(1)
    assert gpu_catalogue.derive_offerings(now=NOW) == 0
    shapes = Offering.objects.filter(price_class="on_demand").values_list("profile", flat=True)
    assert set(shapes) == {"whole-gpu", "7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb"}
    assert offering("3g.40gb").label == "H100 SXM 80GB 3g.40gb"
    assert (offering("3g.40gb").memory_gb, offering("whole-gpu").memory_gb) == (40, 80)
    assert offering("whole-gpu").milli_units == 7000
    assert Offering.objects.filter(price_class="spot").count() == 7


@pytest.mark.parametrize(
    ("isolation", "label"), [("soft", "H100 SXM 80GB half, memory capped"), ("none", "H100 SXM 80GB half, time-sliced")]
)
def test_shares_are_offered_where_nodes_partition_gpus_into_shares(sim: Simulation, isolation: str, label: str) -> None:
    create_gpus(1)
    halves = [
        {"profile": "half", "start": start, "size": 4, "isolation": isolation, "resource_name": "nvidia.com/gpu"}
        for start in (0, 4)
    ]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=halves)
    assert gpu_catalogue.derive_offerings(now=NOW) == 2
    drafted = Offering.objects.filter(profile="half").values_list("isolation", "price_class", "state", "label")
    assert set(drafted) == {(isolation, each, "draft", label) for each in ("on_demand", "spot")}
    assert gpu_catalogue.derive_offerings(now=NOW) == 0
