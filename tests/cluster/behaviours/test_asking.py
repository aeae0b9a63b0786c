"""Lease requests: limits of their values, quotas and refusals."""

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
    world.add_cluster(GpuNode(gpus=2))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_at_its_limits_runs(name: str, world: World) -> None:
    lease = world.run(world.add_tenant(), world.offering(), name=name)
    world.end(lease)
    assert world.count_leases() == 0


def test_two_leases_may_have_the_same_name(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    world.until_all([world.request_lease(kestrel, what, name="twin") for _ in range(2)], "active")
    assert world.count_leases() == 2


@pytest.mark.parametrize("wanted", WRONG.values(), ids=WRONG)
def test_an_invalid_request_is_refused_and_reaches_no_cluster(wanted: dict[str, Any], world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    world.refused(lambda: world.request_lease(kestrel, what, **wanted))
    world.wait(5)
    assert world.count_leases() == 0


def test_a_retired_offering_refuses_new_leases_and_keeps_running_ones(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    lease = world.run(kestrel, what)
    Offering.objects.filter(pk=what.pk).update(state="retired")
    assert world.refused(lambda: world.request_lease(kestrel, what)).code == "offering-retired"
    world.wait(300)
    world.until(lease, "active")


def test_an_ssh_lease_accepts_twenty_keys(world: World) -> None:
    world.run(world.add_tenant(), world.offering(), workload="ssh", image="", ssh_keys=[KEY] * 20)


def test_a_lease_beyond_the_quota_is_refused_until_another_ends(world: World) -> None:
    small, what = world.add_tenant(units=7), world.offering()
    lease = world.run(small, what)
    assert world.refused(lambda: world.request_lease(small, what)).code == "quota-exceeded"
    world.end(lease)
    world.run(small, what)


def test_a_project_quota_limits_only_that_project(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    child = kestrel.create_project("vision")
    kestrel.set_quota(QuotaKind.UNITS, 0, child)
    world.refused(lambda: world.request_lease(kestrel, what, project=child))
    world.run(kestrel, what)


def test_leases_of_two_projects_run_at_the_same_time(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    leases = [world.request_lease(kestrel, what, project=kestrel.create_project(name)) for name in ("vision", "speech")]
    world.until_all(leases, "active")
    world.end(*leases)
    assert world.count_leases() == 0


def test_unused_gpu_hours_are_returned_to_the_quota(world: World) -> None:
    kestrel, what = world.add_tenant(), world.offering()
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 7 * 1000 * 7200)
    lease = world.run(kestrel, what, max_duration_s=7200)
    world.refused(lambda: world.request_lease(kestrel, what, max_duration_s=7200))
    world.end(lease)
    world.run(kestrel, what, max_duration_s=3600)
