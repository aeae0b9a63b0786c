"""Many at once on one budget: together they never hold more than it is."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connections

from billing.models import Budget
from billing.services.funds import budgets, settling
from billing.services.funds.holds import BudgetExceeded
from broker.models import Lease
from broker.services.leases import growing
from broker.services.leases.request import Wanted, request
from ports import clock, doorbell
from tenants.models import Project
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import budget, stands
from tests.billing.histories import EURO, LONG_AGO, reprice
from tests.database import OwnDatabase
from tests.world import NOW, Home, fleet, home, offering

MANY, ROOM = 32, 7


def at_once(acts: Sequence[Callable[[], Any]]) -> list[bool]:
    """Do all of it at one moment, each on a connection of its own; tell which of it was not refused."""
    start = threading.Barrier(len(acts))

    def one(act: Any) -> bool:
        try:
            start.wait(60)
            act()
        except BudgetExceeded:
            return False
        else:
            return True
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(one, acts))


@pytest.fixture
def kestrel(own_database: OwnDatabase, settings: Any) -> Iterator[Home]:
    from config.operator import Operator

    settings.LEASE_GATES = Operator.model_fields["lease_gates"].default
    with clock.standing_at(NOW), doorbell.heard_by(lambda *hint: None):
        fleet()
        reprice(offering(), EURO, since=LONG_AGO)
        yield home("Kestrel")


def ask(owner: Home, project: Project, what: str) -> Lease:
    with as_tenant(owner.tenant.pk):
        wanted = Wanted(offering_id=what, name="one of many", max_duration_s=3600)
        return request(wanted, project=project, actor=owner.actor, now=NOW)


def extend(owner: Home, lease: Lease) -> Lease:
    with as_tenant(owner.tenant.pk):
        return growing.extend(lease, more_s=3600, actor=owner.actor, now=NOW)


def test_many_who_ask_at_once_hold_no_more_than_the_budget(kestrel: Home) -> None:
    left, right = kestrel.child("left"), kestrel.child("right")
    root, small = budget(kestrel, ROOM * 100), budget(kestrel, 200, project=left)
    budget(kestrel, 10_000, project=right)
    asked = [partial(ask, kestrel, (left, right)[n % 2], offering().pk) for n in range(MANY)]
    assert sum(at_once(asked)) == ROOM
    assert stands(root) == (0, ROOM * 100, 0)
    assert stands(small)[1] <= 200


def test_a_budget_that_is_set_while_others_ask_counts_every_one(kestrel: Home) -> None:
    asked: list[Callable[[], Any]] = [
        partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(MANY)
    ]
    asked.insert(MANY // 2, partial(budget, kestrel, ROOM * 100))
    begun = sum(at_once(asked)) - 1
    assert stands(budget(kestrel, ROOM * 100))[:2] == (0, begun * 100)


def test_extensions_at_once_take_no_more_than_there_is(kestrel: Home) -> None:
    root = budget(kestrel, 600)
    leases = [ask(kestrel, kestrel.project, offering().pk) for _ in range(4)]
    assert sum(at_once([partial(extend, kestrel, lease) for lease in leases * 2])) == 2
    assert stands(root) == (0, 600, 0)


def test_a_budget_that_is_taken_away_while_others_ask_breaks_nobody(kestrel: Home) -> None:
    root = budget(kestrel, 100_000)
    asked: list[Callable[[], Any]] = [
        partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(MANY)
    ]
    asked.insert(MANY // 2, partial(remove, kestrel, root))
    assert all(at_once(asked))
    again = budget(kestrel, 100_000)
    assert stands(again)[:2] == (0, MANY * 100)


def remove(owner: Home, one: Budget) -> None:
    with as_tenant(owner.tenant.pk):
        budgets.remove(Budget.objects.select_related("project").get(pk=one.pk), actor=owner.actor, now=NOW)


def test_looks_and_extensions_at_once_wait_for_each_other_in_one_order(kestrel: Home) -> None:
    root = budget(kestrel, 100_000)
    leases = [ask(kestrel, kestrel.project, offering().pk) for _ in range(6)]
    later = NOW + timedelta(minutes=6)
    looks: list[Callable[[], Any]] = [partial(settling.look_again, now=later) for _ in range(4)]
    assert all(at_once(looks + [partial(extend, kestrel, lease) for lease in leases]))
    assert stands(root) == (0, 1200, 98_800)
