"""Volumes: made in the books, by a cluster at first use, held by one lease at a time, gone when proven gone."""

from collections.abc import Callable
from datetime import datetime
from threading import Barrier, Thread

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, connection, transaction

from broker.domain.states import LeaseState, VolumeState
from broker.models import Cluster, Lease, Offering, SimulatedVolume, Volume
from broker.provisioners.base import Kept, Observation, Order, Seen, Unanswered
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import clusters, freezing, proofs
from broker.services.inventory import Rack
from broker.services.leases import placing
from broker.services.leases.request import Wanted, build, request
from broker.services.volumes import keeping, mounting
from broker.services.volumes.refusals import NameTaken, OutOfReach, VolumeGoing, VolumeInUse
from tenants.models import AuditEvent, QuotaKind
from tenants.services import quotas
from tenants.services.refusals import Invalid, Missing, QuotaExceeded, Refused
from tenants.services.walls import as_staff, as_tenant
from tests.database import OwnDatabase
from tests.world import (
    MODEL,
    NOW,
    OPERATOR,
    REGION,
    Home,
    Life,
    alive,
    cards,
    fleet,
    fresh,
    held,
    home,
    offering,
)

S, V = LeaseState, VolumeState
STORAGE = QuotaKind.STORAGE


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home("Kestrel")


def again(volume: Volume) -> Volume:
    with as_tenant(volume.tenant_id):
        return Volume.objects.select_related("cluster", "project").get(pk=volume.pk)


def delete(life: Life, owner: Home, volume: Volume) -> Volume:
    with as_tenant(owner.tenant.pk):
        return keeping.delete(volume, actor=owner.actor, now=life.now)


def no_contradiction(life: Life) -> None:
    with as_staff():
        assert [proof.name for proof in proofs.check(now=life.now) if not proof.holds] == []


def test_its_room_is_taken_when_it_is_asked_for_and_the_first_brings_a_ceiling(
    life: Life, kestrel: Home, settings: LazySettings
) -> None:
    settings.NEW_TENANT_STORAGE_GIB = 50
    team = kestrel.child("team")
    volume = life.volume(kestrel, " data ", size_gib=30, project=team)
    assert (volume.name, volume.state, volume.cluster) == ("data", V.READY, None)
    assert kestrel.used(STORAGE) == 30
    with pytest.raises(
        QuotaExceeded, match=r"for volumes is 50 GiB; 30 are in use, 20 free, and this asks for 21\."
    ):
        life.volume(kestrel, "more", size_gib=21, project=team)
    life.volume(kestrel, "more", size_gib=20)
    assert kestrel.used(STORAGE) == 50
    with as_tenant(kestrel.tenant.pk):
        told = AuditEvent.objects.filter(action="volume.create").order_by("id")
        assert [event.subject_label for event in told] == ["data", "more"]
    no_contradiction(life)


def test_a_ceiling_that_is_made_later_counts_what_is_there(life: Life, kestrel: Home) -> None:
    team, other = kestrel.child("team"), kestrel.child("other")
    kept = life.volume(kestrel, "a", size_gib=30, project=team)
    gone = life.volume(kestrel, "b", size_gib=20, project=team)
    life.volume(kestrel, "c", size_gib=5, project=other)
    delete(life, kestrel, gone)
    life.run(1)
    with as_tenant(kestrel.tenant.pk):
        made = quotas.set_limit(project=team, kind=STORAGE, limit=40, actor=OPERATOR, now=life.now)
    assert made.used == 30
    no_contradiction(life)
    delete(life, kestrel, kept)
    life.run(1)
    assert (kestrel.used(STORAGE, team), kestrel.used(STORAGE)) == (0, 5)


@pytest.mark.parametrize("size", [0, -1, keeping.MOST_GIB + 1])
def test_a_size_that_nobody_can_mean_is_refused(life: Life, kestrel: Home, size: int) -> None:
    with pytest.raises(Invalid, match="from 1 to 65,536 GiB"):
        life.volume(kestrel, size_gib=size)


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "a\u2028b", "a\u202eb", "x" * 121])
def test_a_name_is_text_of_one_line(life: Life, kestrel: Home, name: str) -> None:
    with pytest.raises(Invalid, match="1 to 120 characters"):
        life.volume(kestrel, name)


def test_a_name_is_given_once_in_a_project_and_again_after_its_end(life: Life, kestrel: Home) -> None:
    first = life.volume(kestrel, "data")
    life.volume(kestrel, "data", project=kestrel.child("team"))
    with pytest.raises(NameTaken):
        life.volume(kestrel, "data")
    delete(life, kestrel, first)
    life.run(1)
    assert again(first).state == V.DELETED
    life.volume(kestrel, "data")


