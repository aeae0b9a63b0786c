"""Payment collection by the simulated gateway."""

import pytest


@pytest.fixture(autouse=True)
def _payments(simulated_payments: None) -> None:
    """Use the simulated payment gateway in every test here."""
