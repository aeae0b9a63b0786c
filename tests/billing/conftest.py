"""Tenant of the billing tests, without Django imports at load."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.simulation import TenantContext


@pytest.fixture
def kestrel() -> "TenantContext":
    from tests.simulation import create_tenant  # Django is set up by now

    return create_tenant("Kestrel")
