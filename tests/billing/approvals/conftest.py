"""A tenant on four priced GPUs, with all lease gates and people who ask and approve."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.billing.approvals.approval_setup import Workplace
    from tests.simulation import Simulation


@pytest.fixture
def kestrel(sim: "Simulation", settings: Any) -> "Workplace":
    from config.env import EnvironmentSettings
    from tests.billing.approvals.approval_setup import create_workplace

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    return create_workplace(sim)
