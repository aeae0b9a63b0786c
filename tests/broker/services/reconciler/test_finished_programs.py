"""Leases whose own command finishes."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Allocation, Lease, SecretVersion
from broker.provisioners.base import Observation, ObservedState
from broker.provisioners.simulated import BRIEF_RUN, SimulatedProvisioner
from broker.services.leases.lifecycle import termination
from broker.services.reconciler import lease_reconciler
from broker.services.reconciler.observation_outcomes import ACTIVE_CHECK_INTERVAL
from tenants.services.rls import tenant_scope
from tests.broker.services.secrets.saved_secrets import VALUE, save_secret
from tests.simulation import (
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    transitions_of,
)


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def test_a_finished_lease_is_charged_until_its_command_ended(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), image="brief/job:1")
    sim.run_with_sweeps(int(ACTIVE_CHECK_INTERVAL.total_seconds()) + 30)
    over = reload_lease(lease)
    assert (over.state, over.end_reason) == (LeaseState.RELEASED, EndReason.BY_TENANT)
    assert lease.active_at is not None
    assert over.ended_at is not None
    assert abs(over.ended_at - lease.active_at - BRIEF_RUN) <= timedelta(seconds=1)
    assert next(step for step in transitions_of(lease) if step.after == "releasing").cause == "its command finished"
    assert not held_allocations(lease)


def test_a_command_that_ends_late_is_charged_only_until_the_lease_end(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=60)
    late = sim.now + timedelta(seconds=90)
    ended = Observation(ObservedState.ENDED, "its command failed: exit code 2", last_seen=late)
    monkeypatch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: ended)
    sim.clock.at = late + timedelta(seconds=5)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    over = reload_lease(lease)
    assert over.ended_at == lease.ends_at
    assert over.end_reason == EndReason.EXPIRED  # a batch's own deadline ends it a moment late


@pytest.mark.parametrize(
    ("unreadable", "cause"),
    [(False, "its command failed: exit code 1: token *** rejected, ***"), (True, "its command failed")],
)
def test_last_words_of_a_program_are_shown_without_its_secrets(
    unreadable: bool, cause: str, sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = sim.create_lease(kestrel, offering(), secrets={"HF_TOKEN": save_secret(kestrel).pk})
    if unreadable:
        with tenant_scope(kestrel.tenant.pk):
            SecretVersion.objects.all().delete()
    words = f"token {VALUE[:5]}\x1b[1m{VALUE[5:]} rejected, {VALUE[:-4]}"  # the end of the text is cut
    ended = Observation(ObservedState.ENDED, f"its command failed: exit code 1: {words}", last_seen=sim.now)
    monkeypatch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: ended)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert next(step for step in transitions_of(lease) if step.after == "releasing").cause == cause


def test_a_command_finished_before_its_lease_was_active_costs_nothing(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Observation(ObservedState.ENDED, "its command finished", last_seen=sim.now)
    monkeypatch.setattr(SimulatedProvisioner, "ensure", lambda *_, **__: ended)
    lease = sim.request_lease(kestrel, offering())
    sim.run(30)
    over: Lease = reload_lease(lease)
    assert over.state == LeaseState.RELEASED
    assert over.active_at is None


def test_a_cluster_clock_that_is_ahead_charges_nothing_in_the_future(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = sim.create_lease(kestrel, offering())
    sim.run(30)
    ended = Observation(ObservedState.ENDED, "its command finished", last_seen=sim.now + timedelta(seconds=3))
    monkeypatch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: ended)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert reload_lease(lease).ended_at == sim.now.replace(microsecond=0)


def test_a_slot_is_released_no_earlier_than_its_lease_ends(sim: Simulation, kestrel: TenantContext) -> None:
    """The observing worker's clock is older than the ending one's."""
    lease = sim.create_lease(kestrel, offering())
    sim.run(30)
    sim.clock.at = sim.now.replace(microsecond=100_000)
    sim.release_lease(lease)
    with tenant_scope(lease.tenant_id):
        termination.finish_release(reload_lease(lease), now=sim.now - timedelta(seconds=0.5))
        (place,) = Allocation.objects.filter(lease=lease)
    over = reload_lease(lease)
    assert over.state == LeaseState.RELEASED
    assert over.ended_at is not None
    assert place.released_at is not None
    assert place.released_at >= over.ended_at
