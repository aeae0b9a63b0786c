"""Simulated gateway and captured messages for payment tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.billing.payments.payable_invoices import CapturedMessages


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments

    with payments.using_gateway(SimulatedGateway()):
        yield


@pytest.fixture(autouse=True)
def enqueued() -> "Iterator[CapturedMessages]":
    """Return the captured messages, oldest first."""
    from tests.billing.payments.payable_invoices import captured_messages

    with captured_messages() as hints:
        yield hints
