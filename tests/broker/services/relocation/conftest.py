"""A plan to relocate one of two leases."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from broker.models import Lease, Relocation, RelocationPlan
    from tests.simulation import Simulation, TenantContext


@pytest.fixture
def kestrel(sim: "Simulation") -> "TenantContext":
    from tests.simulation import create_gpus, create_tenant

    create_gpus(2)
    return create_tenant("Kestrel")


@pytest.fixture
def plan(sim: "Simulation", kestrel: "TenantContext") -> "RelocationPlan":
    """Return an accepted plan."""
    from tests.broker.services.relocation.scattered_leases import accept_plan, scatter_leases

    scatter_leases(sim, kestrel, kestrel, relocatable=True)
    return accept_plan(sim)


@pytest.fixture
def move(plan: "RelocationPlan") -> "Relocation":
    from tests.broker.services.relocation.scattered_leases import relocations_of

    return relocations_of(plan)[0]


@pytest.fixture
def lease(move: "Relocation") -> "Lease":
    """Return the lease to be relocated."""
    from broker.models import Lease
    from tenants.services.rls import tenant_scope

    with tenant_scope(move.tenant_id):
        return Lease.objects.select_related("offering", "project").get(pk=move.lease_id)
