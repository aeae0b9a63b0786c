"""A cluster that never answers: nobody pays for its silence, and nothing it may still run is sold again."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease
from broker.provisioners.base import Observation, Unanswered
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import reconcile
from broker.services.reconcile import CLAIM, DEADLY
from tenants.services.walls import as_tenant
from tests.world import Home, Life, cards, fresh, held, home, ledger, offering

HOUR, SOON = 3600, timedelta(seconds=15)


class Silence:
    """Keeps every simulated cluster silent for as long as it lasts."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch, self.asked = patch, 0

    def begin(self) -> None:
        def unanswered(*_: object, **__: object) -> Observation:
            self.asked += 1
            raise Unanswered("timed out after 5 s")

        for call in ("ensure", "observe", "remove", "names", "remove_named"):
            self.patch.setattr(SimulatedProvisioner, call, unanswered)

    def end(self) -> None:
        self.patch.undo()


def hours_pass(life: Life, hours: int) -> None:
    """Let hours pass with a sweep every ten minutes: more often would only ask the silence more often."""
    for _ in range(6 * hours):
        life.hints.clear()  # the doorbell rings on and on; the sweep alone must do
        life.clock.at += timedelta(minutes=10)
        life.sweep()


@pytest.fixture
def silence() -> Iterator[Silence]:
    silence = Silence(pytest.MonkeyPatch())
    yield silence
    silence.end()


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(1)
    return home("Kestrel")


def active_seconds(lease: Lease) -> float:
    """Sum what is charged: from each step that made it active to the next."""
    steps = ledger(lease)
    spans = [after.at - step.at for step, after in pairwise(steps) if step.after == "active"]
    return sum(span.total_seconds() for span in spans)


def test_a_lease_is_charged_to_its_last_proof_of_life_though_its_cluster_stays_silent_for_hours(
    life: Life, kestrel: Home, silence: Silence
) -> None:
    lease = fresh(life.lease(kestrel, offering("card"), max_duration_s=HOUR))
    life.go(600)
    seen_at = fresh(lease).seen_at
    assert lease.active_at
    assert seen_at
    assert seen_at > lease.active_at + timedelta(minutes=3)
    silence.begin()
    hours_pass(life, 2)
    ended = fresh(lease)
    assert (ended.state, ended.end_reason) == ("releasing", "expired")
    assert ended.ended_at == seen_at.replace(microsecond=0)
    hours_pass(life, 3)
    assert active_seconds(lease) == (ended.ended_at - lease.active_at).total_seconds() < HOUR
    silence.end()


def test_a_moment_of_silence_at_the_end_costs_nobody_a_second(
    life: Life, kestrel: Home, silence: Silence
) -> None:
    lease = fresh(life.lease(kestrel, offering("card"), max_duration_s=HOUR))
    assert lease.ends_at
    while lease.ends_at - life.now > timedelta(minutes=4):
        life.run(200)
        life.sweep()
    life.run((lease.ends_at - life.now).total_seconds() - 1)
    silence.begin()
    life.run(16)
    assert fresh(lease).state == "active"
    silence.end()
    life.go(40)
    assert (fresh(lease).state, fresh(lease).ended_at) == ("released", lease.ends_at)
    assert active_seconds(lease) == HOUR


def test_what_ends_in_a_silence_that_nobody_was_told_of_is_charged_to_its_last_proof_of_life(
    life: Life, kestrel: Home, silence: Silence
) -> None:
    lease = fresh(life.lease(kestrel, offering("card"), max_duration_s=600))
    assert lease.ends_at
    life.run((lease.ends_at - life.now).total_seconds() - 100)
    reconcile.look_at_active(now=life.now)
    seen_at = fresh(lease).seen_at
    assert seen_at == life.now
    silence.begin()
    life.run(150)
    ended = fresh(lease)
    assert (ended.state, ended.conditions, ended.ended_at) == (
        "releasing",
        {},
        seen_at.replace(microsecond=0),
    )


