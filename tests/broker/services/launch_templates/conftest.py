"""A tenant whose templates leases may choose."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.simulation import Simulation, TenantContext


@pytest.fixture
def kestrel(sim: "Simulation") -> "TenantContext":
    from tests.simulation import create_fleet, create_tenant

    create_fleet()
    return create_tenant("Kestrel")
