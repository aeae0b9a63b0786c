"""What operators do to the fleet."""

import pytest

from broker.models import Gpu, GpuModel, Health, InventoryChange, LayoutPolicy, Node, NodeState, Offering
from broker.services import catalogue, inventory
from broker.services.inventory import Rack
from tenants.models import AuditEvent
from tenants.services.walls import as_staff
from tests.world import MODEL, NOW, OPERATOR, REGION, Life, cards, fleet, offering, set_node


def test_racks_are_added_once(life: Life) -> None:
    rack = Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=4)
    fleet(rack)
    assert Gpu.objects.count() == 8
    assert inventory.add_simulated([rack], now=NOW) == 0
    assert inventory.add_simulated([Rack("north-1", REGION, MODEL, nodes=1, first=3)], now=NOW) == 8
    assert sorted(Node.objects.values_list("name", flat=True)) == ["n01", "n02", "n03"]


def test_a_model_nobody_knows_is_refused(life: Life) -> None:
    with pytest.raises(KeyError):
        inventory.add_simulated([Rack("north-1", REGION, "H900", nodes=1)], now=NOW)
    assert not Node.objects.exists()


def test_every_change_of_a_node_is_kept_and_audited_and_wakes_what_it_touches(life: Life) -> None:
    cards(1)
    node = Node.objects.get()
    set_node(node, NodeState.CORDONED, life)
    set_node(node, NodeState.CORDONED, life)
    change = InventoryChange.objects.get()
    assert (change.before, change.after, change.gpu_id, change.reason) == (
        "ready",
        "cordoned",
        None,
        "a test",
    )
    assert {hint[2] for hint in life.hints} == {"broker.serve", "broker.sweep_all"}
    with as_staff():
        event = AuditEvent.objects.get(action="node.cordoned")
    assert event.actor_label == OPERATOR.label
    assert (event.tenant_id, event.subject_label) == ("", "n01")


def test_every_change_of_a_cards_health_is_kept_and_audited(life: Life) -> None:
    cards(1)
    card = Gpu.objects.get()
    for _ in range(2):
        inventory.set_health(card, Health.UNHEALTHY, reason="ECC", actor=OPERATOR, now=NOW)
    inventory.set_health(card, Health.HEALTHY, reason="swapped", actor=OPERATOR, now=NOW)
    changes = InventoryChange.objects.order_by("id").values_list("before", "after", "reason")
    assert list(changes) == [("healthy", "unhealthy", "ECC"), ("unhealthy", "healthy", "swapped")]
    with as_staff():
        assert AuditEvent.objects.get(action="card.unhealthy").subject_label == "n01 card 0"


def test_models_are_loaded_from_the_projects_own_geometry(life: Life) -> None:
    assert catalogue.load_gpu_models() == 14
    assert catalogue.load_gpu_models() == 14
    assert GpuModel.objects.get(pk=MODEL).memory_grid == 8


def test_offerings_are_derived_once_from_what_stands_there(life: Life) -> None:
    cards(1)
    assert catalogue.derive_offerings(now=NOW) == 0
    shapes = Offering.objects.filter(price_class="on_demand").values_list("profile", flat=True)
    assert set(shapes) == {"card", "7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb"}
    assert offering("3g.40gb").label == "H100 3g.40gb"
    assert (offering("3g.40gb").memory_gb, offering("card").memory_gb) == (40, 80)
    assert offering("card").milli_units == 7000
    assert Offering.objects.filter(price_class="spot").count() == 7


@pytest.mark.parametrize(
    ("isolation", "label"), [("soft", "H100 half, memory capped"), ("none", "H100 half, time-sliced")]
)
def test_shares_are_offered_where_nodes_divide_their_cards_so(life: Life, isolation: str, label: str) -> None:
    cards(1)
    halves = [
        {"profile": "half", "start": start, "size": 4, "isolation": isolation, "asks": "nvidia.com/gpu"}
        for start in (0, 4)
    ]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=halves)
    assert catalogue.derive_offerings(now=NOW) == 2
    drafted = Offering.objects.filter(profile="half").values_list(
        "isolation", "price_class", "state", "label"
    )
    assert set(drafted) == {(isolation, each, "draft", label) for each in ("on_demand", "spot")}
    assert catalogue.derive_offerings(now=NOW) == 0
