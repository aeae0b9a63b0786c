"""The tenant of these tests: one node of four H100 with prices."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.simulation import TenantContext


@pytest.fixture
def kestrel(priced_fleet: "TenantContext") -> "TenantContext":
    return priced_fleet
