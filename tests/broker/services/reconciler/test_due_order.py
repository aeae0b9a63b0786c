"""Order of leases that are due."""

import pytest

from broker.models import Lease
from broker.services.reconciler import lease_reconciler
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, offering


@pytest.mark.deep
def test_leases_due_at_the_same_time_are_ordered_by_id(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    leases = [sim.create_lease(kestrel, offering("1g.10gb")).pk for _ in range(4)]
    with tenant_scope(kestrel.tenant.pk):
        for lease in reversed(leases):  # the one that was written last lies behind the others
            Lease.objects.filter(pk=lease).update(due_at=sim.now)
    assert [lease for _, lease, _ in lease_reconciler.due_messages(now=sim.now)] == leases
