"""A program that is not ready holds its card, and is charged; what does not run at all is lost, and is not."""

from datetime import datetime, timedelta

import pytest

from broker.models import Cluster, Lease
from broker.provisioners.base import Observation, Order, Seen
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters, reconcile
from broker.services.leases import growing, idling
from broker.services.leases.ticks import tick
from ports import clock
from tenants.services.walls import as_tenant
from tests.world import Life, cards, fresh, home, ledger, offering, path

CRASHING = "fails/often"


class Stubborn(SimulatedProvisioner):
    """Says of what runs what it is told to."""

    says: Observation | None = None

    def observe(self, order: Order, *, now: datetime) -> Observation:
        return self.says or super().observe(order, now=now)


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> Stubborn:
    cards(1)
    made = Stubborn()
    monkeypatch.setattr(clusters, "provisioner_of", lambda order: made)
    return made


def crashing(life: Life) -> Lease:
    """Return a lease whose program ends again and again, since ten seconds after it was ready."""
    lease = fresh(life.lease(home(), offering(), image=CRASHING, max_duration_s=3600))
    assert lease.state == "active"
    return lease


def told(life: Life, lease: Lease) -> None:
    """Let its agent ring for a lease."""
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)


def test_a_program_that_ends_again_and_again_is_charged_to_the_end_of_its_lease(life: Life) -> None:
    cards(1)
    lease = crashing(life)
    life.go(3700)
    ended = fresh(lease)
    assert (ended.end_reason, ended.ended_at) == ("expired", lease.ends_at)


def test_who_releases_a_lease_whose_program_is_not_ready_pays_for_all_of_it(life: Life) -> None:
    cards(1)
    lease = crashing(life)
    life.go(3000)
    life.release(lease)
    assert fresh(lease).ended_at == life.now.replace(microsecond=0)


def test_a_program_that_is_not_ready_is_told_and_metered(life: Life) -> None:
    cards(1)
    lease = crashing(life)
    life.go(900)
    ill = fresh(lease)
    assert list(ill.conditions) == ["degraded"]
    assert "started again" in ill.conditions["degraded"]
    with as_tenant(lease.tenant_id):
        assert tick(ill, at=life.now - timedelta(minutes=2))


def test_a_program_that_is_well_again_says_nothing_any_longer(life: Life, stubborn: Stubborn) -> None:
    lease = fresh(life.lease(home(), offering()))
    stubborn.says = Observation(Seen.PENDING, "starting", last_seen=life.now, runs=True)
    life.go(300)
    assert list(fresh(lease).conditions) == ["degraded"]
    stubborn.says = None
    life.go(120)
    assert fresh(lease).conditions == {}


def test_a_program_that_is_ill_when_its_time_is_up_was_there_all_along(
    life: Life, stubborn: Stubborn
) -> None:
    lease = fresh(life.lease(home(), offering(), max_duration_s=3600))
    life.go(60)
    stubborn.says = Observation(Seen.PENDING, "no answer", answered=False)
    life.go(400)
    assert list(fresh(lease).conditions) == ["unreachable"]
    life.hints.clear()
    life.clock.at += timedelta(hours=1)
    stubborn.says = Observation(Seen.PENDING, "starting", last_seen=life.now, runs=True)
    life.sweep()
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == ("expired", lease.ends_at)


def test_what_was_lost_and_is_made_anew_for_minutes_ends_with_its_last_proof_of_life(
    life: Life, stubborn: Stubborn
) -> None:
    lease = fresh(life.lease(home(), offering()))
    life.go(300)
    lost = life.now.replace(microsecond=0)
    stubborn.says = Observation(Seen.LOST, "its node ran short and evicted it", last_seen=lost)
    told(life, lease)
    life.go(10)
    stubborn.says = Observation(Seen.PENDING, "pulling image")
    life.go(60)
    ended = fresh(lease)
    assert (ended.end_reason, ended.ended_at) == ("device_lost", lost)
    assert "nothing of it ran any longer: pulling image" in ledger(lease)[-2].cause