def test_it_outlives_its_lease_and_the_next_one_finds_it(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    lease = life.lease(kestrel, offering(), volume=volume.pk)
    made = SimulatedVolume.objects.get(name=volume.pk)
    assert made.last_used_by.endswith(f"-g{fresh(lease).generation}")
    there = again(volume)
    assert there.cluster
    assert (there.cluster.name, there.used_at is not None) == ("north-1", True)
    life.release(lease)
    life.run(10)
    assert fresh(lease).state == S.RELEASED
    life.lease(kestrel, offering(), volume=volume.pk)
    kept = SimulatedVolume.objects.get(name=volume.pk)
    assert (kept.made_at, kept.last_used_by != made.last_used_by) == (made.made_at, True)


def test_one_lease_at_a_time_has_it(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    lease = life.ask(kestrel, offering(), volume=volume.pk)
    with pytest.raises(VolumeInUse, match=f"{lease.name} has home, and is queued"):
        life.ask(kestrel, offering(), volume=volume.pk)
    with as_tenant(kestrel.tenant.pk):
        assert list(mounting.free(kestrel.project)) == []
        other = life.ask(kestrel, offering())
        with pytest.raises(IntegrityError, match="volume_of_one_lease"), transaction.atomic():
            Lease.objects.filter(pk=other.pk).update(volume=volume)
    life.release(lease)
    life.run(5)
    with as_tenant(kestrel.tenant.pk):
        assert list(mounting.free(kestrel.project)) == [volume]


def test_what_does_not_fit_to_a_volume_is_refused(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    strangers = home("Merlin")
    for owner, project in ((strangers, strangers.project), (kestrel, kestrel.child("team"))):
        with pytest.raises(Missing, match="no volume"):
            life.ask(owner, offering(), project=project, volume=volume.pk)
    with pytest.raises(Invalid, match="One node at a time"):
        life.ask(kestrel, offering(), volume=volume.pk, quantity=2)
    gang = life.lease(kestrel, offering(), volume=volume.pk, quantity=2, same_node=True)
    life.release(gang)
    life.run(10)
    delete(life, kestrel, volume)
    with pytest.raises(VolumeGoing, match="home is deleting"):
        life.ask(kestrel, offering(), volume=volume.pk)


def test_once_something_is_on_it_leases_go_where_it_lies(life: Life) -> None:
    fleet(
        Rack("north-1", REGION, MODEL, 1, 1),
        Rack("north-2", REGION, MODEL, 1, 1),
        Rack("west-1", "eu-west", MODEL, 1, 1),
    )
    kestrel = home("Kestrel")
    here = Offering.objects.get(region=REGION, profile="card", price_class="on_demand")
    volume = life.volume(kestrel)
    with as_tenant(kestrel.tenant.pk):
        away = Cluster.objects.get(name="north-2")
        Volume.objects.filter(pk=volume.pk).update(cluster=away, used_at=life.now)
    life.release(life.lease(kestrel, here, volume=volume.pk))
    assert again(volume).cluster == away
    life.run(10)
    blocker = life.lease(kestrel, here)
    other = life.lease(kestrel, here)
    life.release(blocker)  # north-1 is free
    life.run(10)
    lease = life.ask(kestrel, here, volume=volume.pk)
    life.run(5)
    assert "Every one in north-2, where its volume lies, is taken" in fresh(lease).waits_for
    with as_tenant(kestrel.tenant.pk):
        quote = build(
            Wanted(here.pk, "quote", 3600, volume=life.volume(kestrel, "new").pk),
            project=kestrel.project, actor=kestrel.actor, now=life.now,
        )  # fmt: skip
        placing.foresee(quote)
        assert quote.state == S.PROVISIONING  # what lies nowhere yet may go anywhere
    life.release(other)
    life.run(10)
    assert fresh(lease).state == S.ACTIVE
    life.release(lease)
    life.run(10)
    there = Offering.objects.get(region="eu-west", profile="card", price_class="on_demand")
    with pytest.raises(OutOfReach, match="home lies in north-2"):
        life.ask(kestrel, there, volume=volume.pk)


def test_nobody_waits_behind_a_lease_whose_volume_lies_where_all_is_taken(life: Life) -> None:
    fleet(Rack("north-1", REGION, MODEL, 1, 1), Rack("north-2", REGION, MODEL, 1, 1))
    kestrel = home("Kestrel")
    volume = life.volume(kestrel)
    with as_tenant(kestrel.tenant.pk):
        Volume.objects.filter(pk=volume.pk).update(
            cluster=Cluster.objects.get(name="north-2"), used_at=life.now
        )
    both = [life.lease(kestrel, offering("card"), max_duration_s=20_000) for _ in range(2)]
    in_first = next(lease for lease in both if again_in(lease) == "north-1")
    waits = life.ask(kestrel, offering("card"), volume=volume.pk)
    younger = life.ask(kestrel, offering("card"))
    life.run(3700)
    life.release(in_first)
    life.run(15)
    assert (fresh(waits).state, fresh(younger).state) == (S.QUEUED, S.ACTIVE)


def again_in(lease: Lease) -> str:
    with as_tenant(lease.tenant_id):
        return (
            lease.allocations.select_related("gpu__node__cluster").get(released_at=None).gpu.node.cluster.name
        )


class Moody(SimulatedProvisioner):
    """A provisioner whose clusters may not take an order, or not speak about volumes."""

    def __init__(self) -> None:
        self.full, self.silent, self.asked = set[str](), set[str](), list[str]()

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        seen = super().ensure(order, now=now)
        if order.cluster in self.full:
            return Observation(Seen.LOST, "its node does not take it", last_seen=now)
        return seen

    def at(self, cluster: Cluster) -> "Moody":
        self.asked.append(cluster.name)
        if cluster.name in self.silent:
            raise Unanswered("no route to host")
        return self


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> Moody:
    made = Moody()
    monkeypatch.setattr(clusters, "provisioner_of", lambda order: made)
    monkeypatch.setattr(clusters, "provisioner_at", made.at)
    return made


def test_an_empty_one_follows_its_lease_and_what_was_made_of_it_is_deleted_too(
    life: Life, moody: Moody
) -> None:
    fleet(Rack("north-1", REGION, MODEL, 1, 1), Rack("north-2", REGION, MODEL, 1, 1))
    kestrel = home("Kestrel")
    first = Cluster.objects.get(name="north-1")
    moody.full.add(first.pk)
    volume = life.volume(kestrel)
    lease = life.lease(kestrel, offering("card"), volume=volume.pk)
    there = again(volume)
    assert there.cluster
    assert (there.cluster.name, there.left_in) == ("north-2", [first.pk])
    assert again_in(lease) == "north-2"
    life.release(lease)
    life.run(10)
    delete(life, kestrel, volume)
    life.run(5)
    assert (again(volume).state, set(moody.asked)) == (V.DELETED, {"north-1", "north-2"})


def test_one_with_something_on_it_never_moves(life: Life, moody: Moody) -> None:
    fleet(Rack("north-1", REGION, MODEL, 1, 1), Rack("north-2", REGION, MODEL, 1, 1))
    kestrel = home("Kestrel")
    volume = life.volume(kestrel)
    life.release(life.lease(kestrel, offering("card"), volume=volume.pk))
    life.run(10)
    there = again(volume).cluster
    assert there
    moody.full.add(there.pk)
    lease = life.ask(kestrel, offering("card"), volume=volume.pk)
    life.run(10)
    assert again(volume).cluster == there
    assert (fresh(lease).state, held(lease)) == (S.QUEUED, [])
    assert "tried again in two minutes" in fresh(lease).waits_for


def test_it_is_deleted_only_when_no_cluster_has_it(life: Life, kestrel: Home, moody: Moody) -> None:
    volume = life.volume(kestrel, size_gib=30)
    lease = life.lease(kestrel, offering(), volume=volume.pk)
    with pytest.raises(VolumeInUse, match=f"{lease.name} has home, and is active"):
        delete(life, kestrel, volume)
    life.release(lease)
    life.run(10)
    moody.silent.add("north-1")
    going = delete(life, kestrel, volume)
    assert (going.state, delete(life, kestrel, going).state, going.version) == (V.DELETING, V.DELETING, 2)
    life.go(60)
    assert (again(volume).state, kestrel.used(STORAGE)) == (V.DELETING, 30)
    assert 4 <= len(moody.asked) <= 8  # every ten seconds
    moody.silent.clear()
    life.go(20)
    gone = again(volume)
    assert (gone.state, gone.deleted_at is not None, gone.due_at, kestrel.used(STORAGE)) == (
        V.DELETED,
        True,
        None,
        0,
    )
    assert not SimulatedVolume.objects.exists()
    no_contradiction(life)


def test_in_a_frozen_cluster_it_waits_for_an_operator(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    life.release(life.lease(kestrel, offering(), volume=volume.pk))
    life.run(10)
    Cluster.objects.update(frozen="another cluster answers in its place")
    delete(life, kestrel, volume)
    life.go(30)
    assert (again(volume).state, SimulatedVolume.objects.count()) == (V.DELETING, 1)
    Cluster.objects.update(frozen="")
    life.go(20)
    assert (again(volume).state, SimulatedVolume.objects.count()) == (V.DELETED, 0)


def test_what_an_old_state_of_a_cluster_brings_back_of_a_deleted_volume_is_deleted_again(
    life: Life, moody: Moody
) -> None:
    fleet(Rack("north-1", REGION, MODEL, 1, 1), Rack("north-2", REGION, MODEL, 1, 1))
    kestrel, moved = home("Kestrel"), Cluster.objects.get(name="north-1")
    volume, kept = life.volume(kestrel), life.volume(kestrel, "kept")
    for each in (volume, kept):
        life.release(life.lease(kestrel, offering("card"), volume=each.pk))
        life.run(10)
    delete(life, kestrel, volume)
    life.go(20)
    with as_tenant(kestrel.tenant.pk):
        lies = Cluster.objects.get(name="north-2")
        Volume.objects.filter(pk=volume.pk).update(cluster=lies, left_in=[moved.pk])
    SimulatedVolume.objects.create(name=volume.pk, size_gib=10, made_at=life.now)
    moody.asked.clear()
    moody.silent.add("north-1")
    freezing.thaw(moved, why="it was restored", actor=OPERATOR, now=life.now)
    life.go(20)
    assert set(moody.asked) == {"north-1", "north-2"}
    assert again(volume).due_at is not None
    moody.silent.clear()
    life.go(20)
    again_gone = again(volume)
    assert (again_gone.state, again_gone.due_at, kestrel.used(STORAGE)) == (V.DELETED, None, 10)
    assert list(SimulatedVolume.objects.values_list("name", flat=True)) == [kept.pk]
    moody.asked.clear()
    life.go(20)
    assert moody.asked == []
    no_contradiction(life)


def test_a_hint_that_comes_late_or_twice_gives_nothing_back_twice(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = life.volume(kestrel, size_gib=30)
    keeping.step(volume.pk, volume.tenant_id, now=life.now)  # nobody deletes it
    assert again(volume).state == V.READY
    life.volume(kestrel, "other", size_gib=7)
    delete(life, kestrel, volume)
    stale = again(volume)
    life.run(1)
    with as_tenant(kestrel.tenant.pk):
        keeping._finish(stale, life.now)
    assert kestrel.used(STORAGE) == 7


def test_a_simulated_cluster_takes_its_time_and_knows_what_it_never_had(life: Life) -> None:
    provisioner, kept = SimulatedProvisioner(), Kept("vol_1", 5)
    assert provisioner.remove_volume(kept, now=NOW).seen is Seen.GONE
    SimulatedVolume.objects.create(name="vol_1", size_gib=5, made_at=NOW)
    first = provisioner.remove_volume(kept, now=NOW)
    assert (first.seen, first.text) == (Seen.PENDING, "being deleted")
    again_at = SimulatedVolume.objects.get().gone_at
    assert again_at
    assert provisioner.remove_volume(kept, now=NOW).seen is Seen.PENDING
    assert provisioner.remove_volume(kept, now=again_at).seen is Seen.GONE


def at_once(count: int, act: Callable[[int], object]) -> list[str]:
    """Do the same in so many threads at one moment; return what became of each, by its type or its refusal's code."""
    barrier, told = Barrier(count), list[str]()

    def one(number: int) -> None:
        barrier.wait()
        try:
            told.append(type(act(number)).__name__)
        except Refused as refusal:
            told.append(refusal.code)
        finally:
            connection.close()

    threads = [Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(told)


def test_of_ten_who_want_it_at_once_one_has_it(own_database: OwnDatabase) -> None:
    with alive() as life:
        cards(8)
        kestrel = home("Kestrel")
        volume, what = life.volume(kestrel), offering()

        def ask(number: int) -> Lease:
            with as_tenant(kestrel.tenant.pk):
                wanted = Wanted(what.pk, f"race-{number}", 3600, volume=volume.pk)
                return request(wanted, project=kestrel.project, actor=kestrel.actor, now=NOW)

        assert at_once(10, ask) == ["Lease"] + ["volume-in-use"] * 9


def test_of_twelve_first_volumes_at_once_as_many_are_made_as_there_is_room_for(
    own_database: OwnDatabase, settings: LazySettings
) -> None:
    settings.NEW_TENANT_STORAGE_GIB = 50
    with alive() as life:
        kestrel = home("Kestrel")
        told = at_once(12, lambda number: life.volume(kestrel, f"volume-{number}", size_gib=10))
        assert told == ["Volume"] * 5 + ["quota-exceeded"] * 7
        assert kestrel.used(STORAGE) == 50
