"""Payment collection by the simulated gateway."""

import pytest


@pytest.fixture(autouse=True)
def _payments(simulated_payments: None) -> None:
    """Collect by the simulated gateway in every test here."""
