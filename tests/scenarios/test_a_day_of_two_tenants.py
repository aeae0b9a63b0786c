"""A day of two tenants on one node of four GPUs."""

from datetime import timedelta

import pytest

from broker.services.leases.lifecycle import extension
from tenants.models import QuotaKind
from tenants.services.errors import QuotaExceeded
from tenants.services.quotas import set_limit
from tenants.services.rls import tenant_scope
from tests.simulation import (
    OPERATOR,
    Simulation,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    state_path,
    transitions_of,
)

HOUR = 3600


@pytest.mark.deep
def test_a_day_of_two_tenants_on_four_gpus(sim: Simulation) -> None:
    create_gpus(4)
    gpu, slice_ = offering("whole-gpu"), offering("1g.10gb")
    kestrel, swift = create_tenant("Kestrel", units=28), create_tenant("Swift", units=28)

    # 09:00 Kestrel's training takes three GPUs at once, all or nothing.
    training = sim.request_lease(kestrel, gpu, quantity=3, same_node=True, max_duration_s=8 * HOUR)
    sim.run(20)
    assert (reload_lease(training).state, len(held_allocations(training))) == ("active", 3)

    # 09:01 Swift wants two GPUs together. One is free, so it gets none, and is told what it waits for.
    gang = sim.request_lease(swift, gpu, quantity=2, max_duration_s=2 * HOUR)
    sim.run(60)
    assert (reload_lease(gang).state, held_allocations(gang)) == ("queued", [])
    assert reload_lease(gang).pending_reason == "Waits for 2 × H100 SXM 80GB whole GPU, free together. One is free now."

    # 09:02 A notebook is small and need not wait behind it.
    notebook = sim.request_lease(swift, slice_, max_duration_s=HOUR)
    sim.run(20)
    assert reload_lease(notebook).state == "active"

    # 09:05 Swift's owner caps a team that runs the notebook already: the cap begins with what runs.
    with tenant_scope(swift.tenant.pk):
        cap = set_limit(project=swift.project, kind=QuotaKind.GPU_SECONDS, limit=10**12, actor=OPERATOR, now=sim.now)
    assert cap.used == 2 * 7_000 * 2 * HOUR + 1_000 * HOUR

    # 09:10 Kestrel holds 21 of its 28 units. Two GPUs more are refused, and nothing of them stays behind.
    with pytest.raises(QuotaExceeded, match="21 are in use, 7 free, and this needs 14"):
        sim.request_lease(kestrel, gpu, quantity=2)
    assert kestrel.quota_used() == 21_000

    # 09:30 The training is done early. Nobody sweeps: the release itself wakes the queue.
    sim.clock.at += timedelta(minutes=20)
    sim.release_lease(training)
    sim.run(20)
    assert state_path(training) == "requested queued provisioning active releasing released"
    assert (reload_lease(gang).state, len(held_allocations(gang))) == ("active", 2)

    # 10:00 The notebook's hour is too short; it grows by one, and ends by itself at the very second.
    with tenant_scope(swift.tenant.pk):
        extension.extend_lease(reload_lease(notebook), more_s=HOUR, actor=swift.actor, now=sim.now)
    sim.run(3 * HOUR)
    ended = reload_lease(notebook)
    assert ended.active_at
    assert (ended.end_reason, ended.ended_at) == ("expired", ended.active_at + timedelta(hours=2))

    # In the evening nothing runs, nobody holds anything, and both quotas of what runs stand at nought.
    assert reload_lease(gang).state == "released"
    assert (kestrel.quota_used(), swift.quota_used()) == (0, 0)
    for lease in (training, gang, notebook):
        assert held_allocations(lease) == []
        assert [step.seq for step in transitions_of(lease)] == list(range(6))
