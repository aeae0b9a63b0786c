"""Supplier in Berlin, and payment collection by the simulated gateway."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _payments(simulated_payments: None) -> None:
    """Collect by the simulated gateway in every test here."""


@pytest.fixture(autouse=True)
def _supplier(settings: Any) -> None:
    from tests.billing.tax.taxed_tenants import LUMEN

    settings.SUPPLIER = LUMEN.as_dict()
