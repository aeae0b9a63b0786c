"""A tenant whose lease may be relocated."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.simulation import Simulation, TenantContext


@pytest.fixture
def kestrel(sim: "Simulation") -> "TenantContext":
    """Create two GPUs, and two leases that one of them could hold."""
    from tests.broker.services.relocation.scattered_leases import scatter_leases
    from tests.simulation import create_gpus, create_tenant

    create_gpus(2)
    made = create_tenant("Kestrel")
    scatter_leases(sim, made, create_tenant("Merlin"), relocatable=True)
    return made
