"""Others make way for a lease that waits: a plan says for whom, operators accept it, and nobody else takes the room."""

from datetime import timedelta
from typing import Any

import pytest

from broker.domain.moves import PlanState
from broker.domain.states import LeaseState
from broker.models import Cluster, Gpu, Lease, Move, MovePlan, Volume
from broker.services import capacity
from broker.services.inventory import Rack
from broker.services.leases import openings
from broker.services.moving import choosing, deciding, proposing
from broker.services.moving.deciding import NotNow
from tenants.services.walls import as_tenant
from tests.broker.services.movers import (
    NOTICE_S,
    card_of,
    moves,
    no_contradiction,
    proposed,
    story,
)
from tests.world import (
    MODEL,
    OPERATOR,
    REGION,
    Home,
    Life,
    cards,
    fleet,
    fresh,
    held,
    home,
    offering,
    soft_offering,
)

CARD, S = "card", LeaseState


@pytest.fixture
def kestrel(life: Life) -> Home:
    return home("Kestrel")


@pytest.fixture
def swift(life: Life) -> Home:
    return home("Swift")


def alone_on_its_card(life: Life, owner: Home, count: int, **wanted: Any) -> list[Lease]:
    """Let so many small leases run, each on a card of its own, as leases that ended around them leave it."""
    stay, fillers = [], []
    for _ in range(count):
        stay.append(life.lease(owner, offering("1g.10gb"), max_duration_s=7200, **wanted))
        fillers += [life.lease(owner, offering("1g.10gb")) for _ in range(6)]
    for filler in fillers:
        life.release(filler)
    life.run(30)
    assert len({held(lease)[0].gpu_id for lease in stay}) == count
    return [fresh(lease) for lease in stay]


def in_vain(life: Life, owner: Home, profile: str = CARD, **wanted: Any) -> Lease:
    """Ask for what there is no room for just now."""
    lease = life.ask(owner, offering(profile), **wanted)
    life.run()
    assert fresh(lease).state == S.QUEUED
    return lease


def accept(life: Life, plan: MovePlan) -> None:
    deciding.accept(plan, why="it has waited long enough", actor=OPERATOR, now=life.now)


def test_a_gang_gets_the_cards_of_one_node_that_others_leave(life: Life, kestrel: Home, swift: Home) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=2))
    small = alone_on_its_card(life, kestrel, 2, movable=True)
    pinned = life.lease(swift, offering(CARD), max_duration_s=7200)
    gang = in_vain(life, swift, quantity=2, same_node=True)
    plan = proposed(life)
    assert (
        plan.reason
        == f"Makes room for 2 × {gang.offering.label} together on one node, which a lease waits for."
    )
    assert (plan.room_for, plan.gain_milli) == (gang.pk, 2000)
    drawn = {card["name"]: card for card in plan.cards}
    assert [card["after"] for card in drawn.values() if card.get("for")] == [[[0, 8, 2]]] * 2
    accept(life, plan)
    life.go(NOTICE_S + 90)
    plan.refresh_from_db()
    assert plan.state == PlanState.DONE
    assert {fresh(each).state for each in (*small, pinned, gang)} == {S.ACTIVE}
    assert len({place.gpu.node_id for place in held(gang)}) == 1
    assert len({card_of(lease).pk for lease in small}) == 1
    no_contradiction(life)


def test_nobody_younger_takes_what_becomes_free_for_who_waited_before(
    life: Life, kestrel: Home, swift: Home
) -> None:
    cards(4)
    alone_on_its_card(life, kestrel, 3, movable=True)
    gang = in_vain(life, swift, quantity=3)
    plan = proposed(life)
    assert len(moves(plan)) == 2
    accept(life, plan)
    life.go(NOTICE_S - 5)
    while "1:done" not in story(plan):
        life.run(1)
    merlin = home("Merlin")
    with as_tenant(merlin.tenant.pk):
        assert capacity.availability([offering(CARD)]) == {offering(CARD).pk: 2}
        assert openings.count([offering(CARD)], now=life.now) == {
            offering(CARD).pk: 0
        }  # they are for the gang
    younger = life.ask(merlin, offering(CARD))
    life.run(1)
    assert fresh(younger).waits_for == (
        f"Waits behind an older request for 3 × {gang.offering.label}, for which others are being moved out of the"
        " way now."
    )
    life.go(90)
    assert (fresh(gang).state, fresh(younger).state) == (S.ACTIVE, S.QUEUED)
    assert "older" not in fresh(younger).waits_for
    no_contradiction(life)