def test_what_is_back_within_half_a_minute_goes_on(life: Life, stubborn: Stubborn) -> None:
    lease = fresh(life.lease(home(), offering()))
    life.go(300)
    stubborn.says = Observation(Seen.LOST, "evicted", last_seen=life.now)
    told(life, lease)
    life.go(5)
    assert list(fresh(lease).conditions) == ["unreachable"]
    stubborn.says = Observation(Seen.PENDING, "pulling image")
    life.go(10)
    stubborn.says = None
    life.go(300)
    assert (fresh(lease).state, fresh(lease).conditions) == ("active", {})


def test_what_was_replaced_is_lost_since_the_first_one_ended(life: Life, stubborn: Stubborn) -> None:
    lease = fresh(life.lease(home(), offering()))
    life.go(3 * 60)
    ended_at = life.now.replace(microsecond=0)
    life.clock.at += timedelta(seconds=20)
    stubborn.says = Observation(Seen.PENDING, "pulling image", last_seen=ended_at)
    life.go(100)
    assert path(lease).endswith("released")
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == ("device_lost", ended_at)


def test_who_lets_go_of_a_lease_while_its_cluster_is_silent_pays_until_it_fell_silent(life: Life) -> None:
    cards(1)
    lease = fresh(life.lease(home(), offering()))
    life.go(30)
    silent = life.now
    Cluster.objects.update(silent_since=silent)
    life.clock.at += timedelta(seconds=200)
    life.release(lease)
    assert fresh(lease).ended_at == silent.replace(microsecond=0)


def test_what_was_seen_after_its_cluster_fell_silent_is_charged(life: Life) -> None:
    cards(1)
    lease = fresh(life.lease(home(), offering()))
    Cluster.objects.update(silent_since=life.now)
    life.go(20)
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=life.now)
    seen = life.now
    life.clock.at += timedelta(seconds=60)
    life.release(lease)
    assert fresh(lease).ended_at == seen.replace(microsecond=0)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [(Seen.ENDED, "by_tenant"), (Seen.LOST, "device_lost"), (Seen.GONE, "device_lost")],
)
@pytest.mark.parametrize("unreachable", [False, True])
def test_what_ran_until_an_end_that_its_cluster_told_is_charged_though_our_books_still_call_that_silent(
    life: Life, stubborn: Stubborn, seen: Seen, reason: str, unreachable: bool
) -> None:
    lease = fresh(life.lease(home(), offering()))
    Cluster.objects.update(silent_since=life.now)  # and it answers long before somebody knocks again
    if unreachable:
        with as_tenant(lease.tenant_id):
            Lease.objects.update(conditions={"unreachable": "its node says nothing"})
    life.clock.at += timedelta(seconds=60)
    ended = life.now.replace(microsecond=0)
    life.clock.at += timedelta(seconds=1)
    stubborn.says = Observation(seen, "it ended", last_seen=ended)
    told(life, lease)
    life.go(40)
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == (reason, ended)


def test_what_is_gone_whenever_it_is_looked_for_ends_though_its_pods_run_on(
    life: Life, stubborn: Stubborn
) -> None:
    lease = fresh(life.lease(home(), offering()))
    life.clock.at += timedelta(seconds=60)
    first = life.now
    for _ in range(6):
        stubborn.says = Observation(Seen.GONE, "its anchor is gone", last_seen=life.now)
        told(life, lease)
        life.clock.at += timedelta(seconds=4)
    assert fresh(lease).end_reason == "device_lost"
    assert fresh(lease).ended_at is not None
    assert fresh(lease).ended_at >= first.replace(microsecond=0)


