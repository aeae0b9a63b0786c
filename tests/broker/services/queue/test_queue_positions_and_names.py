"""Queue positions, start times and names of leases."""

import pytest

from broker.models import Lease
from broker.services.leases import lease_names
from broker.services.queue import queue_positions
from tenants.models import AuditEvent
from tenants.services.errors import StaleVersion
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, offering, reload_lease


def test_queue_positions_count_all_tenants_but_show_only_own_leases(sim: Simulation) -> None:
    create_gpus(1)
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    sim.create_lease(kestrel, offering("whole-gpu"))
    theirs = sim.request_lease(swift, offering("whole-gpu"))
    sim.run(1)
    mine = sim.request_lease(kestrel, offering("whole-gpu"))
    with tenant_scope(kestrel.tenant.pk):
        assert queue_positions.load_queue_positions([mine, theirs]) == {mine.pk: queue_positions.QueuePosition(2, 2)}
        assert queue_positions.load_queue_positions([]) == {}


def test_recent_start_times_list_the_seconds_of_each_start(sim: Simulation) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    for _ in range(3):
        sim.create_lease(kestrel, offering())
    with tenant_scope(kestrel.tenant.pk):
        seconds = queue_positions.recent_start_times(kestrel.tenant.pk, offering())
    assert len(seconds) == 3
    assert list(seconds) == sorted(seconds)
    assert 1 < seconds[0] < 20


def test_renaming_a_lease_stores_and_audits_its_name_and_tags(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering(), name="old")
    with tenant_scope(kestrel.tenant.pk):
        lease_names.rename_lease(lease, name="new", tags={"team": "nlp"}, actor=kestrel.actor, now=sim.now)
        detail = AuditEvent.objects.get(action="lease.rename").detail
    assert (reload_lease(lease).name, reload_lease(lease).tags) == ("new", {"team": "nlp"})
    assert detail["before"] == {"name": "old", "tags": {}}


def test_renaming_a_lease_to_its_own_name_changes_nothing(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering(), name="old")
    with tenant_scope(kestrel.tenant.pk):
        assert lease_names.rename_lease(lease, name="old", actor=kestrel.actor, now=sim.now).version == lease.version


def test_renaming_a_stale_lease_is_refused(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering())
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(version=9)
        with pytest.raises(StaleVersion):
            lease_names.rename_lease(lease, name="new", actor=kestrel.actor, now=sim.now)
