"""Thirty-two who send back at once, and credit notes meanwhile: once, and never more than there is."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from billing.gateways.simulated import SimulatedGateway
from billing.services.ledger import books
from billing.services.refunds import collecting
from billing.services.refunds.opening import NotRefundable
from ports import clock, doorbell, payments
from ports.payments import Declined, Succeeded
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff
from tests.billing.credits.notes import credit
from tests.billing.payments.bills import NOW
from tests.billing.refunds.ways import balance, every, fresh, paid, send_back, sent, work
from tests.database import OwnDatabase

MANY = 32


@pytest.fixture(autouse=True)
def _ours(own_database: OwnDatabase) -> Iterator[None]:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), payments.through(SimulatedGateway()):
        yield


def at_once(acts: list[Callable[[], Any]]) -> list[str]:
    """Do all of it at one moment, each on a connection of its own; return why what was refused was."""
    start = Barrier(len(acts))

    def one(act: Callable[[], Any]) -> str:
        try:
            start.wait(60)
            act()
        except (NotRefundable, Invalid) as refusal:
            return refusal.detail
        else:
            return ""
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


def test_of_thirty_two_refunds_at_once_one_is_let_in_and_the_others_are_told_of_it() -> None:
    invoice = paid()
    told = at_once([partial(send_back, invoice, 100)] * MANY)
    assert told.count("") == 1
    assert all("of €1.00 is pending" in each for each in told if each)
    work(every(invoice)[0])
    assert (sent(invoice), balance(invoice)) == ([100], 20)


def test_settled_by_many_at_once_with_either_answer_one_counts() -> None:
    invoice = paid()
    made = fresh(send_back(invoice, 100))
    answers = [Succeeded("simre_1"), Declined("no", "no")] * (MANY // 2)
    at_once([partial(collecting.SENDING.settle, made, answer, NOW) for answer in answers])
    assert balance(invoice) == {"succeeded": 20, "declined": 120}[fresh(made).status]
    with as_staff():
        assert books.reckoned()[1] == ()


def test_what_is_given_back_meanwhile_makes_no_refund_larger_than_what_was_paid() -> None:
    invoice = paid(credited=0)
    acts: list[Callable[[], Any]] = [partial(credit, invoice, {1: 120}), partial(send_back, invoice, 121)]
    assert "" in at_once(acts)[:1]
    assert "given back to the balance" in at_once([partial(send_back, invoice, 121)])[0]
    assert (every(invoice), balance(invoice)) == ([], 120)
