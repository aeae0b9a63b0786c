"""The queue of all tenants, and what waits for an operator."""

from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import NumericRange as Range

from broker.domain.states import LeaseState
from broker.models import Gpu, Health, Lease, Node, NodeState, Offering, OfferingState
from broker.services import inventory
from broker.services.fleet import cards, history, needs, queue
from broker.services.fleet.needs import Kind, Need
from broker.services.fleet.uses import Use
from broker.services.leases.precedence import PATIENCE
from tenants.services.walls import as_staff, as_tenant
from tests import world
from tests.world import OPERATOR, Home, Life

pytestmark = pytest.mark.django_db


def look(life: Life) -> list[Need]:
    with as_staff():
        return needs.needs(cards.load(), queue.figures(now=life.now), now=life.now)


def fill(life: Life, owner: Home) -> list[Lease]:
    return [life.lease(owner, world.offering("card")) for _ in range(4)]


def test_the_queue_shows_all_tenants_oldest_first(life: Life, kestrel: Home) -> None:
    tern = world.home("Tern")
    fill(life, kestrel)
    waiting = []
    for owner in (tern, kestrel, tern):
        waiting.append(life.ask(owner, world.offering("card")))
        life.run(60)
    with as_staff():
        seen, figures = queue.waiting(), queue.figures(now=life.now)
    assert [lease.pk for lease in seen.leases] == [lease.pk for lease in waiting]
    assert [lease.tenant.name for lease in seen.leases] == ["Tern", "Kestrel", "Tern"]
    assert (seen.after, figures.waiting) == ("", 3)
    assert figures.oldest == life.now - waiting[0].created_at == figures.p95
    assert not figures.overdue


def test_a_long_queue_comes_in_pages_that_miss_nobody(life: Life, kestrel: Home) -> None:
    fill(life, kestrel)
    waiting = [life.ask(kestrel, world.offering("card")) for _ in range(5)]
    seen, after = [], ""
    with as_staff():
        while page := queue.waiting(after=after, limit=2):
            seen += [lease.pk for lease in page.leases]
            if not (after := page.after):
                break
        assert queue.waiting(after="lse_gone").leases[0].pk == waiting[0].pk
    assert seen == [lease.pk for lease in waiting]


def test_who_started_again_waits_since_then(life: Life, kestrel: Home) -> None:
    again = life.lease(kestrel, world.offering("card"), volume=life.volume(kestrel).pk)
    life.run(1800)
    life.stop(again, kestrel)
    life.run(60)
    fill(life, kestrel)
    first = life.ask(kestrel, world.offering("card"))
    life.run(30)
    life.start(again, kestrel)
    life.run(30)
    with as_staff():
        seen, figures = queue.waiting(limit=1), queue.figures(now=life.now)
        rest = queue.waiting(after=seen.after)
    assert [lease.pk for lease in (*seen.leases, *rest.leases)] == [first.pk, again.pk]
    assert figures.oldest == life.now - first.created_at


def test_an_empty_queue_has_no_age(life: Life, kestrel: Home) -> None:
    with as_staff():
        seen = queue.figures(now=life.now)
    assert (seen.waiting, seen.oldest, seen.p95, seen.overdue) == (0, None, None, False)


def test_a_fleet_in_order_needs_nobody(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, world.offering("1g.10gb"))
    assert look(life) == []


def test_a_lost_node_is_named_with_what_is_still_on_it(life: Life, kestrel: Home) -> None:
    life.lease(kestrel, world.offering("1g.10gb"))
    node = Node.objects.get()
    world.set_node(node, NodeState.LOST, life)
    assert look(life) == [
        Need(Kind.NODE, "north-1 / n01 is lost", "4 cards, one lease still on them", node.pk, life.now, True)
    ]


