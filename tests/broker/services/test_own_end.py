"""A lease whose own command is over ends by itself, and costs until that moment, whenever somebody looks."""

from datetime import timedelta

import pytest

from broker.domain.states import EndReason, LeaseState
from broker.models import Allocation, Lease
from broker.provisioners.base import Observation, Seen
from broker.provisioners.simulated import BRIEF, SimulatedProvisioner
from broker.services import reconcile
from broker.services.leases import ending
from broker.services.outcomes import REST
from tenants.services.walls import as_tenant
from tests.world import Home, Life, cards, fresh, held, home, ledger, offering


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(1)
    return home("Kestrel")


def test_it_is_charged_until_its_command_was_done_not_until_that_was_seen(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering(), image="brief/job:1")
    life.go(int(REST.total_seconds()) + 30)
    over = fresh(lease)
    assert (over.state, over.end_reason) == (LeaseState.RELEASED, EndReason.BY_TENANT)
    assert lease.active_at is not None
    assert over.ended_at is not None
    assert abs(over.ended_at - lease.active_at - BRIEF) <= timedelta(seconds=1)
    assert next(step for step in ledger(lease) if step.after == "releasing").cause == "its command is done"
    assert not held(lease)


def test_what_ends_after_its_time_was_up_costs_no_more_than_that(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = life.lease(kestrel, offering(), max_duration_s=60)
    late = life.now + timedelta(seconds=90)
    ended = Observation(Seen.ENDED, "its command failed: exit code 2", last_seen=late)
    monkeypatch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: ended)
    life.clock.at = late + timedelta(seconds=5)
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    over = fresh(lease)
    assert over.ended_at == lease.ends_at
    assert over.end_reason == EndReason.EXPIRED  # a batch's own deadline ends it a moment late


def test_a_command_that_was_over_before_anybody_saw_it_run_costs_nothing(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Observation(Seen.ENDED, "its command is done", last_seen=life.now)
    monkeypatch.setattr(SimulatedProvisioner, "ensure", lambda *_, **__: ended)
    lease = life.ask(kestrel, offering())
    life.run(30)
    over: Lease = fresh(lease)
    assert over.state == LeaseState.RELEASED
    assert over.active_at is None


def test_a_cluster_whose_clock_is_ahead_does_not_charge_what_is_yet_to_come(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = life.lease(kestrel, offering())
    life.run(30)
    ended = Observation(Seen.ENDED, "its command is done", last_seen=life.now + timedelta(seconds=3))
    monkeypatch.setattr(SimulatedProvisioner, "observe", lambda *_, **__: ended)
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    assert fresh(lease).ended_at == life.now.replace(microsecond=0)


def test_a_place_is_kept_until_its_lease_has_ended_whoever_read_the_clock_first(
    life: Life, kestrel: Home
) -> None:
    """The worker that finds it gone read its clock just before the one that ended it."""
    lease = life.lease(kestrel, offering())
    life.run(30)
    life.clock.at = life.now.replace(microsecond=100_000)
    life.release(lease)
    with as_tenant(lease.tenant_id):
        ending.finish(fresh(lease), now=life.now - timedelta(seconds=0.5))
        (place,) = Allocation.objects.filter(lease=lease)
    over = fresh(lease)
    assert over.state == LeaseState.RELEASED
    assert over.ended_at is not None
    assert place.released_at is not None
    assert place.released_at >= over.ended_at
