"""The size history of volumes, which metering reads."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from broker.domain.lifecycle.states import LeaseState
from broker.models import Volume, VolumeSizeChange
from broker.services.volumes import volume_lifecycle, volume_metering
from tenants.services.rls import tenant_scope
from tests.simulation import (
    NOW,
    OPERATOR,
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    offering,
    reload_lease,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def kestrel() -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def size_changes(volume: Volume) -> list[VolumeSizeChange]:
    with tenant_scope(volume.tenant_id):
        return list(VolumeSizeChange.objects.filter(volume_id=volume.pk).order_by("seq"))


def test_volume_metering_starts_with_the_first_active_lease_and_ends_on_delete(
    sim: Simulation, kestrel: TenantContext
) -> None:
    volume = sim.create_volume(kestrel, size_gib=30)
    assert size_changes(volume) == []
    lease = reload_lease(sim.create_lease(kestrel, offering(), LeaseState.ACTIVE, volume=volume.pk))
    [first] = size_changes(volume)
    assert (first.at, first.size_gib, first.seq) == (lease.active_at, 30, 0)
    sim.run(90)
    sim.release_lease(reload_lease(lease))
    sim.run(60)
    with tenant_scope(kestrel.tenant.pk):
        volume_lifecycle.delete_volume(volume, actor=OPERATOR, now=sim.now)
    wanted = sim.now.replace(microsecond=0)
    sim.run(60)
    [first, last] = size_changes(volume)
    assert (last.at, last.size_gib, last.prev_gib, last.prev_at) == (wanted, 0, 30, first.at)


def test_an_unused_volume_has_no_size_history(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        volume_lifecycle.delete_volume(volume, actor=OPERATOR, now=sim.now)
    assert size_changes(volume) == []


def create_used_volume(sim: Simulation, kestrel: TenantContext) -> Volume:
    volume = sim.create_volume(kestrel, size_gib=30)
    sim.create_lease(kestrel, offering(), LeaseState.ACTIVE, volume=volume.pk)
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
def test_postgresql_refuses_an_inconsistent_size_change(sim: Simulation, kestrel: TenantContext, forged: str) -> None:
    volume = create_used_volume(sim, kestrel)
    with tenant_scope(kestrel.tenant.pk), transaction.atomic():
        volume_metering.add_tenant_ticks(kestrel.tenant, at=sim.now + timedelta(hours=1))
    column, _, value = forged.partition(" = ")
    with tenant_scope(kestrel.tenant.pk):
        last = size_changes(volume)[-1]
        row = {
            "volume_id": f"'{volume.pk}'", "seq": "2", "tenant_id": f"'{volume.tenant_id}'",
            "project_id": f"'{volume.project_id}'", "offering_id": f"'{last.offering_id}'",
            "at": "at", "prev_seq": "seq", "prev_at": "at", "prev_gib": "size_gib", "size_gib": "0", "cause": "'x'",
        }  # fmt: skip
        row[column] = value.replace("prev_at -", "at -")
        if column == "size_gib":
            row["prev_gib"] = "0"
        insert = f"INSERT INTO broker_volumesizechange ({', '.join(row)}) SELECT {', '.join(row.values())}"
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"{insert} FROM broker_volumesizechange WHERE volume_id = %s AND seq = 1", [volume.pk])
    assert len(size_changes(volume)) == 2


def test_an_ended_volume_history_accepts_no_more_entries(sim: Simulation, kestrel: TenantContext) -> None:
    volume = create_used_volume(sim, kestrel)
    with tenant_scope(kestrel.tenant.pk):
        volume_metering.end_history(volume, at=sim.now + timedelta(hours=1))
        volume_metering.end_history(volume, at=sim.now + timedelta(hours=2))
        assert not volume_metering.add_volume_tick(volume, at=sim.now + timedelta(hours=3))
    assert len(size_changes(volume)) == 2


def test_a_repeated_metering_tick_adds_no_entry(sim: Simulation, kestrel: TenantContext) -> None:
    volume = create_used_volume(sim, kestrel)
    with tenant_scope(kestrel.tenant.pk), transaction.atomic():
        assert volume_metering.add_tenant_ticks(kestrel.tenant, at=sim.now + timedelta(hours=1)) == 1
        assert volume_metering.add_tenant_ticks(kestrel.tenant, at=sim.now + timedelta(hours=1)) == 0
        volume_metering.start_history(Volume.objects.get(pk=volume.pk), at=sim.now)
    assert [step.size_gib for step in size_changes(volume)] == [30, 30]


def test_missing_history_of_an_older_release_is_added_later(sim: Simulation, kestrel: TenantContext) -> None:
    """Volumes from before the upgrade, one of them deleted by the old release."""
    with tenant_scope(kestrel.tenant.pk):
        old = sim.create_volume(kestrel, "old", size_gib=3)
        gone = create_used_volume(sim, kestrel)
        here = Volume.objects.get(pk=gone.pk)
        Volume.objects.filter(pk=old.pk).update(used_at=NOW - timedelta(days=40), cluster=here.cluster)
        volume_lifecycle._record_audit("volume.delete", here, actor=OPERATOR, now=sim.now + timedelta(seconds=5))
        Volume.objects.filter(pk=gone.pk).update(state="deleting")
    due = volume_metering.add_due_ticks(now=sim.now + timedelta(days=1))
    assert due == [kestrel.tenant.pk]
    assert size_changes(old)[0].at == NOW - timedelta(days=40)
    assert size_changes(gone)[-1].at == (sim.now + timedelta(seconds=5)).replace(microsecond=0)
    assert size_changes(gone)[-1].size_gib == 0
    assert volume_metering.add_due_ticks(now=sim.now + timedelta(days=1, seconds=9)) == []


def test_a_volume_without_a_cluster_is_not_metered(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        volume_metering.start_history(volume, at=sim.now)
        Volume.objects.filter(pk=volume.pk).update(used_at=sim.now - timedelta(days=2))
    assert volume_metering.add_due_ticks(now=sim.now) == []
    assert size_changes(volume) == []
