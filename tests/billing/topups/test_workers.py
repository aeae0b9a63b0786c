"""Thirty-two who settle one top-up at once put the money in once, and of as many who ask one is let in."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from billing.gateways.simulated import Ill, SimulatedGateway
from billing.models import TopUp
from billing.services.moves import by_hand, moving
from billing.services.moves.by_hand import NotByHand
from billing.services.topups import collecting
from billing.services.topups.opening import NotNow
from ports import clock, doorbell, payments
from ports.payments import Succeeded
from tenants.services.walls import as_tenant
from tests.billing.topups.tills import balance, collect, every, fresh, ill, top_up
from tests.database import OwnDatabase
from tests.world import NOW, Home, home

MANY = 32


def at_once(act: Callable[[], Any]) -> int:
    start = Barrier(MANY)

    def one(_: int) -> bool:
        try:
            start.wait(60)
            act()
        except (NotNow, NotByHand):
            return False
        else:
            return True
        finally:
            connections.close_all()

    with ThreadPoolExecutor(MANY) as pool:
        return sum(pool.map(one, range(MANY)))


@pytest.fixture
def kestrel(own_database: OwnDatabase) -> Iterator[Home]:
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None), payments.through(SimulatedGateway()):
        yield home("Kestrel")


def test_b15_thirty_two_settles_at_once_credit_once(kestrel: Home) -> None:
    made = top_up(kestrel, 5000)
    at_once(partial(collecting.TOPUPS.settle, made, Succeeded("sim_1"), NOW))
    assert balance(kestrel) == 5000


def test_of_thirty_two_who_ask_at_once_one_is_let_in(kestrel: Home) -> None:
    assert at_once(partial(top_up, kestrel, 5000)) == 1
    assert len(every(kestrel)) == 1


def test_of_settles_and_the_operators_word_at_once_what_was_taken_counts(kestrel: Home) -> None:
    ill(kestrel, Ill.REJECTED)
    stuck = collect(top_up(kestrel, 5000))
    turns = iter(range(MANY))

    def act() -> None:
        if next(turns) % 2:
            collecting.TOPUPS.settle(stuck, Succeeded("sim_1"), NOW)
        else:
            by_hand.nothing_was_taken(
                collecting.TOPUPS, stuck, why="no", actor=kestrel.actor, now=NOW + moving.CLAIM
            )

    at_once(act)
    assert (fresh(stuck).status, balance(kestrel)) == ("succeeded", 5000)


def test_a_settled_topup_stays_what_it_is(kestrel: Home) -> None:
    done = collect(top_up(kestrel, 5000))
    for change in ({"minor": 1}, {"status": "declined"}):
        refused = pytest.raises(DatabaseError, match="stays what it is")
        with as_tenant(kestrel.tenant.pk), refused, transaction.atomic():
            TopUp.objects.filter(pk=done.pk).update(**change)
