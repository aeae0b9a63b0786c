"""A node is cut anew step by step, and nothing that goes wrong leaves it open or throws anybody out."""

from datetime import timedelta

import pytest

from broker.domain.repartition import Step
from broker.domain.states import LeaseState
from broker.models import Gpu, LayoutChange, Node, SimulatedNode
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes.inventory import NodeFound
from broker.provisioners.simulated_hands import SimulatedHands
from broker.services import joining, reconcile
from broker.services.layouts import cards, deciding, moving, stepping
from tenants.services.refusals import Stale
from tests.broker.services.layouts import ONES, THREES, Driver, ail, approved, cut_of, fixed, proposed
from tests.world import OPERATOR, Home, Life, fresh, home, offering

HAPPY = "planned closing draining labelling cutting opening done"


@pytest.fixture
def node(life: Life) -> Node:
    return fixed()[0]


@pytest.fixture
def kestrel(node: Node) -> Home:
    return home("Kestrel")


def wants_threes(kestrel: Home, life: Life) -> None:
    """Let somebody wait for what no card is cut into."""
    life.ask(kestrel, offering("3g.40gb"), quantity=2)
    life.run(180)


def test_a_plan_that_is_approved_becomes_another_layout_and_serves_who_waited(
    life: Life, node: Node, kestrel: Home
) -> None:
    waiting = life.ask(kestrel, offering("3g.40gb"), quantity=2)
    life.run(180)
    assert fresh(waiting).state == LeaseState.QUEUED
    driver = Driver(life, approved(node, life))
    assert driver.until(Step.DONE) < 120
    assert driver.path == HAPPY
    assert sorted(str(cards.cut_now(card)) for card in Gpu.objects.all()) == sorted([str(ONES), str(THREES)])
    assert not SimulatedNode.objects.get(node=node.pk).tainted
    life.run(30)
    assert fresh(waiting).state == LeaseState.ACTIVE


