"""Lock order of quotas in concurrent requests and releases."""

from collections.abc import Iterator
from datetime import datetime
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection

from broker.domain.lifecycle.states import EndReason
from broker.models import Lease
from broker.services.leases.lifecycle import termination
from config.env import EnvironmentSettings
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, LONG_AGO, set_price
from tests.database import OwnDatabase
from tests.locks import wait_for_lock_waiter
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease, simulate

QUOTA, BURN, *_ = EnvironmentSettings.model_fields["lease_gates"].default
HALFWAY = f"{__name__}.stop_halfway"
asking, may_go_on = Event(), Event()


def stop_halfway(lease: Lease, *, now: datetime) -> None:
    """Wait in a gate until another worker has gone further."""
    asking.set()
    assert may_go_on.wait(60)


@pytest.fixture
def sim(own_database: OwnDatabase) -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


def set_high_quotas(owner: TenantContext) -> None:
    for kind in (QuotaKind.UNITS, QuotaKind.GPU_SECONDS, QuotaKind.BURN):
        owner.set_quota(kind, 10**15)


def test_a_lease_request_and_a_concurrent_release_do_not_deadlock(sim: Simulation, settings: Any) -> None:
    create_gpus(2)
    kestrel, slice_ = create_tenant("Kestrel"), offering("1g.10gb")
    set_high_quotas(kestrel)
    set_price(slice_, EURO, since=LONG_AGO)
    settings.LEASE_GATES = (QUOTA, BURN)
    over = sim.request_lease(kestrel, slice_)
    settings.LEASE_GATES = (QUOTA, HALFWAY, BURN)
    asking.clear(), may_go_on.clear()
    wrong: list[str] = []

    def ask() -> None:
        attempt(lambda: sim.request_lease(kestrel, slice_))

    def give_back() -> None:
        assert asking.wait(60)
        with tenant_scope(kestrel.tenant.pk):
            termination.release_lease(reload_lease(over), reason=EndReason.BY_TENANT, now=sim.now)

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
    wait_for_lock_waiter()
    may_go_on.set()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert reload_lease(over).state == "released"
    assert [kestrel.quota_used(kind) for kind in (QuotaKind.UNITS, QuotaKind.BURN)] == [1000, EURO]
