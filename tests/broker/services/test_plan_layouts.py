"""Plans follow what is asked for, and are only rows until somebody says yes."""

from datetime import timedelta

import pytest

from broker import tasks
from broker.domain.repartition import Step
from broker.models import Cluster, Gpu, LayoutChange, LayoutStep, Node, NodeState
from broker.provisioners.base import Unanswered
from broker.provisioners.simulated_hands import SimulatedHands
from broker.services.layouts import cards, deciding, planning
from broker.services.layouts.pools import pools_of
from broker.services.leases.request import PlacementImpossible
from ports import doorbell
from tenants.services.refusals import Stale
from tests.broker.services.layouts import ONES, THREES, fixed, proposed
from tests.world import OPERATOR, Home, Life, fresh, held, home, offering, soft_offering


@pytest.fixture
def node(life: Life) -> Node:
    return fixed()[0]


@pytest.fixture
def kestrel(node: Node) -> Home:
    return home("Kestrel")


def planned(node: Node, life: Life) -> list[LayoutChange]:
    return planning.propose(node.cluster_id, now=life.now)


def test_nothing_is_planned_for_what_waits_only_a_moment(life: Life, node: Node, kestrel: Home) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(60)
    assert planned(node, life) == []
    life.run(120)
    (change,) = planned(node, life)
    assert change.gain_milli == 499
    assert LayoutStep.objects.get(change=change).why.startswith("1 card cut anew would serve 0.")


def test_a_plan_that_says_the_same_stays_and_another_one_takes_its_place(
    life: Life, node: Node, kestrel: Home
) -> None:
    lease = life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    first = proposed(node, life)
    assert [change.pk for change in planned(node, life)] == [first.pk]
    life.release(lease)
    life.ask(kestrel, offering("7g.80gb"))
    life.run(180)
    (second,) = planned(node, life)
    assert second.pk != first.pk
    first.refresh_from_db()
    assert (first.step, first.why) == (Step.CANCELLED, "another plan took its place")
    for _ in range(2):
        assert [change.pk for change in planned(node, life)] == [second.pk]


def test_a_card_with_a_lease_keeps_its_cut(life: Life, node: Node, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering("1g.10gb"), max_duration_s=1800)
    life.ask(kestrel, offering("3g.40gb"), quantity=2)
    life.run(180)
    card = Gpu.objects.get(pk=held(lease)[0].gpu_id)
    (change,) = planned(node, life)
    assert change.cuts[card.index] == ONES
    assert change.cuts[1 - card.index] == THREES


def test_a_node_that_would_stand_closed_for_long_is_left_alone(life: Life, node: Node, kestrel: Home) -> None:
    life.lease(kestrel, offering("1g.10gb"), max_duration_s=20_000)
    life.ask(kestrel, offering("3g.40gb"), quantity=2)
    life.run(180)
    assert planned(node, life) == []


def test_a_lease_that_is_not_active_yet_has_no_end_to_wait_for(life: Life, node: Node, kestrel: Home) -> None:
    life.ask(kestrel, offering("1g.10gb"), image="slow/image")
    life.ask(kestrel, offering("3g.40gb"), quantity=2)
    life.run(180)
    assert planned(node, life) == []


@pytest.mark.parametrize("state", [NodeState.CORDONED, NodeState.LOST])
def test_only_nodes_in_service_are_planned(life: Life, node: Node, kestrel: Home, state: NodeState) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    Node.objects.update(state=state)
    assert planned(node, life) == []


def test_a_node_with_a_broken_card_is_left_alone(life: Life, node: Node, kestrel: Home) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    Gpu.objects.filter(index=0).update(health="unhealthy")
    assert planned(node, life) == []


def test_cards_cut_for_their_leases_and_shared_cards_are_no_pool(life: Life, node: Node) -> None:
    assert [pool.model for pool in pools_of(node.cluster_id, now=life.now)] == ["H100-80GB"]
    Gpu.objects.filter(index=1).update(
        fixed_layout=[{"profile": "half", "start": 0, "size": 4, "isolation": "soft"}]
    )
    assert pools_of(node.cluster_id, now=life.now) == []
    Gpu.objects.update(layout_policy="dynamic", fixed_layout=[])
    assert pools_of(node.cluster_id, now=life.now) == []


def test_a_node_that_calls_its_slices_cards_is_never_cut_anew(life: Life, node: Node, kestrel: Home) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    (change,) = planned(node, life)
    for card in Gpu.objects.all():
        card.fixed_layout = [{**each, "asks": "nvidia.com/gpu"} for each in card.fixed_layout]
        card.save()
    with pytest.raises(Stale):
        deciding.approve(change, actor=OPERATOR, now=life.now)
    assert planned(node, life) == []


def test_demand_is_what_runs_waits_and_ended_lately(life: Life, node: Node, kestrel: Home) -> None:
    soft_offering()
    life.lease(kestrel, offering("1g.10gb"))
    life.release(life.lease(kestrel, offering("1g.10gb")))
    life.ask(kestrel, offering("2g.20gb"), quantity=2)
    life.run(300)
    (pool,) = pools_of(node.cluster_id, now=life.now)
    assert pool.demand == {"1g.10gb": 1500, "2g.20gb": 2000}
    life.clock.at += timedelta(minutes=31)
    (pool,) = pools_of(node.cluster_id, now=life.now)
    assert pool.demand["1g.10gb"] == 1000


