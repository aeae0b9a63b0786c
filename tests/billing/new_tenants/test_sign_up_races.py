"""Sessions of one person or network that create tenants, or launch, at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from broker.models import Offering
from tenants.models import Tenant, User
from tenants.services.new_tenant_limits import NewTenantLimit
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.grants.grant_setup import create_grant
from tests.billing.new_tenants.founders import found, launch, person, sell_h200, sell_slice
from tests.database import OwnDatabase
from tests.simulation import NOW


@pytest.fixture
def small(own_database: OwnDatabase, settings: Any) -> Iterator[Offering]:
    from config.env import EnvironmentSettings
    from ports import clock, outbox

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        sell_h200()
        yield sell_slice()


def run_at_once(acts: list[Callable[[], object]]) -> int:
    """Run all on own connections at once; count those that were not refused."""
    start = Barrier(len(acts))

    def one(act: Callable[[], object]) -> bool:
        try:
            start.wait(60)
            act()
        except NewTenantLimit:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(len(acts)) as pool:
        return sum(pool.map(one, acts))


def test_two_sessions_of_one_person_create_one_tenant(small: Offering) -> None:
    accounts: list[User] = [person("ada@example.org"), person("ada+1@example.org")]
    acts = [partial(found, user, f"Tenant {n}", ip_address=f"192.0.2.{n}") for n, user in enumerate(accounts * 3)]
    assert run_at_once(acts) == 1
    with staff_scope():
        assert Tenant.objects.count() == 1


def test_many_people_of_one_network_create_only_so_many_at_once(small: Offering, settings: Any) -> None:
    settings.NEW_TENANTS_PER_NETWORK = 2
    people = [person(f"p{number}@example.org") for number in range(6)]
    assert run_at_once([partial(found, user, user.email) for user in people]) == 2


def test_launches_in_several_new_tenants_at_once_hold_no_more_together(small: Offering, settings: Any) -> None:
    settings.NEW_TENANTS_PER_PERSON, settings.NEW_TENANT_UNITS_PER_PERSON = 4, 3
    ada = person("ada@example.org")
    tenants = [found(ada, f"Tenant {n}", ip_address=f"192.0.2.{n}") for n in range(4)]
    for tenant in tenants:
        with tenant_scope(tenant.pk):
            create_grant(tenant, 10_000, now=NOW)
    assert run_at_once([partial(launch, tenant, ada, small) for tenant in tenants * 2]) == 3
