"""Workload templates, access, and programs that end by themselves."""

import pytest

from broker.domain.workloads.templates import TEMPLATES
from broker.models import Cluster, Lease
from tests.broker.domain.workloads.test_workloads import KEY
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode
from tests.simulation import reload_lease

templates = pytest.mark.parametrize("template", TEMPLATES)
BATCH = {"workload": "batch", "command": "train"}


def of_template(world: World, template: str) -> Lease:
    """Launch a template with its own image."""
    wanted = {"image": "" if TEMPLATES[template].image else "registry.example/own:1", "ssh_keys": [KEY]}
    command = {"command": "sleep 9999"} if template == "batch" else {}
    return world.run(world.home(), world.offering(), workload=template, **wanted, **command)


@templates
def test_a_template_runs_and_leaves_nothing(template: str, world: World) -> None:
    world.stand(GpuNode(gpus=1))
    lease = of_template(world, template)
    world.asks(lease, gpu="1")
    world.end(lease)
    assert world.there() == 0


@templates
def test_a_template_says_how_to_get_in(template: str, world: World) -> None:
    world.stand(GpuNode(gpus=1))
    Cluster.objects.update(domain="leases.example", ingress="ingress/public", bastion="in.example")
    lease = of_template(world, template)
    ways = world.note_ways(lease)
    assert bool(ways) == bool(TEMPLATES[template].ports)
    world.end(lease)
    assert world.note_ways(lease) == []


def test_a_cluster_without_ingress_shows_no_connections(world: World) -> None:
    world.stand(GpuNode(gpus=1))
    assert world.note_ways(of_template(world, "jupyter")) == []


def test_a_batch_that_is_done_ends_its_lease(world: World) -> None:
    world.stand(GpuNode(gpus=1))
    lease = world.run(world.home(), world.offering(), "is done", **BATCH)
    assert world.until(lease, "released").end_reason == "by_tenant"


@pytest.mark.parametrize("program", ["fails", "takes too much memory"])
def test_a_batch_that_ends_badly_says_how(program: str, world: World) -> None:
    world.stand(GpuNode(gpus=1))
    lease = world.until(world.run(world.home(), world.offering(), program, **BATCH), "released")
    assert lease.end_reason == "by_tenant"


@pytest.mark.parametrize("program", ["fails", "takes too much memory"])
def test_a_session_whose_program_ends_is_started_again_and_stays(program: str, world: World) -> None:
    world.stand(GpuNode(gpus=1))
    lease = world.run(world.home(), world.offering(), program)
    world.until_true(lambda: "restarted" in world.ails(lease), "words of a restart")
    world.wait(600)
    world.until_true(lambda: "restarted" in world.ails(lease), "words of another")
    world.note(sorted(reload_lease(lease).conditions))
    world.end(lease)
    assert world.lasted(lease) >= 600  # it held its GPU all the time


def test_a_batch_over_two_nodes_ends_when_all_of_it_is_done(world: World) -> None:
    world.stand(GpuNode(gpus=1), GpuNode(gpus=1))
    lease = world.run(world.home(), world.offering(), "is done", quantity=2, **BATCH)
    world.until(lease, "released")


def test_the_place_of_a_batch_that_is_done_goes_to_the_next(world: World) -> None:
    world.stand(GpuNode(gpus=1))
    kestrel, what = world.home(), world.offering()
    first = world.run(kestrel, what, "is done", **BATCH)
    second = world.ask(kestrel, what)
    world.until(first, "released")
    world.until(second, "active")


def test_a_batch_that_was_extended_runs_on(world: World) -> None:
    world.stand(GpuNode(gpus=1))
    lease = world.run(world.home(), world.offering(), max_duration_s=600, **BATCH)
    world.extend(lease, 3600)
    world.wait(900)
    assert world.until(lease, "active").max_duration_s == 4200


def test_variables_and_arguments_of_an_own_image_are_taken(world: World) -> None:
    world.stand(GpuNode(gpus=1))
    wanted = {"env": {"A": "$(B)", "MODE": "ünïcode ✓"}, "command": "--port 80 'two words'"}
    world.end(world.run(world.home(), world.offering(), **wanted))