def test_nothing_new_is_placed_while_it_is_cut(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    small = life.ask(kestrel, offering("1g.10gb"))
    for _ in range(3):
        life.run(5)
        driver.on()
    assert fresh(small).state == LeaseState.QUEUED
    driver.until(Step.DONE)
    life.run(30)
    assert fresh(small).state == LeaseState.ACTIVE


def test_a_lease_is_waited_for_until_its_own_end(life: Life, node: Node, kestrel: Home) -> None:
    paid = life.lease(kestrel, offering("1g.10gb"), max_duration_s=1800)
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    for _ in range(100):
        life.go(5)
        driver.on(0)
    assert driver.step is Step.DRAINING
    assert driver.change.why == "1 place is still held; 1 pod still there"
    assert fresh(paid).state == LeaseState.ACTIVE
    life.go(1800)
    assert fresh(paid).end_reason == "expired"
    driver.until(Step.DONE)


def test_a_wedge_is_healed_without_a_human_within_twelve_minutes(
    life: Life, node: Node, kestrel: Home
) -> None:
    wants_threes(kestrel, life)
    ail(node, "wedges")
    driver = Driver(life, approved(node, life))
    assert driver.until(Step.DONE) <= 12 * 60
    assert driver.path == "planned closing draining labelling cutting nudging cutting opening done"
    assert driver.change.attempts == 2


def test_a_node_that_dawdles_is_left_to_it(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    ail(node, "dawdles")
    driver = Driver(life, approved(node, life))
    driver.until(Step.DONE, minutes=10)
    assert driver.path == HAPPY


@pytest.mark.parametrize("ills", [["fails"], ["wedges", "wedges", "wedges"]])
def test_what_fails_or_wedges_twice_is_quarantined_and_stays_closed(
    life: Life, node: Node, kestrel: Home, ills: list[str]
) -> None:
    wants_threes(kestrel, life)
    ail(node, *ills)
    driver = Driver(life, approved(node, life))
    driver.until(Step.QUARANTINED)
    assert not Gpu.objects.sellable().exists()
    assert SimulatedNode.objects.get(node=node.pk).tainted
    assert "failed" in driver.change.why or "2 times" in driver.change.why


@pytest.mark.parametrize(("back", "cut"), [(False, THREES), (True, ONES)])
def test_what_is_quarantined_is_tried_again_or_taken_back(
    life: Life, node: Node, kestrel: Home, back: bool, cut: object
) -> None:
    wants_threes(kestrel, life)
    ail(node, "fails")
    first = Driver(life, approved(node, life))
    first.until(Step.QUARANTINED)
    decide = deciding.take_back if back else deciding.again
    second = Driver(life, decide(first.change, why="looked at it", actor=OPERATOR, now=life.now))
    second.until(Step.DONE)
    assert cut in [cards.cut_now(card) for card in Gpu.objects.all()]
    assert Gpu.objects.sellable().count() == 2
    with pytest.raises(deciding.NotNow):
        decide(first.change, why="twice", actor=OPERATOR, now=life.now)


def test_a_change_is_called_off_until_the_node_is_told(life: Life, node: Node, kestrel: Home) -> None:
    paid = life.lease(kestrel, offering("1g.10gb"))
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.on()
    assert driver.on() is Step.DRAINING
    assert SimulatedNode.objects.get(node=node.pk).tainted
    deciding.cancel(driver.change, why="not today", actor=OPERATOR, now=life.now)
    assert not Gpu.objects.sellable().exists()  # the taint is there still
    assert driver.on() is Step.CANCELLED
    assert Gpu.objects.sellable().count() == 2
    assert not SimulatedNode.objects.get(node=node.pk).tainted
    assert fresh(paid).state == LeaseState.ACTIVE
    assert driver.on() is Step.CANCELLED


def test_once_told_it_cannot_be_called_off(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.until(Step.CUTTING)
    with pytest.raises(deciding.NotNow) as refused:
        deciding.cancel(driver.change, why="too late", actor=OPERATOR, now=life.now)
    assert "told to change already" in refused.value.detail


def test_a_plan_is_called_off_at_once(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    change = proposed(node, life)
    deciding.cancel(change, why="no", actor=OPERATOR, now=life.now)
    assert change.step == Step.CANCELLED
    assert Gpu.objects.sellable().count() == 2
    with pytest.raises(deciding.NotNow):
        deciding.approve(change, actor=OPERATOR, now=life.now)


def test_a_change_only_takes_steps_of_the_machine(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    with pytest.raises(ValueError, match="planned cannot become opening"):
        moving.move(proposed(node, life), Step.OPENING, why="a hurry", now=life.now)


def test_a_plan_for_what_has_changed_since_is_refused(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    change = proposed(node, life)
    cards.cut_as(Gpu.objects.order_by("index")[0], THREES)
    with pytest.raises(Stale):
        deciding.approve(change, actor=OPERATOR, now=life.now)


def test_a_node_out_of_service_is_not_cut(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    change = proposed(node, life)
    Node.objects.update(state="cordoned")
    change.node.refresh_from_db()
    with pytest.raises(deciding.NotNow):
        deciding.approve(change, actor=OPERATOR, now=life.now)


def test_two_operators_approve_one_plan_once(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    mine = proposed(node, life)
    theirs = LayoutChange.objects.select_related("node__cluster").get(pk=mine.pk)
    deciding.approve(theirs, actor=OPERATOR, now=life.now)
    with pytest.raises(Stale):
        deciding.approve(mine, actor=OPERATOR, now=life.now)


def test_a_silent_cluster_is_asked_again(
    life: Life, node: Node, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.until(Step.CUTTING)

    def silent(*args: object, **more: object) -> None:
        raise Unanswered("no route to host")

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedHands, "look", silent)
        assert driver.on() is Step.CUTTING
        assert driver.change.why == "the cluster does not answer: no route to host"
    driver.until(Step.DONE)


def test_two_workers_with_one_hint_do_it_once(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    LayoutChange.objects.update(claimed_until=life.now + stepping.CLAIM)
    assert driver.on(1) is Step.CLOSING
    assert stepping.due(now=life.now) == []
    assert driver.on(30) is Step.DRAINING  # that worker is dead
    assert stepping.due(now=life.now) == [("broker.recut", driver.change.pk, "")]


def test_a_worker_that_was_overtaken_changes_nothing(
    life: Life, node: Node, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    taint = SimulatedHands.taint

    def slow(self: SimulatedHands, *args: object, **more: object) -> None:
        taint(self, *args, **more)  # type: ignore[arg-type]
        monkeypatch.setattr(SimulatedHands, "taint", taint)
        driver.on(31)  # another worker, once our claim is over

    monkeypatch.setattr(SimulatedHands, "taint", slow)
    stepping.step(driver.change.pk, now=life.now)
    assert driver.step is Step.DRAINING
    assert driver.path == "planned closing draining"


def test_a_node_that_changes_while_it_is_looked_at_is_told_nothing_on_old_knowledge(
    life: Life, node: Node, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.until(Step.LABELLING)
    look = SimulatedHands.look

    def then_changes(self: SimulatedHands, *args: object, **more: object) -> object:
        seen = look(self, *args, **more)  # type: ignore[arg-type]
        SimulatedNode.objects.update(version=99)
        return seen

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedHands, "look", then_changes)
        assert driver.on() is Step.LABELLING
        assert driver.change.why == "the node changed while it was looked at"
    driver.until(Step.DONE)


def test_a_node_is_told_only_what_it_has_learned(
    life: Life, node: Node, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.until(Step.LABELLING)
    with monkeypatch.context() as patched:
        patched.setattr(SimulatedHands, "prepare", lambda *_, **__: timedelta(seconds=30))
        assert driver.on() is Step.LABELLING
        assert driver.change.why == "the node learns the layout for another 30 s"
    assert SimulatedNode.objects.get().config == ""
    driver.until(Step.DONE)


def test_a_taint_that_somebody_took_away_is_set_again(life: Life, node: Node, kestrel: Home) -> None:
    life.lease(kestrel, offering("1g.10gb"))
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.until(Step.DRAINING)
    SimulatedNode.objects.update(tainted=False)
    driver.on()
    assert SimulatedNode.objects.get().tainted


def test_a_cluster_that_nobody_can_cut_is_left_alone(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    node.cluster.provisioner = "elsewhere"
    node.cluster.save()
    assert driver.on() is Step.CLOSING


def test_a_node_without_cards_is_quarantined(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.until(Step.LABELLING)
    Gpu.objects.all().delete()
    assert driver.on() is Step.QUARANTINED
    assert cut_of(node) == {}


def test_what_a_node_reports_while_it_is_cut_is_worth_nothing(life: Life, node: Node, kestrel: Home) -> None:
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    driver.until(Step.CUTTING)
    silent = NodeFound(node.name, cards=(), problems=())
    joining.take_inventory(node.cluster, [silent], now=life.now)
    assert set(Gpu.objects.values_list("health", flat=True)) == {"healthy"}
    driver.until(Step.DONE)
    joining.take_inventory(node.cluster, [silent], now=life.now)
    assert set(Gpu.objects.values_list("health", flat=True)) == {"unhealthy"}


def test_cards_that_nobody_sees_while_their_node_is_cut_are_not_lost(
    life: Life, node: Node, kestrel: Home
) -> None:
    """It waits until nobody is there; should a lease be there all the same, it is not ended for that."""
    lease = life.lease(kestrel, offering("1g.10gb"))
    wants_threes(kestrel, life)
    driver = Driver(life, approved(node, life))
    LayoutChange.objects.update(step=Step.CUTTING)
    Gpu.objects.update(health="unhealthy", health_since=life.now)
    for _ in range(3):
        life.clock.at += timedelta(minutes=2)
        reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    assert fresh(lease).state == LeaseState.ACTIVE
    assert list(fresh(lease).conditions) == ["repartitioning"]
    LayoutChange.objects.filter(pk=driver.change.pk).update(step=Step.QUARANTINED)
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    assert fresh(lease).end_reason == "device_lost"
