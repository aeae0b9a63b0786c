"""A lease that keeps its volume may be stopped and started again: nothing is held or charged in between."""

from datetime import timedelta
from itertools import pairwise

import pytest

from broker.domain.states import EndReason, LeaseState
from broker.models import Lease, OfferingState, SimulatedPod, SimulatedVolume, StaleLease
from broker.provisioners.base import Observation, Seen
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import proofs, reconcile
from broker.services.leases import ending, growing, leaving, serving, standing, stopping
from broker.services.leases.ending import AlreadyOver
from broker.services.leases.request import OfferingRetired
from broker.services.leases.stopping import NotActive, NothingKept, NotStopped, TimeSpent
from broker.services.volumes import keeping
from broker.services.volumes.refusals import VolumeInUse
from tenants.models import AuditEvent, Project, Quota, QuotaKind
from tenants.services import quotas
from tenants.services.refusals import QuotaExceeded
from tenants.services.walls import as_staff, as_tenant
from tests.world import OPERATOR, Home, Life, cards, fresh, held, home, ledger, offering, path

S = LeaseState
UNITS, HOURS, BURN = QuotaKind.UNITS, QuotaKind.GPU_SECONDS, QuotaKind.BURN
LIFE = "requested queued provisioning active"


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(1)
    return home("Kestrel")


def kept(life: Life, owner: Home, what: str = "1g.10gb", **wanted: object) -> Lease:
    """Return an active lease with a volume."""
    volume = wanted.pop("volume", None) or life.volume(owner, f"home-{len(life.hints)}-{life.now:%H%M%S}").pk
    return fresh(life.lease(owner, offering(what), volume=volume, **wanted))


def stopped(life: Life, owner: Home, lease: Lease) -> Lease:
    life.stop(lease, owner)
    life.run(5)
    assert fresh(lease).state == S.STOPPED
    return fresh(lease)


def active_seconds(lease: Lease) -> int:
    steps = [*ledger(lease)]
    spans = [(a, b) for a, b in pairwise(steps) if a.after == S.ACTIVE]
    return int(sum((b.at - a.at).total_seconds() for a, b in spans))


def no_contradiction(life: Life) -> None:
    with as_staff():
        assert [proof.name for proof in proofs.check(now=life.now) if not proof.holds] == []


def test_stopped_it_holds_nothing_and_started_it_finds_its_volume(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel)
    first = SimulatedVolume.objects.get()
    life.run(100)
    life.stop(lease, kestrel)
    assert (fresh(lease).state, fresh(lease).ended_at) == (S.STOPPING, None)
    life.run(5)
    assert (fresh(lease).state, held(lease), kestrel.used()) == (S.STOPPED, [], 0)
    assert not SimulatedPod.objects.exists()
    no_contradiction(life)
    life.run(500)
    life.start(lease, kestrel)
    life.run(12)
    assert (fresh(lease).state, kestrel.used()) == (S.ACTIVE, 1000)
    assert SimulatedVolume.objects.get().made_at == first.made_at
    assert SimulatedVolume.objects.get().last_used_by.endswith(f"g{fresh(lease).generation}")
    assert fresh(lease).generation > lease.generation
    life.release(lease)
    life.run(5)
    again = "stopping stopped queued provisioning active releasing released"
    assert path(lease) == f"{LIFE} {again}"
    assert kestrel.used() == 0
    assert SimulatedVolume.objects.exists()
    with as_tenant(kestrel.tenant.pk):
        told = AuditEvent.objects.filter(action__in=["lease.stop", "lease.start"]).order_by("id")
        assert [(event.action, event.actor_label) for event in told] == [
            ("lease.stop", kestrel.actor.label),
            ("lease.start", kestrel.actor.label),
        ]
    no_contradiction(life)


def test_its_time_is_that_of_being_active_however_often_it_is_stopped(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel, max_duration_s=1000)
    life.run(200)
    spent = stopped(life, kestrel, lease).spent_s
    assert 195 <= spent <= 201
    life.run(5000)
    life.start(lease, kestrel)
    life.run(12)
    again = fresh(lease)
    assert again.active_at
    assert again.ends_at == again.active_at + timedelta(seconds=1000 - spent)
    life.run(1000)
    over = fresh(lease)
    assert (over.state, over.end_reason, over.ended_at) == (S.RELEASED, "expired", again.ends_at)
    assert active_seconds(lease) == 1000


