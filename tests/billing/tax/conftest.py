"""A supplier in Berlin, a gateway that is only simulated, and hints that go nowhere."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.bills import heard

    with payments.through(SimulatedGateway()), heard():
        yield


@pytest.fixture(autouse=True)
def _supplier(settings: Any) -> None:
    from tests.billing.tax.papers import LUMEN

    settings.SUPPLIER = LUMEN.as_dict()
