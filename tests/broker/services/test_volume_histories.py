"""A volume's history proves from when to when it was there and how large, whatever its cluster takes for it."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from broker.domain.states import LeaseState
from broker.models import Volume, VolumeStep
from broker.services.volumes import histories, keeping
from tenants.services.walls import as_tenant
from tests.world import NOW, OPERATOR, Home, Life, cards, fresh, home, offering

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel() -> Home:
    cards(1)
    return home("Kestrel")


def steps(volume: Volume) -> list[VolumeStep]:
    with as_tenant(volume.tenant_id):
        return list(VolumeStep.objects.filter(volume_id=volume.pk).order_by("seq"))


def test_it_begins_with_the_first_lease_that_is_active_and_ends_when_somebody_deletes_it(
    life: Life, kestrel: Home
) -> None:
    volume = life.volume(kestrel, size_gib=30)
    assert steps(volume) == []
    lease = fresh(life.lease(kestrel, offering(), LeaseState.ACTIVE, volume=volume.pk))
    [first] = steps(volume)
    assert (first.at, first.size_gib, first.seq) == (lease.active_at, 30, 0)
    life.run(90)
    life.release(fresh(lease))
    life.run(60)
    with as_tenant(kestrel.tenant.pk):
        keeping.delete(volume, actor=OPERATOR, now=life.now)
    asked = life.now.replace(microsecond=0)
    life.run(60)
    [first, last] = steps(volume)
    assert (last.at, last.size_gib, last.prev_gib, last.prev_at) == (asked, 0, 30, first.at)


def test_one_that_nothing_was_ever_on_has_no_history(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    with as_tenant(kestrel.tenant.pk):
        keeping.delete(volume, actor=OPERATOR, now=life.now)
    assert steps(volume) == []


def used(life: Life, kestrel: Home) -> Volume:
    volume = life.volume(kestrel, size_gib=30)
    life.lease(kestrel, offering(), LeaseState.ACTIVE, volume=volume.pk)
    return volume


@pytest.mark.parametrize(
    "forged",
    [
        "size_gib = 9",
        "at = at - interval '1 hour'",
        "prev_gib = 7",
        "seq = 5",
        "prev_at = prev_at - interval '1 s'",
        "offering_id = 'off_other'",
        "at = at + interval '1 ms'",
    ],
)
def test_the_database_refuses_what_does_not_follow(life: Life, kestrel: Home, forged: str) -> None:
    volume = used(life, kestrel)
    with as_tenant(kestrel.tenant.pk), transaction.atomic():
        histories.cut_all(kestrel.tenant, at=life.now + timedelta(hours=1))
    column, _, value = forged.partition(" = ")
    with as_tenant(kestrel.tenant.pk):
        last = steps(volume)[-1]
        row = {
            "volume_id": f"'{volume.pk}'", "seq": "2", "tenant_id": f"'{volume.tenant_id}'",
            "project_id": f"'{volume.project_id}'", "offering_id": f"'{last.offering_id}'",
            "at": "at", "prev_seq": "seq", "prev_at": "at", "prev_gib": "size_gib", "size_gib": "0", "cause": "'x'",
        }  # fmt: skip
        row[column] = value.replace("prev_at -", "at -")
        if column == "size_gib":
            row["prev_gib"] = "0"
        insert = f"INSERT INTO broker_volumestep ({', '.join(row)}) SELECT {', '.join(row.values())}"
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"{insert} FROM broker_volumestep WHERE volume_id = %s AND seq = 1", [volume.pk])
    assert len(steps(volume)) == 2


def test_what_is_over_has_nothing_after_it(life: Life, kestrel: Home) -> None:
    volume = used(life, kestrel)
    with as_tenant(kestrel.tenant.pk):
        histories.end(volume, at=life.now + timedelta(hours=1))
        histories.end(volume, at=life.now + timedelta(hours=2))
        assert not histories.cut(volume, at=life.now + timedelta(hours=3))
    assert len(steps(volume)) == 2


def test_a_cut_that_changes_nothing_is_none(life: Life, kestrel: Home) -> None:
    volume = used(life, kestrel)
    with as_tenant(kestrel.tenant.pk), transaction.atomic():
        assert histories.cut_all(kestrel.tenant, at=life.now + timedelta(hours=1)) == 1
        assert histories.cut_all(kestrel.tenant, at=life.now + timedelta(hours=1)) == 0
        histories.begin(Volume.objects.get(pk=volume.pk), at=life.now)
    assert [step.size_gib for step in steps(volume)] == [30, 30]


def test_what_an_older_release_did_not_write_is_written_later(life: Life, kestrel: Home) -> None:
    """Volumes that were there before the upgrade, and one that the old release deleted beside the new one."""
    with as_tenant(kestrel.tenant.pk):
        old = life.volume(kestrel, "old", size_gib=3)
        gone = used(life, kestrel)
        here = Volume.objects.get(pk=gone.pk)
        Volume.objects.filter(pk=old.pk).update(used_at=NOW - timedelta(days=40), cluster=here.cluster)
        keeping._record("volume.delete", here, actor=OPERATOR, now=life.now + timedelta(seconds=5))
        Volume.objects.filter(pk=gone.pk).update(state="deleting")
    due = histories.cut_due(now=life.now + timedelta(days=1))
    assert due == [kestrel.tenant.pk]
    assert steps(old)[0].at == NOW - timedelta(days=40)
    assert steps(gone)[-1].at == (life.now + timedelta(seconds=5)).replace(microsecond=0)
    assert steps(gone)[-1].size_gib == 0
    assert histories.cut_due(now=life.now + timedelta(days=1, seconds=9)) == []


def test_one_that_lies_nowhere_is_not_counted(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    with as_tenant(kestrel.tenant.pk):
        histories.begin(volume, at=life.now)
        Volume.objects.filter(pk=volume.pk).update(used_at=life.now - timedelta(days=2))
    assert histories.cut_due(now=life.now) == []
    assert steps(volume) == []
