"""What is free, exactly."""

import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster, Gpu, LayoutPolicy
from broker.services import capacity
from broker.services.catalogue import spec_of
from broker.services.inventory import Rack
from broker.services.placement.cards import fixed_geometry
from tenants.services.walls import as_tenant
from tests.world import MODEL, REGION, Life, cards, fleet, held, home, offering, soft_offering


def test_availability_is_how_many_could_really_be_placed(life: Life) -> None:
    cards(2)
    kestrel = home()
    life.lease(kestrel, offering("3g.40gb"))
    asked = [offering(name) for name in ("card", "7g.80gb", "3g.40gb", "1g.10gb")]
    with as_tenant(kestrel.tenant.pk):
        told = capacity.availability(asked)
    for what in asked[2:]:
        placed = 0
        for _ in range(20):
            lease = life.ask(kestrel, what)
            life.run()
            placed += bool(held(lease))
        with as_tenant(kestrel.tenant.pk):
            assert told[what.pk] == placed
        break
    assert list(told.values()) == [1, 1, 3, 11]


def test_a_preview_takes_nothing_and_is_where_the_lease_then_goes(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=2))
    kestrel = home()
    life.lease(kestrel, offering("1g.10gb"))
    with as_tenant(kestrel.tenant.pk):
        seen = capacity.preview(offering("3g.40gb"))
    assert seen
    assert kestrel.used() == 1000
    lease = life.lease(kestrel, offering("3g.40gb"), LeaseState.PROVISIONING)
    assert [(p.gpu_id, p.placement.lower) for p in held(lease)] == [
        (s.gpu, s.placement.start) for s in seen.seats
    ]


def test_a_preview_of_what_does_not_fit_is_none(life: Life) -> None:
    cards(1)
    kestrel = home()
    with as_tenant(kestrel.tenant.pk):
        assert capacity.preview(offering("card"), quantity=2) is None


def test_of_a_neighbour_only_the_place_is_known(life: Life) -> None:
    cards(1)
    kestrel, swift = home("Kestrel"), home("Swift")
    life.lease(kestrel, offering("1g.10gb"))
    with as_tenant(swift.tenant.pk):
        seating = capacity.preview(offering("1g.10gb"))
    assert seating
    (card,) = seating.cards.values()
    assert [(profile, mine) for profile, _, mine in card.held] == [("1g.10gb", False)]


def test_places_on_cards_out_of_service_are_not_counted(life: Life) -> None:
    cards(1)
    kestrel = home()
    life.lease(kestrel, offering("1g.10gb"))
    Gpu.objects.update(health="unhealthy")
    with as_tenant(kestrel.tenant.pk):
        assert capacity.availability([offering("1g.10gb")]) == {offering("1g.10gb").pk: 0}


def test_fixed_cards_count_for_what_they_are_cut_into_even_when_empty(life: Life) -> None:
    cards(2)
    layout = [{"profile": "3g.40gb", "start": 0, "size": 4}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=layout)
    assert capacity.could_ever_fit(offering("3g.40gb"), quantity=9, same_node=False) == 2
    assert capacity.could_ever_fit(offering("1g.10gb"), quantity=9, same_node=True) == 0


def test_a_layout_the_model_does_not_have_is_an_error_that_says_so(life: Life) -> None:
    cards(1)
    with pytest.raises(ValueError, match=r"3g\.40gb cannot start at unit 1"):
        fixed_geometry(spec_of(MODEL), [{"profile": "3g.40gb", "start": 1, "isolation": "hardware"}])


def test_offerings_of_several_pools_and_classes_are_told_in_few_queries(
    life: Life, django_assert_num_queries: object
) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=1), Rack("south-1", "eu-south", "A100-80GB", nodes=1))
    asked = [offering("card"), offering("card", model="A100-80GB"), soft_offering()]
    kestrel = home()
    with as_tenant(kestrel.tenant.pk):
        capacity.availability([])
        with django_assert_num_queries(3):  # type: ignore[operator]  # what changed, those cards, and which are ours
            assert sorted(capacity.availability(asked).values()) == [8, 8, 32]