def test_one_whole_card_is_made_of_one_that_holds_little(life: Life, kestrel: Home, swift: Home) -> None:
    cards(2)
    alone_on_its_card(life, kestrel, 2, movable=True)
    waits = in_vain(life, swift)
    plan = proposed(life)
    assert (plan.room_for, plan.reason) == (
        waits.pk,
        f"Makes room for {waits.offering.label}, which a lease waits for.",
    )
    assert plan.gain_milli == 1000


def a_card_on_each_of_two_nodes(life: Life, owner: Home, **wanted: Any) -> list[Lease]:
    """Let a small lease that may be moved run on each of two nodes of one card."""
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1))
    return alone_on_its_card(life, owner, 2, movable=True, **wanted)


@pytest.mark.parametrize(
    ("profile", "wanted", "milli"),
    [
        ("3g.40gb", {"quantity": 2, "same_node": True}, 1000),
        ("3g.40gb", {"quantity": 3}, 1500),
        ("7g.80gb", {}, 1000),
    ],
)
def test_slices_get_room_where_smaller_ones_can_go_elsewhere(
    life: Life, kestrel: Home, swift: Home, profile: str, wanted: dict[str, Any], milli: int
) -> None:
    small = a_card_on_each_of_two_nodes(life, kestrel)
    waits = in_vain(life, swift, profile, **wanted)
    plan = proposed(life)
    assert (plan.room_for, len(moves(plan)), plan.gain_milli) == (waits.pk, 1, milli)
    accept(life, plan)
    life.go(NOTICE_S + 60)
    assert {fresh(each).state for each in (*small, waits)} == {S.ACTIVE}
    no_contradiction(life)


def test_a_gang_gets_cards_that_are_near_enough_to_each_other(life: Life, kestrel: Home, swift: Home) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=4, fabric=2, numa=4))
    alone_on_its_card(life, kestrel, 3, movable=True)
    waits = in_vain(life, swift, quantity=2, topology="nvlink")
    plan = proposed(life)
    assert plan.room_for == waits.pk
    given = Gpu.objects.filter(pk__in=[card["gpu"] for card in plan.cards if card.get("for")])
    assert {card.index // 2 for card in given} in ({0}, {1})
    assert given.count() == 2


def test_who_waits_for_what_moves_cannot_make_leaves_the_others_their_turn(
    life: Life, kestrel: Home, swift: Home
) -> None:
    a_card_on_each_of_two_nodes(life, kestrel)
    in_vain(life, swift, quantity=2)  # both small ones would have nowhere to go
    share = life.ask(swift, soft_offering())
    life.run()
    assert fresh(share).state == S.QUEUED  # of no pool in which anything is moved
    waits = in_vain(life, swift)
    assert proposed(life).room_for == waits.pk


def test_for_who_fits_as_it_is_nobody_moves(life: Life, kestrel: Home, swift: Home) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=3))
    alone_on_its_card(life, kestrel, 2, movable=True)
    waits = life.ask(swift, offering(CARD))
    with as_tenant(swift.tenant.pk):
        Lease.objects.filter(pk=waits.pk).update(waits_for="nobody has looked again since")
    assert proposed(life).room_for == ""


def test_a_plan_is_called_off_when_nobody_waits_for_it_any_more(
    life: Life, kestrel: Home, swift: Home
) -> None:
    small = a_card_on_each_of_two_nodes(life, kestrel)
    waits = in_vain(life, swift)
    plan = proposed(life)
    accept(life, plan)
    life.release(waits)
    life.go(NOTICE_S + 60)
    plan.refresh_from_db()
    assert (plan.state, fresh(small[0]).generation) == (PlanState.CANCELLED, small[0].generation)
    assert [move.why for move in moves(plan)] == ["called off before it began"]
    assert "cancelling" in story(plan)


def test_a_plan_for_nobody_is_not_accepted(life: Life, kestrel: Home, swift: Home) -> None:
    a_card_on_each_of_two_nodes(life, kestrel)
    waits = in_vain(life, swift)
    plan = proposed(life)
    life.release(waits)
    with pytest.raises(NotNow, match="Nobody waits"):
        accept(life, plan)
    life.run(30)
    (left,) = proposing.propose(Cluster.objects.get().pk, now=life.now)
    assert left.room_for == ""


