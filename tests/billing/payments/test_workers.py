"""Workers that commit for real: the gateway is asked while no transaction is open, and many of them pay once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Barrier

from django.db import connection

from billing.gateways.simulated import SimulatedGateway
from billing.services.payments import collecting, opening
from billing.services.payments.opening import NotPayable
from ports import payments
from ports.payments import Charge, Outcome
from tests.billing.payments.bills import NOW, Ill, bill, collect, fresh, ill, pay, taken, tried
from tests.database import OwnDatabase

WORKERS = 6


class Watched(SimulatedGateway):
    """Notes whether a transaction was open when it was asked."""

    def __init__(self) -> None:
        self.inside: list[bool] = []

    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        self.inside.append(connection.in_atomic_block)
        return super().charge(charge, now=now)


def test_the_gateway_is_asked_with_no_transaction_open(own_database: OwnDatabase) -> None:
    invoice, gateway = bill(), Watched()
    ill(invoice, Ill.LOST)
    with payments.through(gateway):
        payment = collect(pay(invoice))
        assert payment.due_at is not None
        collect(payment, now=payment.due_at)
    assert gateway.inside == [False, False]
    assert (fresh(invoice).status, taken(invoice)) == ("paid", [200])


def test_many_workers_at_once_open_one_payment_and_ask_once(own_database: OwnDatabase) -> None:
    invoice, gateway, barrier = bill(), Watched(), Barrier(WORKERS)

    def work(number: int) -> int:
        barrier.wait(60)
        try:
            opened = opening.open_due(now=NOW) if number % 2 else pressed()
            for hint in [*collecting.due(now=NOW), *collecting.due(now=NOW)]:
                collecting.collect(*hint[1:], now=NOW)
        finally:
            connection.close()
        return opened

    def pressed() -> int:
        try:
            pay(invoice)
        except NotPayable:
            return 0
        return 1

    with payments.through(gateway), ThreadPoolExecutor(WORKERS) as pool:
        opened = sum(pool.map(work, range(WORKERS)))
    assert opened == len(tried(invoice)) == 1
    assert len(gateway.inside) == 1
    assert (fresh(invoice).status, taken(invoice)) == ("paid", [200])
