"""What operators see of every card: whose, since when, and what is left of it."""

import pytest

from broker.domain.states import EndReason, LeaseState
from broker.models import Gpu, Health, LayoutPolicy, Node, NodeState, Offering, OfferingState
from broker.services import catalogue, inventory
from broker.services.fleet import cards, summary
from broker.services.fleet.uses import SCALE, Card, Use, cards_by_use, scaled
from tenants.services.walls import as_staff
from tests import world
from tests.world import OPERATOR, Home, Life

pytestmark = pytest.mark.django_db


def load(**which: str) -> list[Card]:
    with as_staff():
        return cards.load(**which)


def uses(card: Card) -> list[tuple[int, int, Use]]:
    return [(run.start, run.size, run.use) for run in card.runs]


def test_a_card_shows_each_slice_at_its_true_start_and_whose_it_is(life: Life, kestrel: Home) -> None:
    tern = world.home("Tern")
    first = life.lease(kestrel, world.offering("3g.40gb"))
    second = life.lease(tern, world.offering("1g.10gb", price_class="spot"))
    card = next(card for card in load() if card.slices)
    by_lease = {run.held.lease: run for run in card.runs if run.held}
    held = {place.lease_id: place.placement for lease in (first, second) for place in world.held(lease)}
    for lease, use, name in ((first, Use.SOLD, "Kestrel"), (second, Use.SPOT, "Tern")):
        run = by_lease[lease.pk]
        assert (run.start, run.start + run.size) == (held[lease.pk].lower, held[lease.pk].upper)
        assert (run.use, run.held.tenant_name, run.held.since) == (use, name, lease.active_at)
    assert sum(run.size for run in card.runs) == card.grid


def test_what_is_held_and_not_charged_is_reserved(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("7g.80gb"), LeaseState.PROVISIONING)
    (card,) = [card for card in load() if card.slices]
    assert uses(card) == [(0, 8, Use.RESERVED)]
    assert [s.since for s in card.slices] == [place.held_at for place in world.held(lease)]


def test_units_nothing_on_sale_fits_on_are_fragmented(life: Life, kestrel: Home) -> None:
    Offering.objects.exclude(profile="3g.40gb").update(state=OfferingState.DRAFT)
    one = world.offering("1g.10gb")
    Offering.objects.filter(pk=one.pk).update(state=OfferingState.PUBLISHED)
    life.lease(kestrel, one)
    Offering.objects.filter(pk=one.pk).update(state=OfferingState.RETIRED)
    (card,) = [card for card in load() if card.slices]
    assert card.units(Use.FRAGMENTED) == 3
    assert card.units(Use.FREE) == 4
    assert card.units(Use.SOLD) == 1


def test_cards_that_nothing_is_offered_on_cannot_be_sold(kestrel: Home) -> None:
    Offering.objects.update(state=OfferingState.DRAFT)
    assert {use for card in load() for _, _, use in uses(card)} == {Use.FRAGMENTED}


def test_a_fixed_card_sells_only_the_slices_it_is_cut_into(kestrel: Home) -> None:
    Gpu.objects.filter(index=0).update(
        layout_policy=LayoutPolicy.FIXED, fixed_layout=[{"profile": "3g.40gb", "start": 4, "size": 4}]
    )
    assert uses(load()[0]) == [(0, 4, Use.FRAGMENTED), (4, 4, Use.FREE)]


@pytest.mark.parametrize(
    ("state", "use"),
    [
        (NodeState.CORDONED, Use.MAINTENANCE),
        (NodeState.DRAINING, Use.MAINTENANCE),
        (NodeState.LOST, Use.UNHEALTHY),
    ],
)
def test_free_units_of_a_node_out_of_service_tell_why(
    life: Life, kestrel: Home, state: NodeState, use: Use
) -> None:
    world.set_node(Node.objects.get(), state, life)
    assert {each.idle_use for each in load()} == {use}
    assert {u for card in load() for _, _, u in uses(card)} == {use}


def test_a_lease_on_an_unhealthy_card_is_still_sold_and_the_rest_is_not_for_sale(
    life: Life, kestrel: Home
) -> None:
    lease = life.lease(kestrel, world.offering("3g.40gb"))
    gpu = Gpu.objects.get(pk=world.held(lease)[0].gpu_id)
    inventory.set_health(gpu, Health.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=life.now)
    (card,) = load(gpu=gpu.pk)
    assert (card.units(Use.SOLD), card.units(Use.UNHEALTHY), card.health_reason) == (4, 4, "XID 79")


def test_a_lease_that_was_released_leaves_the_card_free(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("7g.80gb"))
    life.release(lease, EndReason.BY_TENANT)
    life.run(60)
    assert all(not card.slices for card in load())


def test_one_node_or_one_card_can_be_asked_for(life: Life, kestrel: Home) -> None:
    world.fleet(inventory.Rack("west-2", "eu-west", "A100-80GB", nodes=1, cards_per_node=2))
    node = Node.objects.get(cluster__name="west-2")
    assert [card.where for card in load(node=node.pk)] == ["west-2 / n01 / card 0", "west-2 / n01 / card 1"]
    assert len(load(gpu=Gpu.objects.filter(node=node).first().pk)) == 1
    assert load(gpu="gpu_nobody") == []


def test_the_fleet_adds_up_to_its_cards(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, world.offering("2g.20gb"))
    total = cards_by_use(load())
    assert sum(total.values()) == 4 * SCALE
    assert total[Use.SOLD] == scaled(2, 8)
    with as_staff():
        seen = summary.read()
    assert seen == summary.of(load())
    assert (seen.clusters, seen.cards, seen.active, seen.tenants, seen.sold) == (1, 4, 1, 1, total[Use.SOLD])
    assert seen.sold_permille == 63  # 2 of 32 units


def test_an_empty_fleet_has_sold_nothing_of_nothing(db: None) -> None:
    with as_staff():
        seen = summary.read()
    assert (seen.cards, seen.sold_permille) == (0, 0)


def test_every_grid_there_is_divides_the_scale() -> None:
    assert [spec.name for spec in catalogue.specs().values() if SCALE % spec.grid] == []