def test_a_tenant_who_ends_a_lease_in_a_long_silence_pays_to_its_last_proof_of_life(
    life: Life, kestrel: Home, silence: Silence
) -> None:
    lease = fresh(life.lease(kestrel, offering("card"), max_duration_s=5 * HOUR))
    life.go(300)
    seen_at = fresh(lease).seen_at
    assert seen_at
    silence.begin()
    hours_pass(life, 1)
    assert "unreachable" in fresh(lease).conditions
    life.release(lease)
    assert fresh(lease).ended_at == seen_at.replace(microsecond=0)
    silence.end()


def test_a_silence_shorter_than_the_usual_look_is_not_told(
    life: Life, kestrel: Home, silence: Silence
) -> None:
    lease = fresh(life.lease(kestrel, offering("card"), max_duration_s=HOUR))
    silence.begin()
    life.go(250)
    assert fresh(lease).conditions == {}
    silence.end()
    life.go(60)
    assert fresh(lease).conditions == {}


def test_its_places_and_quota_stay_held_until_the_cluster_has_proved_it_gone(
    life: Life, kestrel: Home, silence: Silence
) -> None:
    lease = fresh(life.lease(kestrel, offering("card"), max_duration_s=HOUR))
    waiting = life.ask(kestrel, offering("card"), max_duration_s=HOUR)
    seen_at = fresh(lease).seen_at
    assert seen_at
    silence.begin()
    hours_pass(life, 4)
    assert (fresh(lease).state, fresh(waiting).state) == ("releasing", "queued")
    assert len(held(lease)) == 1
    assert kestrel.used() == 14_000
    silence.end()
    life.go(30)
    assert (fresh(lease).state, fresh(waiting).state) == ("released", "active")
    assert (held(lease), kestrel.used(), fresh(lease).ended_at) == ([], 7_000, seen_at.replace(microsecond=0))


def test_a_lease_whose_every_look_kills_the_worker_ends_at_its_end_too(life: Life, kestrel: Home) -> None:
    lease = fresh(life.lease(kestrel, offering("card"), max_duration_s=HOUR))
    life.hints.clear()
    life.clock.at += timedelta(seconds=2 * HOUR)
    for _ in range(DEADLY):
        with as_tenant(lease.tenant_id):
            assert reconcile._claim(fresh(lease), life.now)  # and here the worker dies
        life.run(CLAIM.total_seconds() + 1)
    assert fresh(lease).state == "active"
    for hint in reconcile.due(now=life.now):
        if hint[0] == "broker.step":
            reconcile.step(*hint[1:], now=life.now)
    ended = fresh(lease)
    assert ended.seen_at
    assert (ended.state, ended.ended_at) == ("releasing", ended.seen_at.replace(microsecond=0))


@pytest.mark.parametrize("state", [LeaseState.PROVISIONING, LeaseState.RELEASING])
def test_who_is_under_way_is_looked_at_every_fifteen_seconds_however_often_workers_died(
    life: Life, kestrel: Home, state: LeaseState
) -> None:
    lease = life.lease(kestrel, offering("card"), state)
    life.hints.clear()
    for deaths in range(12):
        with as_tenant(lease.tenant_id):
            Lease.objects.filter(pk=lease.pk).update(tries=deaths, claimed_until=None)
            assert reconcile._claim(fresh(lease), life.now)
        taken = fresh(lease)
        assert taken.due_at
        assert taken.claimed_until
        may_be_taken = max(taken.due_at, taken.claimed_until)
        assert may_be_taken + timedelta(seconds=5) <= life.now + SOON  # the beat sweeps every five


def test_while_it_is_silent_it_is_asked_every_fifteen_seconds(
    life: Life, kestrel: Home, silence: Silence
) -> None:
    lease = life.lease(kestrel, offering("card"), LeaseState.PROVISIONING)
    silence.begin()
    before = silence.asked
    for _ in range(8):
        life.go(15)
        assert silence.asked > before
        before = silence.asked
    assert fresh(lease).state == "provisioning"
    silence.end()