def test_a_gang_lies_in_one_cluster_the_smallest_that_holds_it(life: Life) -> None:
    fleet(
        Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=4),
        Rack("north-2", REGION, MODEL, nodes=2, cards_per_node=1),
        Rack("north-3", REGION, MODEL, nodes=1, cards_per_node=1),
    )
    card, kestrel = offering("card"), home()

    def clusters(quantity: int) -> set[str]:
        with as_tenant(kestrel.tenant.pk):
            seating = capacity.preview(card, quantity=quantity)
        return {each.cluster for each in seating.cards.values()} if seating else set()

    assert [clusters(quantity) for quantity in (2, 3, 5)] == [{"north-2"}, {"north-1"}, set()]
    assert capacity.could_ever_fit(card, quantity=9, same_node=False) == 4


@pytest.mark.parametrize(
    ("driver", "shares"), [("", 4), ("hami", 4), ("dra", 0), ("device_plugin", 0)], ids=lambda told: str(told)
)
def test_an_uncut_card_is_sold_only_as_what_its_cluster_can_make_of_it(
    life: Life, driver: str, shares: int
) -> None:
    """Claims hand out no shares: a lease that was placed so would be refused by the driver."""
    cards(1)
    quarter, kestrel = soft_offering(), home()
    Cluster.objects.update(driver=driver)
    with as_tenant(kestrel.tenant.pk):
        assert capacity.availability([quarter]) == {quarter.pk: shares}
        assert (capacity.preview(quarter) is not None) is bool(shares)
    assert capacity.could_ever_fit(quarter, quantity=1, same_node=False) == shares


@pytest.mark.parametrize(("driver", "there"), [("dra", 1), ("hami", 1), ("device_plugin", 0)])
def test_a_card_is_sold_whole_where_its_cluster_can_hand_it_out(life: Life, driver: str, there: int) -> None:
    cards(1)
    kestrel = home()
    Cluster.objects.update(driver=driver)
    with as_tenant(kestrel.tenant.pk):
        assert capacity.availability([offering("card")]) == {offering("card").pk: there}


def test_nodes_that_are_cut_anew_never_come_to_have_shares(life: Life) -> None:
    cards(1)
    whole = [{"profile": "card", "start": 0, "size": 8, "isolation": "device"}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=whole)
    Cluster.objects.update(recuts=True)
    assert capacity.could_ever_fit(soft_offering(), quantity=1, same_node=False) == 0
    assert capacity.could_ever_fit(offering("1g.10gb"), quantity=1, same_node=False) == 7


def test_a_node_that_calls_its_slices_cards_never_comes_to_have_others(life: Life) -> None:
    cards(1)
    halves = [{"profile": "3g.40gb", "start": start, "size": 4, "asks": "nvidia.com/gpu"} for start in (0, 4)]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=halves)
    Cluster.objects.update(recuts=True)
    assert capacity.could_ever_fit(offering("3g.40gb"), quantity=1, same_node=False) == 2
    assert capacity.could_ever_fit(offering("1g.10gb"), quantity=1, same_node=False) == 0


def test_what_one_cluster_could_ever_hold_is_asked_of_it_alone(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=4), Rack("north-2", REGION, MODEL, nodes=1))
    Gpu.objects.filter(node__cluster__name="north-2").update(health="unhealthy")
    told = {
        name: capacity.could_ever_fit(offering("card"), quantity=9, same_node=False, cluster=name)
        for name in ("north-1", "north-2")
    }
    assert told == {"north-1": 4, "north-2": 8}
    in_service = capacity.could_ever_fit(offering("card"), quantity=9, same_node=False, in_service=True)
    assert in_service == 4
