"""Concurrent requests and settlements of top-ups."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import TopUp
from billing.services.payments import gateway_transactions, manual_settlements
from billing.services.payments.manual_settlements import ManualSettlementRefused
from billing.services.payments.topups import topup_collection
from billing.services.payments.topups.topup_creation import TopUpRefused
from ports import clock, outbox, payments
from ports.payments import Succeeded
from tenants.services.rls import tenant_scope
from tests.billing.topups.topup_setup import (
    fail_next_topups,
    process_topup,
    reload_topup,
    request_topup,
    topups_of,
    wallet_balance,
)
from tests.database import OwnDatabase
from tests.simulation import NOW, TenantContext, create_tenant

MANY = 32


def run_concurrently(act: Callable[[], Any]) -> int:
    start = Barrier(MANY)

    def one(_: int) -> bool:
        try:
            start.wait(60)
            act()
        except (TopUpRefused, ManualSettlementRefused):
            return False
        else:
            return True
        finally:
            connections.close_all()

    with ThreadPoolExecutor(MANY) as pool:
        return sum(pool.map(one, range(MANY)))


@pytest.fixture
def kestrel(own_database: OwnDatabase) -> Iterator[TenantContext]:
    with (
        clock.frozen_at(NOW),
        outbox.captured(lambda *hint: None),
        payments.using_gateway(SimulatedGateway()),
    ):
        yield create_tenant("Kestrel")


def test_b15_32_concurrent_settlements_credit_a_top_up_once(kestrel: TenantContext) -> None:
    made = request_topup(kestrel, 5000)
    run_concurrently(partial(topup_collection.TOPUPS.settle, made, Succeeded("sim_1"), NOW))
    assert wallet_balance(kestrel) == 5000


def test_one_of_32_concurrent_top_up_requests_is_accepted(kestrel: TenantContext) -> None:
    assert run_concurrently(partial(request_topup, kestrel, 5000)) == 1
    assert len(topups_of(kestrel)) == 1


def test_a_successful_top_up_wins_over_a_concurrent_manual_settlement(kestrel: TenantContext) -> None:
    fail_next_topups(kestrel, GatewayFault.REJECTED)
    stuck = process_topup(request_topup(kestrel, 5000))
    turns = iter(range(MANY))

    def act() -> None:
        if next(turns) % 2:
            topup_collection.TOPUPS.settle(stuck, Succeeded("sim_1"), NOW)
        else:
            manual_settlements.settle_as_not_taken(
                topup_collection.TOPUPS,
                stuck,
                why="no",
                actor=kestrel.actor,
                now=NOW + gateway_transactions.CLAIM_DURATION,
            )

    run_concurrently(act)
    assert (reload_topup(stuck).status, wallet_balance(kestrel)) == ("succeeded", 5000)


def test_a_settled_top_up_cannot_change(kestrel: TenantContext) -> None:
    done = process_topup(request_topup(kestrel, 5000))
    for change in ({"minor": 1}, {"status": "declined"}):
        refused = pytest.raises(DatabaseError, match="stays what it is")
        with tenant_scope(kestrel.tenant.pk), refused, transaction.atomic():
            TopUp.objects.filter(pk=done.pk).update(**change)
