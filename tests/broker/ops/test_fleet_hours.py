"""Every second of every unit of the fleet has exactly one use."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.states import LeaseState
from broker.models import Gpu, Health, Node, NodeState, Offering, OfferingState
from broker.services import inventory
from broker.services.fleet import cards, hours
from broker.services.fleet.hours import Hours
from broker.services.fleet.uses import SCALE, Use
from tenants.services.walls import as_staff
from tests import world
from tests.world import OPERATOR, Home, Life

pytestmark = pytest.mark.django_db
CARD = SCALE  # one card for one second


def spent(life: Life, seconds: int) -> Hours:
    with as_staff():
        return hours.since(life.now - timedelta(seconds=seconds), cards.load(), now=life.now)


def sold_seconds(*leases: object) -> int:
    """Count what the ledger says: seconds from active to whatever came next."""
    total = 0
    for lease in leases:
        steps = world.ledger(lease)
        for step, then in zip(steps, [*steps[1:], None], strict=True):
            if step.after == LeaseState.ACTIVE and then is not None:
                total += int((then.at - step.at).total_seconds())
    return total


def test_an_idle_fleet_is_idle_for_every_second(life: Life, kestrel: Home) -> None:
    life.run(100)
    seen = spent(life, 100)
    assert seen.by_use[Use.FREE] == seen.total == seen.explained == 4 * 100 * CARD


def test_sold_seconds_are_the_seconds_the_ledger_calls_active(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("card"))
    life.run(500)
    life.release(lease)
    life.run(100)
    seen = spent(life, 900)
    assert seen.by_use[Use.SOLD] == sold_seconds(lease) * CARD
    assert seen.by_use[Use.RESERVED] > 0
    assert seen.explained == seen.total


def test_a_lease_that_goes_on_is_sold_until_now_and_spot_is_told_apart(life: Life, kestrel: Home) -> None:
    begun = life.lease(kestrel, world.offering("card", price_class="spot")).active_at
    life.run(300)
    seen = spent(life, 10_000)
    assert seen.by_use[Use.SPOT] == int((life.now - begun).total_seconds()) * CARD
    assert seen.by_use[Use.SOLD] == 0


def test_a_place_still_held_after_its_lease_ended_counts_once(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("card"))
    life.run(500)
    life.release(lease)
    seen = spent(life, 900)
    assert world.fresh(lease).state == LeaseState.RELEASING
    assert seen.by_use[Use.SOLD] == sold_seconds(lease) * CARD
    assert seen.explained == seen.total


def test_only_the_part_inside_the_window_counts(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("card"))
    life.run(1000)
    assert spent(life, 60).by_use[Use.SOLD] == 60 * CARD
    life.release(lease)
    life.run(2000)
    assert spent(life, 60).by_use[Use.SOLD] == 0


def test_a_lease_that_never_became_active_was_only_reserved(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("card"), LeaseState.PROVISIONING)
    life.run(1)
    life.release(lease)
    life.run(60)
    seen = spent(life, 200)
    assert seen.by_use[Use.SOLD] == 0
    assert seen.by_use[Use.RESERVED] > 0
    assert seen.explained == seen.total


def test_what_nothing_on_sale_fits_beside_is_fragmented_while_it_lasts(life: Life, kestrel: Home) -> None:
    one = world.offering("1g.10gb")
    Offering.objects.exclude(pk=one.pk).update(state=OfferingState.DRAFT)
    life.run(100)
    assert spent(life, 100).by_use[Use.FRAGMENTED] == 4 * 100 * CARD // 8
    life.lease(kestrel, one)
    seen = spent(life, 10)
    assert seen.by_use[Use.FRAGMENTED] > 0
    assert seen.explained == seen.total


def test_outages_count_from_their_beginning_to_their_end(life: Life, kestrel: Home) -> None:
    node, gpu = Node.objects.get(), Gpu.objects.filter(index=1).get()
    life.run(100)
    inventory.set_health(gpu, Health.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=life.now)
    life.run(50)
    world.set_node(node, NodeState.CORDONED, life)
    life.run(30)
    world.set_node(node, NodeState.LOST, life)
    life.run(20)
    world.set_node(node, NodeState.READY, life)
    inventory.set_health(gpu, Health.HEALTHY, reason="reseated", actor=OPERATOR, now=life.now)
    life.run(10)
    seen = spent(life, 210)
    assert seen.by_use[Use.UNHEALTHY] == (50 + 30 + 4 * 20) * CARD
    assert seen.by_use[Use.MAINTENANCE] == 3 * 30 * CARD
    assert seen.by_use[Use.FREE] == (4 * 100 + 3 * 50 + 4 * 10) * CARD
    assert seen.explained == seen.total


def test_a_lease_on_a_node_out_of_service_is_sold_while_it_is_charged(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, world.offering("card"))
    world.set_node(Node.objects.get(), NodeState.DRAINING, life)
    life.run(100)
    seen = spent(life, 100)
    assert (seen.by_use[Use.SOLD], seen.by_use[Use.MAINTENANCE]) == (100 * CARD, 300 * CARD)


def test_an_outage_that_lasts_since_before_the_window_counts_from_its_border(
    life: Life, kestrel: Home
) -> None:
    world.set_node(Node.objects.get(), NodeState.CORDONED, life)
    life.run(1000)
    assert spent(life, 40).by_use[Use.MAINTENANCE] == 4 * 40 * CARD


def test_a_cluster_counts_from_when_it_was_added(life: Life, kestrel: Home) -> None:
    life.run(50)
    world.fleet(world.Rack("west-2", "eu-west", "A100-80GB", nodes=1, cards_per_node=2), now=life.now)
    life.run(10)
    assert spent(life, 500).total == (4 * 60 + 2 * 10) * CARD


def test_a_window_of_no_length_explains_nothing(life: Life, kestrel: Home) -> None:
    seen = spent(life, 0)
    assert (seen.total, seen.explained) == (0, 0)


def test_the_day_of_operators_begins_at_midnight_utc() -> None:
    assert hours.midnight(world.NOW).isoformat() == "2026-11-21T00:00:00+00:00"


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.integers(0, 600))
def test_spans_tile_the_window_whatever_happened(gaps: list[int], start: int) -> None:
    end = start + 300
    at, changes = start, []
    for number, gap in enumerate(gaps):
        at += gap
        changes.append((at, str(number), str(number + 1)))
    spans = list(hours._spans(changes, str(len(gaps)), start, end))
    assert spans[0][0] == start
    assert spans[-1][1] == end
    assert all(before[1] == after[0] for before, after in pairwise(spans))
