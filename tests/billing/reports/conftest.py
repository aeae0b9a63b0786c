"""Fixture for report tests: a tenant and one node with four priced H100 GPUs."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.simulation import TenantContext


@pytest.fixture
def kestrel(priced_fleet: "TenantContext") -> "TenantContext":
    return priced_fleet