def test_only_what_was_used_counts_against_the_gpu_hours(life: Life, kestrel: Home) -> None:
    kestrel.quota(HOURS, 10**9)
    lease = kept(life, kestrel, max_duration_s=3600)
    assert kestrel.used(HOURS) == 3600 * 1000
    life.run(100)
    spent = stopped(life, kestrel, lease).spent_s
    assert kestrel.used(HOURS) == spent * 1000
    no_contradiction(life)
    life.start(lease, kestrel)
    assert kestrel.used(HOURS) == 3600 * 1000
    life.run(12)
    again = stopped(life, kestrel, lease).spent_s
    assert (again > spent, kestrel.used(HOURS)) == (True, again * 1000)
    life.release(lease)  # stopped as it is: over at once
    assert (fresh(lease).state, kestrel.used(HOURS)) == (S.RELEASED, again * 1000)
    assert active_seconds(lease) == again
    no_contradiction(life)


def test_in_another_month_it_takes_the_rest_from_that_month(life: Life, kestrel: Home) -> None:
    kestrel.quota(HOURS, 10**9)
    lease = kept(life, kestrel, max_duration_s=3600)
    life.run(100)
    spent = stopped(life, kestrel, lease).spent_s
    life.clock.at += timedelta(days=20)
    life.start(lease, kestrel)
    assert kestrel.used(HOURS) == (3600 - spent) * 1000
    assert sorted(fresh(lease).quota_uses["gpu_seconds"]["windows"].values()) == [
        spent * 1000,
        (3600 - spent) * 1000,
    ]
    life.run(12)
    life.release(lease)
    life.run(5)
    assert kestrel.used(HOURS) == (active_seconds(lease) - spent) * 1000


@pytest.mark.parametrize("at_the_end", [S.STOPPED, S.ACTIVE, S.RELEASED])
def test_a_quota_that_is_made_later_counts_every_stretch(
    life: Life, kestrel: Home, at_the_end: LeaseState
) -> None:
    team = kestrel.child("team")
    lease = kept(
        life, kestrel, max_duration_s=3600, project=team, volume=life.volume(kestrel, project=team).pk
    )
    life.run(100)
    stopped(life, kestrel, lease)
    if at_the_end is not S.STOPPED:
        life.start(lease, kestrel)
        life.run(60)
    if at_the_end is S.RELEASED:
        life.release(lease)
        life.run(5)
    counted = {S.ACTIVE: 3600}.get(at_the_end, active_seconds(lease))
    assert limit(kestrel, HOURS, team, life).used == counted * 1000
    assert limit(kestrel, UNITS, team, life).used == (1000 if at_the_end is S.ACTIVE else 0)
    no_contradiction(life)


def limit(owner: Home, kind: QuotaKind, project: Project, life: Life) -> Quota:
    with as_tenant(owner.tenant.pk):
        return quotas.set_limit(project=project, kind=kind, limit=10**12, actor=OPERATOR, now=life.now)


def test_it_starts_only_where_every_gate_lets_it(life: Life, kestrel: Home) -> None:
    lease = stopped(life, kestrel, kept(life, kestrel))
    kestrel.quota(UNITS, 500)
    with pytest.raises(QuotaExceeded):
        life.start(lease, kestrel)
    assert (fresh(lease).state, kestrel.used()) == (S.STOPPED, 0)


def test_started_again_it_stands_behind_those_who_waited(life: Life, kestrel: Home) -> None:
    lease = stopped(life, kestrel, kept(life, kestrel, "card"))
    life.lease(kestrel, offering("card"), max_duration_s=20_000)
    waits = [life.ask(kestrel, offering("card")) for _ in range(2)]
    life.run(60)
    life.start(lease, kestrel)
    queue = serving.waiting(("H100-80GB", "eu-north"))
    assert [each.lease_id for each in queue] == [waits[0].pk, waits[1].pk, lease.pk]
    with as_tenant(kestrel.tenant.pk):
        assert standing.positions([fresh(lease)])[lease.pk].place == 3
        assert serving.is_first(fresh(waits[0]))
        assert not serving.is_first(fresh(lease))


