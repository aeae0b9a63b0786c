"""Leases of an unreachable cluster: charges, expiry and slots."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.provisioners.base import ClusterUnreachable, Observation
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.reconciler import lease_reconciler
from broker.services.reconciler.lease_reconciler import CLAIM_TIME, MAX_UNFINISHED_CLAIMS
from tenants.services.rls import tenant_scope
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

HOUR, SOON = 3600, timedelta(seconds=15)


class Silence:
    """Makes every simulated cluster unreachable while it is active."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch, self.calls = patch, 0

    def begin(self) -> None:
        def unanswered(*_: object, **__: object) -> Observation:
            self.calls += 1
            raise ClusterUnreachable("timed out after 5 s")

        for call in ("ensure", "observe", "remove", "names", "remove_named"):
            self.patch.setattr(SimulatedProvisioner, call, unanswered)

    def end(self) -> None:
        self.patch.undo()


def pass_hours(sim: Simulation, hours: int) -> None:
    """Let hours pass with a sweep every ten minutes."""
    for _ in range(6 * hours):
        sim.messages.clear()  # messages keep coming; the sweep alone must do
        sim.clock.at += timedelta(minutes=10)
        sim.sweep()


@pytest.fixture
def silence() -> Iterator[Silence]:
    silence = Silence(pytest.MonkeyPatch())
    yield silence
    silence.end()


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def active_seconds(lease: Lease) -> float:
    """Sum what is charged: from each step that made it active to the next."""
    steps = transitions_of(lease)
    spans = [after.at - step.at for step, after in pairwise(steps) if step.after == "active"]
    return sum(span.total_seconds() for span in spans)


@pytest.mark.deep
def test_a_lease_that_expires_in_a_long_outage_is_charged_until_last_seen(
    sim: Simulation, kestrel: TenantContext, silence: Silence
) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=HOUR))
    sim.run_with_sweeps(600)
    seen_at = reload_lease(lease).seen_at
    assert lease.active_at
    assert seen_at
    assert seen_at > lease.active_at + timedelta(minutes=3)
    silence.begin()
    pass_hours(sim, 2)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason) == ("releasing", "expired")
    assert ended.ended_at == seen_at.replace(microsecond=0)
    pass_hours(sim, 3)
    assert active_seconds(lease) == (ended.ended_at - lease.active_at).total_seconds() < HOUR
    silence.end()


def test_a_short_outage_at_expiry_does_not_change_the_charge(
    sim: Simulation, kestrel: TenantContext, silence: Silence
) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=HOUR))
    assert lease.ends_at
    while lease.ends_at - sim.now > timedelta(minutes=4):
        sim.run(200)
        sim.sweep()
    sim.run((lease.ends_at - sim.now).total_seconds() - 1)
    silence.begin()
    sim.run(16)
    assert reload_lease(lease).state == "active"
    silence.end()
    sim.run_with_sweeps(40)
    assert (reload_lease(lease).state, reload_lease(lease).ended_at) == ("released", lease.ends_at)
    assert active_seconds(lease) == HOUR


def test_a_lease_that_expires_in_an_undetected_outage_is_charged_to_last_seen(
    sim: Simulation, kestrel: TenantContext, silence: Silence
) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=600))
    assert lease.ends_at
    sim.run((lease.ends_at - sim.now).total_seconds() - 100)
    lease_reconciler.check_active_leases(now=sim.now)
    seen_at = reload_lease(lease).seen_at
    assert seen_at == sim.now
    silence.begin()
    sim.run(150)
    ended = reload_lease(lease)
    assert (ended.state, ended.conditions, ended.ended_at) == (
        "releasing",
        {},
        seen_at.replace(microsecond=0),
    )


def test_a_lease_released_in_a_long_outage_is_charged_until_last_seen(
    sim: Simulation, kestrel: TenantContext, silence: Silence
) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=5 * HOUR))
    sim.run_with_sweeps(300)
    seen_at = reload_lease(lease).seen_at
    assert seen_at
    silence.begin()
    pass_hours(sim, 1)
    assert "unreachable" in reload_lease(lease).conditions
    sim.release_lease(lease)
    assert reload_lease(lease).ended_at == seen_at.replace(microsecond=0)
    silence.end()


def test_an_outage_shorter_than_the_check_interval_is_not_reported(
    sim: Simulation, kestrel: TenantContext, silence: Silence
) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=HOUR))
    silence.begin()
    sim.run_with_sweeps(250)
    assert reload_lease(lease).conditions == {}
    silence.end()
    sim.run_with_sweeps(60)
    assert reload_lease(lease).conditions == {}


@pytest.mark.deep
def test_slots_and_quota_stay_held_until_the_cluster_confirms_the_removal(
    sim: Simulation, kestrel: TenantContext, silence: Silence
) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=HOUR))
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), max_duration_s=HOUR)
    seen_at = reload_lease(lease).seen_at
    assert seen_at
    silence.begin()
    pass_hours(sim, 4)
    assert (reload_lease(lease).state, reload_lease(waiting).state) == ("releasing", "queued")
    assert len(held_allocations(lease)) == 1
    assert kestrel.quota_used() == 14_000
    silence.end()
    sim.run_with_sweeps(30)
    assert (reload_lease(lease).state, reload_lease(waiting).state) == ("released", "active")
    assert (held_allocations(lease), kestrel.quota_used(), reload_lease(lease).ended_at) == (
        [],
        7_000,
        seen_at.replace(microsecond=0),
    )


def test_a_lease_that_crashes_every_worker_still_expires(sim: Simulation, kestrel: TenantContext) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=HOUR))
    sim.messages.clear()
    sim.clock.at += timedelta(seconds=2 * HOUR)
    for _ in range(MAX_UNFINISHED_CLAIMS):
        with tenant_scope(lease.tenant_id):
            assert lease_reconciler._claim(reload_lease(lease), sim.now)  # and here the worker dies
        sim.run(CLAIM_TIME.total_seconds() + 1)
    assert reload_lease(lease).state == "active"
    for hint in lease_reconciler.due_messages(now=sim.now):
        if hint[0] == "broker.reconcile_lease":
            lease_reconciler.reconcile_lease(*hint[1:], now=sim.now)
    ended = reload_lease(lease)
    assert ended.seen_at
    assert (ended.state, ended.ended_at) == ("releasing", ended.seen_at.replace(microsecond=0))


@pytest.mark.parametrize("state", [LeaseState.PROVISIONING, LeaseState.RELEASING])
def test_a_lease_in_transition_is_retried_soon_after_any_number_of_crashes(
    sim: Simulation, kestrel: TenantContext, state: LeaseState
) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"), state)
    sim.messages.clear()
    for deaths in range(12):
        with tenant_scope(lease.tenant_id):
            Lease.objects.filter(pk=lease.pk).update(unfinished_claims=deaths, claimed_until=None)
            assert lease_reconciler._claim(reload_lease(lease), sim.now)
        taken = reload_lease(lease)
        assert taken.due_at
        assert taken.claimed_until
        may_be_taken = max(taken.due_at, taken.claimed_until)
        assert may_be_taken + timedelta(seconds=5) <= sim.now + SOON  # the beat sweeps every five


def test_an_unreachable_cluster_is_polled_every_fifteen_seconds(
    sim: Simulation, kestrel: TenantContext, silence: Silence
) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"), LeaseState.PROVISIONING)
    silence.begin()
    before = silence.calls
    for _ in range(8):
        sim.run_with_sweeps(15)
        assert silence.calls > before
        before = silence.calls
    assert reload_lease(lease).state == "provisioning"
    silence.end()
