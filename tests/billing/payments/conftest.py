"""A gateway that is only simulated stands behind every test of payments, and hints go nowhere."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.billing.payments.bills import Rung


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments

    with payments.through(SimulatedGateway()):
        yield


@pytest.fixture(autouse=True)
def rung() -> "Iterator[Rung]":
    """The hints that were given, first to last."""
    from tests.billing.payments.bills import heard

    with heard() as hints:
        yield hints
