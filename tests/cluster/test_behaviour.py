"""The contract of every provisioner, simulated and real."""

from dataclasses import replace

import pytest

from broker.provisioners.base import ObservedState, spec_name
from tests.cluster.installed import some_id
from tests.cluster.stages import SimulatedStage, Stage, gone, ready, until


def test_a_new_lease_is_pending_with_a_text_and_then_ready(stage: Stage) -> None:
    first = stage.provisioner.ensure(stage.order(), now=stage.now)
    assert first.seen is ObservedState.PENDING
    assert first.text
    ready(stage, stage.order())
    assert stage.provisioner.observe(stage.order(), now=stage.now).seen is ObservedState.READY


def test_repeated_ensure_creates_one_lease(stage: Stage) -> None:
    for _ in range(3):
        stage.provisioner.ensure(stage.order(), now=stage.now)
    assert stage.names() == [stage.order().name]


def test_observing_creates_nothing(stage: Stage) -> None:
    assert stage.provisioner.observe(stage.order(), now=stage.now).seen is ObservedState.GONE
    assert stage.names() == []


def test_remove_is_pending_until_the_lease_is_gone(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    first = stage.provisioner.remove(order, now=stage.now)
    assert first.seen is ObservedState.PENDING
    assert stage.names() == [order.name]
    gone(stage, order)
    assert stage.names() == []


def test_removing_a_missing_lease_reports_gone(stage: Stage) -> None:
    gone(stage, stage.order())
    gone(stage, stage.order())


def test_removing_a_lease_right_after_ensure_leaves_no_objects(stage: Stage) -> None:
    order = stage.order()
    stage.provisioner.ensure(order, now=stage.now)
    gone(stage, order)
    assert stage.names() == []


def test_a_lease_being_removed_is_not_created_again(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    stage.provisioner.remove(order, now=stage.now)
    assert stage.provisioner.ensure(order, now=stage.now).seen is ObservedState.GONE


def test_generations_of_one_lease_are_created_and_removed_separately(stage: Stage) -> None:
    old, new = stage.order(1), stage.order(2)
    ready(stage, old)
    assert stage.provisioner.observe(new, now=stage.now).seen is ObservedState.GONE
    stage.provisioner.ensure(new, now=stage.now)
    assert sorted(stage.names()) == sorted([old.name, new.name])
    gone(stage, old)
    assert stage.names() == [new.name]
    ready(stage, new)


def test_a_missing_image_is_refused_with_its_name(stage: Stage) -> None:
    order = stage.order(image=stage.refused_image)
    seen = until(stage, lambda: stage.provisioner.ensure(order, now=stage.now), ObservedState.REFUSED, seconds=400)
    assert stage.refused_image in seen.text
    gone(stage, order)


def test_a_slow_image_is_pending_for_minutes(stage: Stage) -> None:
    order = stage.order(image=stage.slow_image)
    stage.provisioner.ensure(order, now=stage.now)
    stage.wait(200)
    assert stage.provisioner.observe(order, now=stage.now).seen is ObservedState.PENDING
    until(stage, lambda: stage.provisioner.observe(order, now=stage.now), ObservedState.READY, seconds=400)


def test_a_lost_node_is_reported_with_the_time_it_was_last_seen(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    stage.lose_node()
    stage.wait(10)
    seen = stage.provisioner.observe(order, now=stage.now)
    assert seen.seen is ObservedState.LOST
    assert seen.last_seen is not None
    assert stage.lost_at - stage.tolerance <= seen.last_seen <= stage.lost_at
    assert "is unreachable" in seen.text


@pytest.mark.deep
def test_a_removal_on_a_lost_node_is_confirmed_only_after_its_return(stage: Stage) -> None:
    order = stage.order()
    ready(stage, order)
    stage.lose_node()
    stage.provisioner.remove(order, now=stage.now)
    stage.wait(60)
    assert stage.provisioner.remove(order, now=stage.now).seen is ObservedState.LOST
    assert stage.names() == [order.name]
    stage.find_node()
    gone(stage, order)


def test_objects_without_a_lease_are_removed_by_name(stage: Stage) -> None:
    order = stage.order()
    order = replace(order, lease_id=some_id("lse"))
    order = replace(order, name=spec_name(order.lease_id, order.generation))
    stage.provisioner.ensure(order, now=stage.now)
    for _ in range(100):
        stage.provisioner.remove_named(order.name, now=stage.now)
        stage.wait(1)
        if order.name not in stage.provisioner.names():
            break
    assert order.name not in stage.provisioner.names()
    stage.provisioner.remove_named(order.name, now=stage.now)


def test_repeated_observations_of_one_order_are_equal(simulated_stage: SimulatedStage) -> None:
    stage, order = simulated_stage, simulated_stage.order()
    stage.provisioner.ensure(order, now=stage.now)
    stage.wait(1)
    seen = [stage.provisioner.observe(order, now=stage.now) for _ in range(3)]
    assert len({str(each) for each in seen}) == 1


def test_a_failed_gpu_is_reported_with_its_reason_and_ends_its_pod(simulated_stage: SimulatedStage) -> None:
    stage, order = simulated_stage, simulated_stage.order()
    ready(stage, order)
    stage.break_gpu()
    seen = stage.provisioner.observe(order, now=stage.now)
    assert seen.seen is ObservedState.LOST
    assert "XID 79" in seen.text
    gone(stage, order)


def test_names_contain_the_generation_and_are_unique() -> None:
    names = {spec_name(f"lse_{number:026d}", g) for number in range(100) for g in range(1, 20)}
    assert len(names) == 100 * 19
    assert all(len(name) <= 63 and name == name.lower() for name in names)
    assert spec_name("lse_abc", 12) == "l-abc-g12"
