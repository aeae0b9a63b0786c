"""Concurrent payments with real commits."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Barrier

from django.db import connection

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.services.payments import payment_collection, payment_creation
from billing.services.payments.payment_creation import NotPayable
from ports import payments
from ports.payments import GatewayCharge, GatewayOutcome
from tests.billing.payments.payable_invoices import (
    NOW,
    charged_amounts,
    create_final_invoice,
    fail_next_charges,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
)
from tests.database import OwnDatabase

WORKERS = 6


class Watched(SimulatedGateway):
    """Notes whether a transaction was open when it was asked."""

    def __init__(self) -> None:
        self.inside: list[bool] = []

    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        self.inside.append(connection.in_atomic_block)
        return super().charge(charge, now=now)


def test_the_gateway_is_called_outside_any_transaction(own_database: OwnDatabase) -> None:
    invoice, gateway = create_final_invoice(), Watched()
    fail_next_charges(invoice, GatewayFault.LOST)
    with payments.using_gateway(gateway):
        payment = process_payment(request_payment(invoice))
        assert payment.due_at is not None
        process_payment(payment, now=payment.due_at)
    assert gateway.inside == [False, False]
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])


def test_many_concurrent_workers_open_one_payment_and_charge_once(own_database: OwnDatabase) -> None:
    invoice, gateway, barrier = create_final_invoice(), Watched(), Barrier(WORKERS)

    def work(number: int) -> int:
        barrier.wait(60)
        try:
            opened = payment_creation.open_due_payments(now=NOW) if number % 2 else pressed()
            for hint in [
                *payment_collection.PAYMENTS.due(now=NOW),
                *payment_collection.PAYMENTS.due(now=NOW),
            ]:
                payment_collection.PAYMENTS.collect(*hint[1:], now=NOW)
        finally:
            connection.close()
        return opened

    def pressed() -> int:
        try:
            request_payment(invoice)
        except NotPayable:
            return 0
        return 1

    with payments.using_gateway(gateway), ThreadPoolExecutor(WORKERS) as pool:
        opened = sum(pool.map(work, range(WORKERS)))
    assert opened == len(payments_of(invoice)) == 1
    assert len(gateway.inside) == 1
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])
