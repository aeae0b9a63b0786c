"""A gateway that is only simulated collects, and hints go nowhere."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.bills import heard

    with payments.through(SimulatedGateway()), heard():
        yield