def test_a_cluster_that_cuts_its_nodes_itself_begins_at_once(
    life: Life, node: Node, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorbell, "send", lambda *hint: None)
    waiting = life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    assert "nodes are cut anew" in fresh(waiting).waits_for
    tasks.sweep_all()
    tasks.plan_layouts(node.cluster_id)
    life.go(180)
    assert fresh(waiting).state == "active"
    assert LayoutStep.objects.get(step="closing").actor_label == "broker"


def test_a_cluster_that_asks_first_only_plans(life: Life, node: Node, kestrel: Home) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    Cluster.objects.update(recuts=False)
    planning.carry_out(node.cluster_id, now=life.now)
    assert LayoutChange.objects.get().step == Step.PLANNED


def test_a_shape_that_no_card_will_be_cut_into_is_refused_at_the_door(
    life: Life, node: Node, kestrel: Home
) -> None:
    Cluster.objects.update(recuts=False)
    with pytest.raises(PlacementImpossible):
        life.ask(kestrel, offering("3g.40gb"), quantity=2)


def test_a_node_that_was_cut_rests_for_a_while(life: Life, node: Node, kestrel: Home) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    planning.carry_out(node.cluster_id, now=life.now)
    life.go(150)
    assert LayoutChange.objects.get().step == Step.DONE
    life.ask(kestrel, offering("7g.80gb"))
    life.run(300)
    assert planned(node, life) == []
    life.go(3600)
    assert len(planned(node, life)) == 1


def test_what_a_node_says_it_can_is_all_that_is_planned(
    life: Life, node: Node, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    tells(monkeypatch, {node.pk: {"1g.10gb": 7, "4g.40gb": 1}})
    assert planned(node, life) == []

    def silent(*_: object) -> None:
        raise Unanswered("no route to host")

    monkeypatch.setattr(SimulatedHands, "profiles", silent)
    assert planned(node, life) == []
    monkeypatch.undo()
    assert len(planned(node, life)) == 1


def tells(monkeypatch: pytest.MonkeyPatch, told: dict[str, dict[str, int]]) -> None:
    monkeypatch.setattr(SimulatedHands, "profiles", lambda _, machines: told)


def test_a_node_that_does_not_say_what_it_can_keeps_its_cut(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute, other = fixed(nodes=2, cards_per_node=1)
    waiting = life.ask(home("Kestrel"), offering("3g.40gb"), quantity=4)
    life.run(180)
    tells(monkeypatch, {other.pk: {"1g.10gb": 7, "3g.40gb": 2}})
    (change,) = planned(mute, life)
    assert change.node == other
    assert fresh(waiting).state == "queued"
    tells(monkeypatch, {})
    assert planned(mute, life) == []
    monkeypatch.undo()
    assert {each.node for each in planned(mute, life)} == {mute, other}


def test_nodes_that_differ_become_only_what_all_of_them_can(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = fixed(nodes=2, cards_per_node=1)
    life.ask(home("Kestrel"), offering("3g.40gb"), quantity=4)
    life.run(180)
    tells(monkeypatch, {one.pk: {"1g.10gb": 7, "3g.40gb": 2}, other.pk: {"1g.10gb": 7}})
    assert planned(one, life) == []
    tells(monkeypatch, {one.pk: {"1g.10gb": 7, "3g.40gb": 2}, other.pk: {"1g.10gb": 7, "3g.40gb": 1}})
    cuts = [dict(cut.counts) for each in planned(one, life) for cut in each.cuts.values()]
    assert [cut.get("3g.40gb") for cut in cuts] == [1, 1]


def test_at_rest_no_node_is_asked_what_it_can(
    life: Life, node: Node, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(SimulatedHands, "profiles", lambda _, machines: asked.append(1) or {node.pk: None})
    life.lease(kestrel, offering("1g.10gb"), max_duration_s=3600)
    assert planned(node, life) == []
    assert asked == []
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    assert len(planned(node, life)) == 1
    assert asked == [1]


def test_a_cluster_that_nobody_can_cut_is_not_planned(life: Life, node: Node, kestrel: Home) -> None:
    life.ask(kestrel, offering("3g.40gb"))
    life.run(180)
    Cluster.objects.update(provisioner="elsewhere")
    assert planned(node, life) == []


def test_every_cluster_with_cards_of_a_fixed_cut_is_looked_at(life: Life, node: Node) -> None:
    assert planning.clusters_to_plan() == [("broker.plan_layouts", node.cluster_id, "")]
    Gpu.objects.update(layout_policy="dynamic")
    assert planning.clusters_to_plan() == []


def test_uncut_cards_are_cut_and_left_whole_by_the_same_rules(life: Life) -> None:
    (node,) = fixed(cut=cards.NOTHING.of(["card"]))
    kestrel = home("Kestrel")
    whole = life.ask(kestrel, offering("card"), max_duration_s=600)
    slices = life.ask(kestrel, offering("1g.10gb"), quantity=3)
    life.run(180)
    change = proposed(node, life)
    assert sorted(map(str, change.cuts.values())) == ["1 × card", "7 × 1g.10gb"]
    deciding.approve(change, actor=OPERATOR, now=life.now)
    life.go(900)
    assert (fresh(whole).end_reason, fresh(slices).state) == ("expired", "active")
