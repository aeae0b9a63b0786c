"""Concurrent requests and settlements on one wallet."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any
from unittest import mock

import pytest
from django.db import connection, connections

from billing.models import BillingPeriod
from billing.services.funds.holds import hold_settlement
from billing.services.funds.wallets import month_end_overruns
from billing.services.funds.wallets.prepaid_holds import PaymentRequired
from billing.services.rating import lease_rating
from ports import clock, outbox
from tenants.services.rls import tenant_scope
from tests.billing.budgets.test_budget_races import ask, extend
from tests.billing.histories import EURO, LONG_AGO, add_ended_lease, set_price, utc
from tests.billing.wallets.prepaid_tenants import available_cents, give_credit, held_cents, make_prepaid
from tests.database import OwnDatabase
from tests.simulation import NOW, TenantContext, create_fleet, create_tenant, offering

MANY, ROOM = 32, 7
EACH = 102  # an hour at a euro, and two cents for rounding


def run_concurrently(acts: list[Any]) -> int:
    """Run all on own connections at once; count the successes."""
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
def kestrel(own_database: OwnDatabase, settings: Any) -> Iterator[TenantContext]:
    from config.env import EnvironmentSettings

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        create_fleet()
        set_price(offering(), EURO, since=LONG_AGO)
        owner = create_tenant("Kestrel")
        make_prepaid(owner)
        yield owner


@pytest.mark.deep
def test_concurrent_lease_requests_hold_no_more_than_the_wallet(kestrel: TenantContext) -> None:
    give_credit(kestrel, ROOM * EACH + EACH - 1)
    left = kestrel.create_project("left")
    requests = [partial(ask, kestrel, (left, kestrel.project)[n % 2], offering().pk) for n in range(MANY)]
    assert run_concurrently(requests) == ROOM
    assert (held_cents(kestrel), available_cents(kestrel)) == (ROOM * EACH, EACH - 1)


def test_concurrent_settlements_extensions_and_requests_do_not_deadlock(kestrel: TenantContext) -> None:
    give_credit(kestrel, ROOM * EACH)
    leases = [ask(kestrel, kestrel.project, offering().pk) for _ in range(4)]
    acts: list[Any] = [partial(hold_settlement.settle_holds, now=NOW) for _ in range(4)]
    acts += [partial(extend, kestrel, lease) for lease in leases]
    acts += [partial(ask, kestrel, kestrel.project, offering().pk) for _ in range(8)]
    assert run_concurrently(acts) == 4 + 4 + ROOM - 4
    assert held_cents(kestrel) == ROOM * EACH


def test_month_close_settles_each_lease_in_its_own_transaction(kestrel: TenantContext) -> None:
    """Or it held the wallet for the next lease."""
    for hour in range(2):
        add_ended_lease(kestrel.project, offering(), utc(f"2026-10-05 0{hour}:00:00"), 60)
    lease_rating.rate_all_leases(now=NOW)
    with tenant_scope(kestrel.tenant.pk):
        month = BillingPeriod.objects.get(label="2026-10")
    seen = []

    def settled(lease_id: str, *_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()::text")
            seen.append((lease_id, cursor.fetchone()[0]))

    with mock.patch.object(month_end_overruns, "_settle_lease", settled):
        month_end_overruns.settle_month_holds(kestrel.tenant, month, now=NOW)
    assert [len(set(each)) for each in zip(*seen, strict=True)] == [2, 2]
