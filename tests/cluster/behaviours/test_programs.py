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
    """Run a workload template with its own image."""
    wanted = {"image": "" if TEMPLATES[template].image else "registry.example/own:1", "ssh_keys": [KEY]}
    command = {"command": "sleep 9999"} if template == "batch" else {}
    return world.run(world.add_tenant(), world.offering(), workload=template, **wanted, **command)


@templates
def test_a_workload_template_runs_and_leaves_no_objects(template: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = of_template(world, template)
    world.check_limits(lease, gpu="1")
    world.end(lease)
    assert world.count_leases() == 0


@templates
def test_a_workload_template_shows_its_connections_while_it_runs(template: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    Cluster.objects.update(domain="leases.example", ingress="ingress/public", bastion="in.example")
    lease = of_template(world, template)
    ways = world.record_connections(lease)
    assert bool(ways) == bool(TEMPLATES[template].ports)
    world.end(lease)
    assert world.record_connections(lease) == []


def test_a_cluster_without_ingress_shows_no_connections(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    assert world.record_connections(of_template(world, "jupyter")) == []


def test_a_completed_batch_job_ends_its_lease(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering(), "is done", **BATCH)
    assert world.until(lease, "released").end_reason == "by_tenant"


@pytest.mark.parametrize("program", ["fails", "takes too much memory"])
def test_a_failed_batch_job_ends_its_lease_with_the_reason(program: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.until(world.run(world.add_tenant(), world.offering(), program, **BATCH), "released")
    assert lease.end_reason == "by_tenant"


@pytest.mark.parametrize("program", ["fails", "takes too much memory"])
def test_an_interactive_lease_restarts_its_program_and_stays_active(program: str, world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering(), program)
    world.until_true(lambda: "restarted" in world.condition_text(lease), "words of a restart")
    world.wait(600)
    world.until_true(lambda: "restarted" in world.condition_text(lease), "words of another")
    world.record(sorted(reload_lease(lease).conditions))
    world.end(lease)
    assert world.charged_seconds(lease) >= 600  # it held its GPU all the time


def test_a_batch_job_on_two_nodes_ends_when_all_pods_are_done(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1), GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering(), "is done", quantity=2, **BATCH)
    world.until(lease, "released")


def test_the_slot_of_a_completed_batch_job_is_reused(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel, what = world.add_tenant(), world.offering()
    first = world.run(kestrel, what, "is done", **BATCH)
    second = world.request_lease(kestrel, what)
    world.until(first, "released")
    world.until(second, "active")


def test_an_extended_batch_job_runs_beyond_its_first_deadline(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    lease = world.run(world.add_tenant(), world.offering(), max_duration_s=600, **BATCH)
    world.extend(lease, 3600)
    world.wait(900)
    assert world.until(lease, "active").max_duration_s == 4200


def test_a_custom_image_with_variables_and_arguments_runs(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    wanted = {"env": {"A": "$(B)", "MODE": "ünïcode ✓"}, "command": "--port 80 'two words'"}
    world.end(world.run(world.add_tenant(), world.offering(), **wanted))