def test_only_an_active_lease_with_a_volume_can_be_stopped(life: Life, kestrel: Home) -> None:
    queued = life.ask(kestrel, offering(), volume=life.volume(kestrel).pk)
    with pytest.raises(NotActive, match="is queued"):
        life.stop(queued, kestrel)
    bare = life.lease(kestrel, offering())
    with pytest.raises(NothingKept, match="has no volume"):
        life.stop(bare, kestrel)
    assert fresh(bare).state == S.ACTIVE


def test_only_a_stopped_lease_with_time_left_can_be_started(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel, max_duration_s=240)
    with pytest.raises(NotStopped, match="is active"):
        life.start(lease, kestrel)
    life.run(200)
    lease = stopped(life, kestrel, lease)
    with pytest.raises(TimeSpent, match="of the 240 s"):
        life.start(lease, kestrel)
    with as_tenant(kestrel.tenant.pk):
        growing.extend(lease, more_s=3600, actor=kestrel.actor, now=life.now)
    assert kestrel.used() == 0  # it holds nothing yet
    what = lease.offering
    what.state = OfferingState.RETIRED
    what.save()
    with pytest.raises(OfferingRetired):
        life.start(lease, kestrel)
    what.state = OfferingState.PUBLISHED
    what.save()
    life.start(lease, kestrel)
    life.run(12)
    assert fresh(lease).state == S.ACTIVE


def test_a_fixed_end_ends_it_stopped_or_not(life: Life, kestrel: Home) -> None:
    end = life.now + timedelta(seconds=600)
    lease = stopped(life, kestrel, kept(life, kestrel, end_date=end))
    later = life.volume(kestrel, "second")
    waits = stopped(life, kestrel, kept(life, kestrel, end_date=end, volume=later.pk))
    with as_tenant(kestrel.tenant.pk):
        growing.extend(waits, more_s=3600, actor=kestrel.actor, now=life.now)
    life.clock.at = end
    with pytest.raises(AlreadyOver):
        life.start(lease, kestrel)
    life.sweep()
    assert (fresh(lease).state, fresh(lease).end_reason) == (S.RELEASED, "expired")
    assert (fresh(waits).state, fresh(waits).due_at) == (S.STOPPED, end + timedelta(seconds=3600))


def test_one_that_is_over_cannot_be_stopped(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel, max_duration_s=120)
    life.hints.clear()
    life.clock.at += timedelta(seconds=130)
    with pytest.raises(AlreadyOver, match="reached its end"):
        life.stop(lease, kestrel)


