"""Asking and giving back lock a tree's quotas in one order, so that neither ever waits for the other in a circle."""

from collections.abc import Iterator
from datetime import datetime
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection

from broker.domain.states import EndReason
from broker.models import Lease
from broker.services.leases import ending
from config.operator import Operator
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, LONG_AGO, reprice
from tests.database import OwnDatabase
from tests.locks import wait_until_somebody_waits
from tests.world import Home, Life, alive, cards, fresh, home, offering

QUOTA, BURN, _ = Operator.model_fields["lease_gates"].default
HALFWAY = f"{__name__}.stop_halfway"
asking, may_go_on = Event(), Event()


def stop_halfway(lease: Lease, *, now: datetime) -> None:
    """A gate between the product's two: it waits until somebody else has gone as far as they can."""
    asking.set()
    assert may_go_on.wait(60)


@pytest.fixture
def life(own_database: OwnDatabase) -> Iterator[Life]:
    with alive() as life:
        yield life


def ceilings(owner: Home) -> None:
    for kind in (QuotaKind.UNITS, QuotaKind.GPU_SECONDS, QuotaKind.BURN):
        owner.quota(kind, 10**15)


def test_one_asks_while_another_gives_back(life: Life, settings: Any) -> None:
    cards(2)
    kestrel, slice_ = home("Kestrel"), offering("1g.10gb")
    ceilings(kestrel)
    reprice(slice_, EURO, since=LONG_AGO)
    settings.LEASE_GATES = (QUOTA, BURN)
    over = life.ask(kestrel, slice_)
    settings.LEASE_GATES = (QUOTA, HALFWAY, BURN)
    asking.clear(), may_go_on.clear()
    wrong: list[str] = []

    def ask() -> None:
        attempt(lambda: life.ask(kestrel, slice_))

    def give_back() -> None:
        assert asking.wait(60)
        with as_tenant(kestrel.tenant.pk):
            ending.release(fresh(over), reason=EndReason.BY_TENANT, now=life.now)

    def attempt(act: Any) -> None:
        try:
            act()
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    threads = [Thread(target=ask), Thread(target=attempt, args=(give_back,))]
    for thread in threads:
        thread.start()
    wait_until_somebody_waits()
    may_go_on.set()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert fresh(over).state == "released"
    assert [kestrel.used(kind) for kind in (QuotaKind.UNITS, QuotaKind.BURN)] == [1000, EURO]