def test_what_ended_and_is_made_anew_is_charged_until_that_end(life: Life, stubborn: Stubborn) -> None:
    lease = fresh(life.lease(home(), offering()))
    Cluster.objects.update(silent_since=life.now)
    life.clock.at += timedelta(seconds=60)
    ended = life.now.replace(microsecond=0)
    life.clock.at += timedelta(seconds=40)
    stubborn.says = Observation(Seen.PENDING, "being made", last_seen=ended)
    told(life, lease)
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == ("device_lost", ended)


def test_an_end_that_a_clock_ahead_of_ours_names_is_charged_until_now(life: Life, stubborn: Stubborn) -> None:
    lease = fresh(life.lease(home(), offering()))
    life.clock.at += timedelta(seconds=60)
    stubborn.says = Observation(Seen.ENDED, "it ended", last_seen=life.now + timedelta(seconds=5))
    told(life, lease)
    assert fresh(lease).ended_at == life.now.replace(microsecond=0)


def test_the_cluster_hears_of_an_extension_at_once(life: Life) -> None:
    cards(1)
    owner = home()
    lease = fresh(life.lease(owner, offering()))
    life.hints.clear()
    with as_tenant(lease.tenant_id):
        growing.extend(lease, more_s=3600, actor=owner.actor, now=clock.now())
    assert ("broker.step", lease.pk) in [
        (task, subject) for at, _, task, subject, _ in life.hints if at <= life.now
    ]


def idles(life: Life, lease: Lease) -> bool:
    with as_tenant(lease.tenant_id):
        return idling.idle(Lease.objects.filter(pk=lease.pk), now=life.now).exists()


def starts(life: Life) -> Observation:
    return Observation(Seen.PENDING, "starting", last_seen=life.now, runs=True)


def seen_ill(life: Life, lease: Lease, stubborn: Stubborn, *, minutes: int) -> None:
    """Let its cluster say each minute that its program is not ready."""
    for _ in range(minutes):
        stubborn.says = starts(life)
        told(life, lease)
        life.clock.at += timedelta(minutes=1)


def test_what_is_seen_to_be_ill_for_a_quarter_of_an_hour_idles(life: Life, stubborn: Stubborn) -> None:
    lease = fresh(life.lease(home(), offering(), max_duration_s=9 * 3600))
    seen_ill(life, lease, stubborn, minutes=15)
    assert idles(life, lease)
    stubborn.says = None
    told(life, lease)
    assert (fresh(lease).ill_since, idles(life, lease)) == (None, False)


def test_what_was_ill_before_its_moment_was_noted_is_ill_from_the_next_look_on(
    life: Life, stubborn: Stubborn
) -> None:
    lease = fresh(life.lease(home(), offering(), max_duration_s=9 * 3600))
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(conditions={"degraded": "starting"})
    seen_ill(life, lease, stubborn, minutes=1)
    assert fresh(lease).ill_since is not None


@pytest.mark.parametrize("unseen", ["unreachable", "repartitioning"])
def test_the_time_in_which_nobody_saw_it_is_no_idling(life: Life, stubborn: Stubborn, unseen: str) -> None:
    lease = fresh(life.lease(home(), offering(), max_duration_s=9 * 3600))
    seen_ill(life, lease, stubborn, minutes=14)
    with as_tenant(lease.tenant_id):
        ill = fresh(lease).conditions
        Lease.objects.filter(pk=lease.pk).update(conditions={**ill, unseen: "nobody knows"})
    assert not idles(life, lease)
    life.clock.at += timedelta(minutes=2)
    assert not idles(life, lease)
    seen_ill(life, lease, stubborn, minutes=14)
    assert list(fresh(lease).conditions) == ["degraded"]
    assert not idles(life, lease)
    seen_ill(life, lease, stubborn, minutes=1)
    assert idles(life, lease)


def test_what_nobody_has_looked_at_for_minutes_does_not_idle(life: Life, stubborn: Stubborn) -> None:
    lease = fresh(life.lease(home(), offering(), max_duration_s=9 * 3600))
    seen_ill(life, lease, stubborn, minutes=15)
    life.clock.at += timedelta(minutes=3)
    assert not idles(life, lease)
