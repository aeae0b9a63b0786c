"""Concurrent refunds at the simulated gateway."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from billing.gateways.simulated import SimulatedGateway
from billing.models import SimulatedRefund
from ports.payments import GatewayCharge, GatewayRefund, Succeeded
from tests.database import OwnDatabase
from tests.simulation import NOW

MANY = 32


@pytest.fixture
def gateway(own_database: OwnDatabase) -> SimulatedGateway:
    return SimulatedGateway()


def test_32_concurrent_refunds_return_no_more_than_was_charged(gateway: SimulatedGateway) -> None:
    gateway.charge(GatewayCharge("pay_1", 300, "EUR", "ten_1", "October"), now=NOW)
    start = Barrier(MANY)

    def one(n: int) -> bool:
        start.wait(60)
        try:
            back = GatewayRefund(f"ref_{n}", "pay_1", 100, "EUR", "ten_1", "back")
            return isinstance(gateway.refund(back, now=NOW), Succeeded)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(MANY) as pool:
        assert sum(pool.map(one, range(MANY))) == 3
    assert list(SimulatedRefund.objects.values_list("minor", flat=True)) == [100, 100, 100]
