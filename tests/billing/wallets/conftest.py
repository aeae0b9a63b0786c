"""Tenant on a priced fleet with all lease gates."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.simulation import TenantContext


@pytest.fixture
def kestrel(priced_tenant: "TenantContext") -> "TenantContext":
    return priced_tenant
