"""A fleet of H200 with prices, and a person who signs up."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from broker.models import Offering
    from tenants.models import User
    from tests.simulation import Simulation


@pytest.fixture
def h200(sim: "Simulation", settings: Any) -> "Offering":
    """Sell whole H200, with all lease gates."""
    from config.env import EnvironmentSettings
    from tests.billing.new_tenants import founders

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    return founders.sell_h200()


@pytest.fixture
def small(h200: "Offering") -> "Offering":
    """Return the smallest slice of an H200, with a price."""
    from tests.billing.new_tenants import founders

    return founders.sell_slice()


@pytest.fixture
def ada(db: None) -> "User":
    from tests.billing.new_tenants import founders

    return founders.person("ada@example.org")