def test_a_proposal_that_serves_as_well_stays_and_one_that_cannot_be_made_gives_way(
    life: Life, kestrel: Home, swift: Home
) -> None:
    fleet(Rack("north-1", REGION, MODEL, nodes=1, cards_per_node=3))
    small = alone_on_its_card(life, kestrel, 3, movable=True)
    waits = in_vain(life, swift)
    first = proposed(life)
    (move,) = moves(first)
    with as_tenant(move.tenant_id):  # the planner would choose another card now
        Move.objects.filter(pk=move.pk).update(to_start=5 if move.to_start == 1 else 1)
    assert proposed(life) == first
    life.release(next(each for each in small if each.pk == move.lease_id))
    life.run(30)
    assert fresh(waits).state != S.QUEUED
    again = in_vain(life, swift)
    second = proposed(life)
    assert (second.room_for, second == first) == (again.pk, False)
    first.refresh_from_db()
    assert first.state == PlanState.DECLINED


def test_a_tenant_whose_leases_were_moved_often_today_is_left_alone(
    life: Life, kestrel: Home, swift: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_card_on_each_of_two_nodes(life, kestrel)
    in_vain(life, swift)
    monkeypatch.setattr(choosing, "MOST_A_DAY", 1)
    plan = proposed(life)
    with as_tenant(kestrel.tenant.pk):
        Move.objects.filter(plan=plan).update(state="done", state_at=life.now)
    assert proposing.propose(Cluster.objects.get().pk, now=life.now) == []
    with as_tenant(kestrel.tenant.pk):
        Move.objects.filter(plan=plan).update(state_at=life.now - timedelta(days=1, seconds=1))
    assert len(proposing.propose(Cluster.objects.get().pk, now=life.now)) == 1


def test_who_is_bound_to_another_cluster_or_has_a_plan_there_gets_none_here(
    life: Life, kestrel: Home, swift: Home
) -> None:
    a_card_on_each_of_two_nodes(life, kestrel)
    home_of_it = life.volume(swift, "home")
    waits = in_vain(life, swift, volume=home_of_it.pk)
    here = Cluster.objects.get()
    far = Cluster.objects.create(name="far", region=REGION, driver=here.driver, created_at=life.now)
    with as_tenant(swift.tenant.pk):
        Volume.objects.filter(pk=home_of_it.pk).update(cluster=far)
    assert [plan.room_for for plan in proposing.propose(here.pk, now=life.now)] == [""]
    with as_tenant(swift.tenant.pk):
        Volume.objects.filter(pk=home_of_it.pk).update(cluster=here)
    (plan,) = proposing.propose(here.pk, now=life.now)
    assert plan.room_for == waits.pk
    MovePlan.objects.filter(pk=plan.pk).update(cluster=far)
    assert [plan.room_for for plan in proposing.propose(here.pk, now=life.now)] == [""]


def test_clusters_are_planned_by_themselves_where_somebody_waits_and_others_may_be_moved(
    life: Life, kestrel: Home, swift: Home
) -> None:
    def planned(hours: float = 0) -> list[str]:
        at = (life.now + timedelta(hours=hours)).replace(minute=0, second=0)
        return [subject for _, subject, _ in proposing.clusters_to_plan(now=at if hours else life.now)]

    small = a_card_on_each_of_two_nodes(life, kestrel)
    here = Cluster.objects.get().pk
    life.run(2 * proposing.SWEEP_S)
    assert planned() == []
    assert planned(hours=3) == [here]  # at noon, whoever waits
    waits = in_vain(life, swift)
    assert planned() == [here]
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk__in=[each.pk for each in small]).update(movable=False)
    assert (planned(), planned(hours=3)) == ([], [])
    assert fresh(waits).state == S.QUEUED


def test_a_card_that_could_be_whole_again_is_planned_when_a_lease_beside_has_ended(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned() -> list[str]:
        return [subject for _, subject, _ in proposing.clusters_to_plan(now=life.now)]

    def one_more_comes_and_goes() -> None:
        life.release(life.lease(kestrel, offering("1g.10gb")))
        life.run(30)

    a_card_on_each_of_two_nodes(life, kestrel)
    here = Cluster.objects.get().pk
    assert planned() == [here]  # what had filled the cards is gone
    plan = proposed(life)
    assert (plan.room_for, plan.gain_milli) == ("", 1000)
    deciding.decline(plan, why="not today", actor=OPERATOR, now=life.now)
    life.run(2 * proposing.SWEEP_S)
    one_more_comes_and_goes()
    assert planned() == []  # it would be the same again
    monkeypatch.setattr(proposing, "WINDOW_S", 1800)
    life.run(1800)
    assert planned() == []
    one_more_comes_and_goes()
    assert planned() == [here]