def test_a_draining_node_is_named_once_it_is_empty(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"))
    world.set_node(Node.objects.get(), NodeState.DRAINING, life)
    assert look(life) == []
    life.release(lease)
    life.run(30)
    (need,) = look(life)
    assert (need.what, need.urgent) == ("north-1 / n01 is drained", False)


@pytest.mark.parametrize(("leases", "words"), [(0, "XID 79"), (2, "XID 79; 2 leases still on it")])
def test_an_unhealthy_card_is_named_with_its_reason(
    life: Life, kestrel: Home, leases: int, words: str
) -> None:
    held = [life.lease(kestrel, world.offering("1g.10gb")) for _ in range(leases)]
    pk = world.held(held[0])[0].gpu_id if held else Gpu.objects.first().pk
    gpu = Gpu.objects.get(pk=pk)
    inventory.set_health(gpu, Health.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=life.now)
    (need,) = look(life)
    assert (need.kind, need.subject, need.why, need.urgent) == (Kind.CARD, gpu.pk, words, True)


def test_a_card_whose_books_cannot_be_right_is_named_with_what_is_wrong(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"))
    with as_tenant(kestrel.tenant.pk):
        lease.allocations.update(profile="3g.40gb", placement=Range(1, 5))
    (place,) = world.held(lease)
    (need,) = look(life)
    with as_staff():
        (card,) = (each for each in cards.load() if each.slices)
    assert [(run.start, run.size) for run in card.runs] == [(0, 1), (1, 4), (5, 3)]
    assert (need.kind, need.subject, need.urgent) == (Kind.CARD, place.gpu_id, True)
    assert need.why == (
        "3g.40gb cannot start at unit 1; it may start at 0, 4; nothing new is placed on it; one lease still on it"
    )


def test_a_place_of_another_size_than_its_profile_is_no_place(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"))
    with as_tenant(kestrel.tenant.pk):
        lease.allocations.update(placement=Range(0, 2))
    (need,) = look(life)
    assert need.why.startswith("1g.10gb takes 1 units, and 2 are held for it; nothing new")


def test_a_card_whose_cut_its_model_does_not_have_is_named_and_all_pages_still_load(
    life: Life, kestrel: Home
) -> None:
    layout = [{"profile": "3g.40gb", "start": 1, "size": 4}]
    Gpu.objects.filter(index=2).update(layout_policy="fixed", fixed_layout=layout)
    (need,) = look(life)
    assert (need.what, need.why.partition(";")[0]) == (
        "The books of north-1 / n01 / card 2 cannot be right",
        "3g.40gb cannot start at unit 1",
    )
    with as_staff():
        (card,) = (each for each in cards.load() if each.index == 2)
    assert [(run.start, run.size, run.use) for run in card.runs] == [(0, 8, Use.UNHEALTHY)]


def test_a_card_quarantined_by_hand_may_lack_a_reason(life: Life, kestrel: Home) -> None:
    Gpu.objects.filter(index=0).update(health=Health.UNHEALTHY)
    assert look(life)[0].why == "no reason was given"


def test_a_lease_that_does_not_move_on_is_stuck(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"), LeaseState.PROVISIONING)
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(
            at=life.now - timedelta(minutes=3), progress={"text": "pulling image"}
        )
    (need,) = look(life)
    assert need.what == f"{lease.name} of Kestrel is stuck provisioning"
    assert (need.subject, need.why, need.urgent) == (lease.pk, "pulling image", False)


def test_a_failed_lease_is_named_at_once(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, world.offering("1g.10gb"), LeaseState.RELEASING)
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(state=LeaseState.FAILED, tries=4, progress={})
    (need,) = look(life)
    assert (need.what, need.why) == (f"{lease.name} of Kestrel failed", "4 tries so far")
    assert need.urgent


def test_somebody_who_waits_past_patience_is_named(life: Life, kestrel: Home) -> None:
    fill(life, kestrel)
    lease = life.ask(kestrel, world.offering("card"))
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(created_at=life.now - PATIENCE - timedelta(seconds=1))
    (need,) = look(life)
    assert (need.kind, need.since) == (Kind.QUEUE, life.now - PATIENCE - timedelta(seconds=1))


def test_cards_that_nothing_is_sold_on_are_named_by_pool(life: Life, kestrel: Home) -> None:
    Offering.objects.update(state=OfferingState.RETIRED)
    (need,) = look(life)
    assert (need.what, need.why) == ("Nothing of H100-80GB is sold in eu-north", "4 cards earn nothing")


def test_the_past_of_a_card_is_told_newest_first(life: Life, kestrel: Home) -> None:
    first = life.lease(kestrel, world.offering("card"))
    gpu = Gpu.objects.get(pk=world.held(first)[0].gpu_id)
    life.release(first)
    life.run(60)
    inventory.set_health(gpu, Health.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=life.now)
    life.run(60)
    world.set_node(gpu.node, NodeState.CORDONED, life)
    with as_staff():
        assert [hold.lease_id for hold in history.leases_on(gpu)] == [first.pk]
        of_card = [change.after for change in history.changes_of(gpu.node, gpu)]
        of_other = [change.after for change in history.changes_of(gpu.node, Gpu.objects.get(index=3))]
        of_node = [change.after for change in history.changes_of(gpu.node)]
        steps = [step.after for step in history.steps_of(first)]
    assert of_card == of_node == ["cordoned", "unhealthy"]
    assert of_other == ["cordoned"]
    assert steps[0] == "requested"
    assert steps[-1] == "released"
