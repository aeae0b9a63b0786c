"""A short random run on a control plane; `python -m tests.chaos.kubernetes` is long."""

import time
from contextlib import ExitStack
from typing import Any

import pytest
from cryptography.fernet import Fernet

from broker.models import Lease
from broker.services.leases.lifecycle import termination
from tenants.services.rls import tenant_scope
from tests.architecture.faults import FAULTS
from tests.chaos import kubernetes_checks as checks
from tests.chaos import kubernetes_keeping as keeping
from tests.chaos.kubernetes import Report, live
from tests.chaos.kubernetes_faults import STEPS
from tests.chaos.kubernetes_played import PLAYED
from tests.chaos.kubernetes_world import IMAGE_THAT_RUNS, World
from tests.controlplane.fixtures import OwnControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.django_db, pytest.mark.timeout(600)]
SEED = 20261121


@pytest.fixture(autouse=True)
def _keys(settings: Any) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()


def test_a_run_of_two_hundred_random_steps_is_clean(own_control_plane: OwnControlPlane) -> None:
    report = live(own_control_plane(), steps=200, seed=SEED)
    assert report.is_clean, report
    assert report.steps == 200
    assert sum(report.leases.values()) > 5
    assert len(report.done) > 10


def test_a_run_with_too_few_active_leases_is_not_clean() -> None:
    assert Report(SEED, steps=1000, became_active=10).is_clean
    assert not Report(SEED, steps=1000, became_active=9).is_clean


def test_every_fault_is_drawn_in_ten_thousand_steps() -> None:
    assert min(STEPS.values()) / sum(STEPS.values()) * 10_000 >= 9
    assert PLAYED.keys() == FAULTS.keys()
    assert {step for steps in PLAYED.values() for step in steps} <= STEPS.keys()


def test_the_checks_report_a_lease_that_was_not_ended(own_control_plane: OwnControlPlane) -> None:
    """An active lease is reported by its pod, allocation and quota."""
    plane = own_control_plane()
    witness = checks.Witness(plane.api)
    witness.start()
    with ExitStack() as stack:
        stack.callback(witness.over.set)
        world = stack.enter_context(World(plane, SEED))
        world.ask(IMAGE_THAT_RUNS, "1g.10gb", max_duration_s=3600)
        until(world, "active")
        left = checks.leaked(world)
        assert any("pods" in each for each in left)
        assert any("place of" in each for each in left)
        assert any("units of" in each for each in left)
        assert checks.overshoot(world) == 0
        (lease,) = world.leases("active")
        with tenant_scope(lease.tenant_id):
            Lease.objects.filter(pk=lease.pk).update(quantity=100)
        assert checks.overshoot(world) == 1
        assert (lease.pk, lease.generation) in witness.since


def test_the_checks_report_uncharged_pod_seconds(
    own_control_plane: OwnControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plant a bug that backdates the end to the start."""
    plane = own_control_plane()
    witness = checks.Witness(plane.api)
    witness.start()
    with ExitStack() as stack:
        stack.callback(witness.over.set)
        world = stack.enter_context(World(plane, SEED))
        for planted in (False, True):
            world.ask(IMAGE_THAT_RUNS, "1g.10gb", max_duration_s=3600)
            (lease,) = until(world, "active")
            ran = time.monotonic()
            while time.monotonic() < ran + 6:
                world.turn()
            if planted:
                monkeypatch.setattr(termination, "charged_until", lambda lease, now, at=None: lease.active_at or now)
            world.sim.release_lease(lease)
            while world.leases("releasing"):
                world.turn()
            found = checks.held(world, witness)
            assert (found["lost"] >= 4) is planted, found
            assert (lease.pk, lease.generation) in {each.life for each in witness.held}


def test_the_checks_report_faults_of_volumes_and_stopped_leases(own_control_plane: OwnControlPlane) -> None:
    plane = own_control_plane()
    with World(plane, SEED) as world:
        owner = world.homes[0]
        volume = world.sim.create_volume(owner, "home")
        world.ask(IMAGE_THAT_RUNS, "1g.10gb", owner=owner, max_duration_s=3600, volume=volume.pk)
        (lease,) = until(world, "active")
        keeping.look(world, {(lease.pk, lease.generation)})
        assert world.unexpected == []
        world.sim.stop_lease(lease, owner)
        (lease,) = until(world, "stopped")
        keeping.look(world, set())
        assert world.unexpected == []
        assert any("persistentvolumeclaims" in each for each in checks.leaked(world))
        assert not [*keeping.wrong_times(), *keeping.wrong_hours(world)]

        keeping.look(world, {(lease.pk, lease.generation)})
        (claim,) = keeping.claims_of(world)
        plane.api.delete(plane.api.path({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}))
        keeping.look(world, set())
        with tenant_scope(lease.tenant_id):
            Lease.objects.filter(pk=lease.pk).update(
                quota_uses={"units": {"amount": 1, "parts": []}}, active_seconds=9999
            )
        keeping.look(world, set())
        text = " ".join(world.unexpected)
        for words in ("a pod of it runs", "is lost", "is stopped and holds", "quotas match holdings"):
            assert words in text
        assert any("spent 9999 s" in each for each in keeping.wrong_times())


def until(world: World, state: str) -> list[Lease]:
    end = time.monotonic() + 60
    while not (found := world.leases(state)):
        assert time.monotonic() < end, [each.progress for each in world.leases()]
        world.turn()
    return found
