"""Valid requests run at their limits; invalid ones reach no cluster."""

from typing import Any

import pytest

from broker.models import Offering
from tenants.models import QuotaKind
from tests.broker.domain.workloads.test_workloads import KEY
from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode

NAMES = {
    "longest": "n" * 120,
    "unicode": "größte Läufe ✓ 東京",
    "shell": "a; rm -rf / $(id) `id`",
    "one": "x",
}
WRONG: dict[str, dict[str, Any]] = {
    "name too long": {"name": "n" * 121},
    "name of nothing": {"name": " "},
    "name with a bell": {"name": "a\x07b"},
    "too short": {"max_duration_s": 59},
    "none at all": {"quantity": 0},
    "no image": {"image": ""},
    "bad image": {"image": "UPPER case//image"},
    "every GPU": {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}},
    "preloaded": {"env": {"LD_PRELOAD": "/tmp/evil.so"}},
    "thousand variables": {"env": {f"V{n}": "1" for n in range(1000)}},
    "open quote": {"command": "echo 'open"},
    "unknown template": {"workload": "fortran"},
    "box without a key": {"workload": "ssh", "image": ""},
    "private key": {"workload": "ssh", "image": "", "ssh_keys": ["-----BEGIN PRIVATE KEY-----"]},
}


@pytest.fixture(autouse=True)
def _two_gpus(world: World) -> None:
    world.stand(GpuNode(gpus=2))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_at_its_limits_runs(name: str, world: World) -> None:
    lease = world.run(world.home(), world.offering(), name=name)
    world.end(lease)
    assert world.there() == 0


def test_two_leases_may_have_the_same_name(world: World) -> None:
    kestrel, what = world.home(), world.offering()
    world.until_all([world.ask(kestrel, what, name="twin") for _ in range(2)], "active")
    assert world.there() == 2


@pytest.mark.parametrize("wanted", WRONG.values(), ids=WRONG)
def test_an_invalid_request_is_refused_and_reaches_no_cluster(wanted: dict[str, Any], world: World) -> None:
    kestrel, what = world.home(), world.offering()
    world.refused(lambda: world.ask(kestrel, what, **wanted))
    world.wait(5)
    assert world.there() == 0


def test_a_retired_offering_refuses_new_leases_and_keeps_running_ones(world: World) -> None:
    kestrel, what = world.home(), world.offering()
    lease = world.run(kestrel, what)
    Offering.objects.filter(pk=what.pk).update(state="retired")
    assert world.refused(lambda: world.ask(kestrel, what)).code == "offering-retired"
    world.wait(300)
    world.until(lease, "active")


def test_an_ssh_lease_accepts_twenty_keys(world: World) -> None:
    world.run(world.home(), world.offering(), workload="ssh", image="", ssh_keys=[KEY] * 20)


def test_a_lease_beyond_the_quota_is_refused_until_another_ends(world: World) -> None:
    small, what = world.home(units=7), world.offering()
    lease = world.run(small, what)
    assert world.refused(lambda: world.ask(small, what)).code == "quota-exceeded"
    world.end(lease)
    world.run(small, what)


def test_a_project_quota_limits_only_that_project(world: World) -> None:
    kestrel, what = world.home(), world.offering()
    child = kestrel.create_project("vision")
    kestrel.set_quota(QuotaKind.UNITS, 0, child)
    world.refused(lambda: world.ask(kestrel, what, project=child))
    world.run(kestrel, what)


def test_leases_of_two_projects_run_at_the_same_time(world: World) -> None:
    kestrel, what = world.home(), world.offering()
    leases = [world.ask(kestrel, what, project=kestrel.create_project(name)) for name in ("vision", "speech")]
    world.until_all(leases, "active")
    world.end(*leases)
    assert world.there() == 0


def test_unused_gpu_hours_are_returned_to_the_quota(world: World) -> None:
    kestrel, what = world.home(), world.offering()
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 7 * 1000 * 7200)
    lease = world.run(kestrel, what, max_duration_s=7200)
    world.refused(lambda: world.ask(kestrel, what, max_duration_s=7200))
    world.end(lease)
    world.run(kestrel, what, max_duration_s=3600)