def test_stopping_twice_is_as_good_as_once_and_whoever_is_slower_finds_it_done(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = kept(life, kestrel)
    with as_tenant(kestrel.tenant.pk):
        one, other = fresh(lease), fresh(lease)
        stopping.stop(one, actor=kestrel.actor, now=life.now)
        stopping.stop(other, actor=kestrel.actor, now=life.now)
        assert (one.state, other.state) == (S.STOPPING, S.STOPPING)
    assert path(lease) == f"{LIFE} stopping"
    life.run(5)
    life.start(lease, kestrel)
    life.run(12)

    def never(*_: object, **__: object) -> None:
        raise StaleLease(lease.pk)

    with as_tenant(kestrel.tenant.pk), monkeypatch.context() as patch:
        patch.setattr(Lease, "move", never)
        with pytest.raises(StaleLease):
            stopping.stop(fresh(lease), actor=kestrel.actor, now=life.now)


def test_what_is_being_stopped_may_be_released(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel)
    life.run(60)
    life.stop(lease, kestrel)
    life.release(lease)
    life.run(5)
    over = fresh(lease)
    assert (path(lease), over.spent_s > 0, over.active_at) == (
        f"{LIFE} stopping releasing released",
        True,
        None,
    )
    assert (kestrel.used(), ending.used_unit_seconds(over)) == (0, over.spent_s * 1000)
    no_contradiction(life)


def test_a_volume_is_kept_from_others_while_its_lease_is_stopped(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    lease = stopped(life, kestrel, kept(life, kestrel, volume=volume.pk))
    with pytest.raises(VolumeInUse, match="and is stopped"):
        life.ask(kestrel, offering(), volume=volume.pk)
    with as_tenant(kestrel.tenant.pk), pytest.raises(VolumeInUse):
        keeping.delete(volume, actor=kestrel.actor, now=life.now)
    life.release(lease)
    life.lease(kestrel, offering(), volume=lease.volume_id)


def test_it_is_stopped_only_when_it_is_proven_gone(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = kept(life, kestrel)
    with monkeypatch.context() as patch:
        lost = Observation(Seen.LOST, "its node lost contact", last_seen=life.now)
        patch.setattr(SimulatedProvisioner, "remove", lambda *_, **__: lost)
        life.stop(lease, kestrel)
        life.go(120)
        assert (fresh(lease).state, len(held(lease))) == (S.STOPPING, 1)
    life.go(20)
    assert (fresh(lease).state, held(lease)) == (S.STOPPED, [])


def test_a_volume_is_nobody_elses_before_its_lease_is_proven_gone(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a network that is cut its pod may still write."""
    lease = kept(life, kestrel)
    with monkeypatch.context() as patch:
        lost = Observation(Seen.LOST, "its node lost contact", last_seen=life.now)
        patch.setattr(SimulatedProvisioner, "remove", lambda *_, **__: lost)
        life.release(lease)
        life.go(120)
        assert fresh(lease).state == S.RELEASING
        with pytest.raises(VolumeInUse):
            life.ask(kestrel, offering(), volume=lease.volume_id)
    life.go(20)
    assert fresh(lease).state == S.RELEASED


def test_starting_twice_is_as_good_as_once(life: Life, kestrel: Home) -> None:
    lease = stopped(life, kestrel, kept(life, kestrel))
    life.start(lease, kestrel)
    begun = fresh(lease).seq
    life.start(lease, kestrel)
    assert fresh(lease).seq == begun
    life.run(12)
    life.start(lease, kestrel)
    assert fresh(lease).state == S.ACTIVE


def test_what_is_over_is_said_to_be(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel)
    life.release(lease)
    life.run(12)
    lease = fresh(lease)
    for again in (life.stop, life.start):
        with pytest.raises(AlreadyOver, match="is released"):
            again(lease, kestrel)


def test_a_dozen_starts_are_no_dozen_failures(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel)
    for _ in range(12):
        lease = stopped(life, kestrel, lease)
        life.start(lease, kestrel)
        life.run(12)
    assert fresh(lease).generation > 12
    with as_tenant(kestrel.tenant.pk):
        assert leaving.places_left(fresh(lease)) == 0


def test_nothing_after_the_last_proof_of_life_is_charged(life: Life, kestrel: Home) -> None:
    lease = kept(life, kestrel)
    seen = life.now + timedelta(seconds=100)
    with as_tenant(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(seen_at=seen, conditions={"unreachable": "since then"})
    life.hints.clear()
    life.clock.at += timedelta(seconds=1000)
    life.stop(lease, kestrel)
    assert ledger(lease)[-1].at == seen.replace(microsecond=0)
    life.run(5)
    assert fresh(lease).conditions == {}


def test_a_look_at_a_stopped_lease_does_nothing(life: Life, kestrel: Home) -> None:
    lease = stopped(life, kestrel, kept(life, kestrel))
    reconcile.step(lease.pk, lease.tenant_id, now=life.now)
    assert (fresh(lease).seq, fresh(lease).due_at) == (lease.seq, None)


def test_operators_may_end_a_stopped_one(life: Life, kestrel: Home) -> None:
    lease = stopped(life, kestrel, kept(life, kestrel))
    with as_tenant(kestrel.tenant.pk):
        ending.release(lease, reason=EndReason.BY_OPERATOR, actor=OPERATOR, now=life.now)
    assert fresh(lease).state == S.RELEASED
