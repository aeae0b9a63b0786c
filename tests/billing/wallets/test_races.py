"""Many at once on one wallet: together they never take more than there is."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any
from unittest import mock

import pytest
from django.db import connection, connections

from billing.models import BillingPeriod
from billing.services import rating
from billing.services.funds import before_closing, settling
from billing.services.wallets.covering import PaymentRequired
from ports import clock, doorbell
from tenants.services.walls import as_tenant
from tests.billing.budgets.test_races import ask, extend
from tests.billing.histories import EURO, LONG_AGO, at, ran, reprice
from tests.billing.wallets.pockets import available, credit, prepaid, taken
from tests.database import OwnDatabase
from tests.world import NOW, Home, fleet, home, offering

MANY, ROOM = 32, 7
EACH = 102  # an hour at a euro, and two cents for rounding


def at_once(acts: list[Any]) -> int:
    """Do all of it at one moment, each on a connection of its own; count what was not refused."""
    start = Barrier(len(acts))

    def one(act: Any) -> bool:
        try:
            start.wait(60)
            act()
        except PaymentRequired:
            return False
        else:
            return True
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return sum(pool.map(one, acts))


@pytest.fixture
def kestrel(own_database: OwnDatabase, settings: Any) -> Iterator[Home]:
    from config.operator import Operator

    settings.LEASE_GATES = Operator.model_fields["lease_gates"].default
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None):
        fleet()
        reprice(offering(), EURO, since=LONG_AGO)
        owner = home("Kestrel")
        prepaid(owner)
        yield owner


def test_many_who_ask_at_once_take_no_more_than_there_is(kestrel: Home) -> None:
    credit(kestrel, ROOM * EACH + EACH - 1)
    left = kestrel.child("left")
    asked = [partial(ask, kestrel, (left, kestrel.project)[n % 2], offering().pk) for n in range(MANY)]
    assert at_once(asked) == ROOM
    assert (taken(kestrel), available(kestrel)) == (ROOM * EACH, EACH - 1)


def test_looks_extensions_and_requests_at_once_wait_for_each_other_in_one_order(kestrel: Home) -> None:
    credit(kestrel, ROOM * EACH)
    leases = [ask(kestrel, kestrel.project, offering().pk) for _ in range(4)]
    acts: list[Any] = [partial(settling.look_again, now=NOW) for _ in range(4)]
    acts += [partial(extend, kestrel, lease) for lease in leases]
    acts += [partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(8)]
    assert at_once(acts) == 4 + 4 + ROOM - 4
    assert taken(kestrel) == ROOM * EACH


def test_each_lease_of_a_month_that_closes_is_settled_in_a_transaction_of_its_own(kestrel: Home) -> None:
    """Or it kept the wallet while it waited for the next lease, which whoever looks at that keeps."""
    for hour in range(2):
        ran(kestrel.project, offering(), at(f"2026-10-05 0{hour}:00:00"), 60)
    rating.rate(now=NOW)
    with as_tenant(kestrel.tenant.pk):
        month = BillingPeriod.objects.get(label="2026-10")
    seen = []

    def settled(lease_id: str, *_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()::text")
            seen.append((lease_id, cursor.fetchone()[0]))

    with mock.patch.object(before_closing, "_settle", settled):
        before_closing.settle(kestrel.tenant, month, now=NOW)
    assert [len(set(each)) for each in zip(*seen, strict=True)] == [2, 2]
