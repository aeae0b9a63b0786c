"""What every provisioner promises, asked of each: to add one, add its stage to STAGES.

A stage makes the provisioner, prepares orders on nodes that exist, lets time pass, and can break things on request.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

import pytest

from broker.models import Gpu, Health, Node, NodeState
from broker.provisioners.base import Observation, Order, Provisioner, Seen, Slice, order_name
from broker.provisioners.simulated import SimulatedProvisioner
from tests.world import NOW, cards

LEASE = "lse_01m7ybehaviour0000000000000"


class Stage(Protocol):
    """A provisioner with the world it acts in."""

    provisioner: Provisioner
    now: datetime

    def order(self, generation: int = 1, *, image: str = "") -> Order: ...
    def wait(self, seconds: float) -> None: ...
    def lose_node(self) -> None: ...
    def find_node(self) -> None: ...
    def break_card(self) -> None: ...


@dataclass
class SimulatedStage:
    provisioner: Provisioner
    now: datetime = NOW

    def order(self, generation: int = 1, *, image: str = "") -> Order:
        card = Gpu.objects.select_related("node").order_by("index")[0]
        place = Slice(card.node_id, card.pk, "1g.10gb", 0, 1)
        return Order(order_name(LEASE, generation), LEASE, generation, self.now, image, "", (place,))

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def lose_node(self) -> None:
        Node.objects.update(state=NodeState.LOST, state_since=self.now)

    def find_node(self) -> None:
        Node.objects.update(state=NodeState.READY, state_since=self.now)

    def break_card(self) -> None:
        Gpu.objects.filter(index=0).update(
            health=Health.UNHEALTHY, health_reason="XID 79", health_since=self.now
        )


def simulated() -> Stage:
    cards(2)
    return SimulatedStage(SimulatedProvisioner())


STAGES: dict[str, Callable[[], Stage]] = {"simulated": simulated}


@pytest.fixture(params=sorted(STAGES))
def stage(request: pytest.FixtureRequest, db: None) -> Stage:
    return STAGES[request.param]()


def until(stage: Stage, look: Callable[[], Observation], wanted: Seen, *, seconds: int = 120) -> Observation:
    """Look again and again, as often as the provisioner itself thinks it worth, until it says so."""
    for _ in range(1000):
        seen = look()
        if seen.seen is wanted:
            return seen
        assert seen.again_in_s > 0
        stage.wait(min(seen.again_in_s, 5.0))
        assert stage.now < NOW + timedelta(seconds=seconds), f"still {seen}"
    raise AssertionError("looked a thousand times")


def ready(stage: Stage, order: Order) -> None:
    until(stage, lambda: stage.provisioner.ensure(order, now=stage.now), Seen.READY)


def test_an_order_is_pending_with_words_and_then_ready(stage: Stage) -> None:
    first = stage.provisioner.ensure(stage.order(), now=stage.now)
    assert first.seen is Seen.PENDING
    assert first.text
    ready(stage, stage.order())
    assert stage.provisioner.observe(stage.order(), now=stage.now).seen is Seen.READY


def test_ensuring_twice_makes_one(stage: Stage) -> None:
    for _ in range(3):
        stage.provisioner.ensure(stage.order(), now=stage.now)
    assert stage.provisioner.names() == [stage.order().name]


def test_the_same_order_takes_as_long_whoever_looks(stage: Stage) -> None:
    order = stage.order()
    stage.provisioner.ensure(order, now=stage.now)
    stage.wait(1)
    seen = [stage.provisioner.observe(order, now=stage.now) for _ in range(3)]
    assert len({str(each) for each in seen}) == 1


def test_observing_makes_nothing(stage: Stage) -> None:
    assert stage.provisioner.observe(stage.order(), now=stage.now).seen is Seen.GONE
    assert stage.provisioner.names() == []


def test_removing_is_done_only_once_it_is_gone(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    first = stage.provisioner.remove(order, now=stage.now)
    assert first.seen is Seen.PENDING
    assert stage.provisioner.names() == [order.name]
    until(stage, lambda: stage.provisioner.remove(order, now=stage.now), Seen.GONE)
    assert stage.provisioner.names() == []


def test_removing_what_never_was_or_is_gone_already_says_gone(stage: Stage) -> None:
    assert stage.provisioner.remove(stage.order(), now=stage.now).seen is Seen.GONE


def test_what_is_going_is_not_made_ready_again(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    stage.provisioner.remove(order, now=stage.now)
    assert stage.provisioner.ensure(order, now=stage.now).seen is Seen.GONE


def test_generations_of_one_lease_are_different_things(stage: Stage) -> None:
    old, new = stage.order(1), stage.order(2)
    ready(stage, old)
    assert stage.provisioner.observe(new, now=stage.now).seen is Seen.GONE
    stage.provisioner.ensure(new, now=stage.now)
    assert sorted(stage.provisioner.names()) == sorted([old.name, new.name])


def test_an_image_that_does_not_exist_is_refused_in_words(stage: Stage) -> None:
    order = stage.order(image="refuse/nothing:1")
    seen = until(stage, lambda: stage.provisioner.ensure(order, now=stage.now), Seen.REFUSED)
    assert "refuse/nothing:1" in seen.text
    until(stage, lambda: stage.provisioner.remove(order, now=stage.now), Seen.GONE)


def test_a_slow_image_is_pending_for_minutes(stage: Stage) -> None:
    order = stage.order(image="slow/image")
    stage.provisioner.ensure(order, now=stage.now)
    stage.wait(200)
    assert stage.provisioner.observe(order, now=stage.now).seen is Seen.PENDING
    until(stage, lambda: stage.provisioner.observe(order, now=stage.now), Seen.READY, seconds=400)


def test_a_lost_node_is_told_with_the_last_sign_of_life(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    lost_at = stage.now
    stage.lose_node()
    stage.wait(10)
    seen = stage.provisioner.observe(order, now=stage.now)
    assert (seen.seen, seen.last_seen) == (Seen.LOST, lost_at)
    assert "lost contact" in seen.text


def test_a_lost_node_confirms_nothing_until_it_is_back(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    stage.lose_node()
    stage.provisioner.remove(order, now=stage.now)
    stage.wait(60)
    assert stage.provisioner.remove(order, now=stage.now).seen is Seen.LOST
    assert stage.provisioner.names() == [order.name]
    stage.find_node()
    until(stage, lambda: stage.provisioner.remove(order, now=stage.now), Seen.GONE)


def test_a_broken_card_is_told_with_its_reason_and_lets_its_pod_go(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    stage.break_card()
    seen = stage.provisioner.observe(order, now=stage.now)
    assert seen.seen is Seen.LOST
    assert "XID 79" in seen.text
    until(stage, lambda: stage.provisioner.remove(order, now=stage.now), Seen.GONE)


def test_what_belongs_to_no_lease_can_be_removed_by_its_name(stage: Stage) -> None:
    order = replace(stage.order(), lease_id="lse_unknown")
    stage.provisioner.ensure(order, now=stage.now)
    for _ in range(100):
        stage.provisioner.remove_named(order.name, now=stage.now)
        stage.wait(1)
    assert stage.provisioner.names() == []
    stage.provisioner.remove_named(order.name, now=stage.now)


def test_names_carry_the_fence_and_never_meet() -> None:
    names = {order_name(f"lse_{number:026d}", g) for number in range(100) for g in range(1, 20)}
    assert len(names) == 100 * 19
    assert all(len(name) <= 63 and name == name.lower() for name in names)
    assert order_name("lse_abc", 12) == "l-abc-g12"
