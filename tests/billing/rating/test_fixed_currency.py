"""Fixed currency of tenants with usage or charges."""

from threading import Event, Thread

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction

from billing.services.rating import lease_rating
from tenants.models import Tenant
from tenants.services import tenants
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tenants.services.tenants import CurrencyFixed
from tests.billing.histories import (
    HOUR,
    add_ended_lease,
    add_running_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    utc,
)
from tests.database import OwnDatabase
from tests.locks import wait_for_lock_waiter

NOW = utc("2026-11-21 09:00:00")
USED = utc("2026-11-10 09:00:00")


def set_currency(tenant: Tenant, currency: str = "USD") -> None:
    with tenant_scope(tenant.pk):
        Tenant.objects.filter(pk=tenant.pk).update(currency=currency)


def current_currency(tenant: Tenant) -> str:
    with tenant_scope(tenant.pk):
        return Tenant.objects.get(pk=tenant.pk).currency


@pytest.mark.django_db
def test_a_tenant_without_charges_can_change_its_currency() -> None:
    tenant, _ = create_customer()
    charged, project = create_customer()
    add_ended_lease(project, create_priced_offering(), USED, HOUR)
    lease_rating.rate_tenant_leases(charged, now=NOW)
    set_currency(tenant)
    assert current_currency(tenant) == "USD"


@pytest.mark.django_db
def test_the_web_role_cannot_change_the_currency_of_a_charged_tenant() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), USED, HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    assert charges_of(tenant)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("gpubroker_web",)
    with pytest.raises(IntegrityError, match="stays with it"), transaction.atomic():
        set_currency(tenant)
    assert current_currency(tenant) == "EUR"


@pytest.mark.django_db
@pytest.mark.parametrize("use", [add_ended_lease, add_running_lease])
def test_the_currency_is_fixed_by_unrated_usage(use: object) -> None:
    tenant, project = create_customer()
    if use is add_ended_lease:
        add_ended_lease(project, create_priced_offering(), USED, HOUR)
    else:
        add_running_lease(project, create_priced_offering(), USED)
    with pytest.raises(IntegrityError, match="stays with it"), transaction.atomic():
        set_currency(tenant)


@pytest.mark.django_db
def test_other_fields_of_a_charged_tenant_can_change() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), USED, HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    set_currency(tenant, "EUR")
    with tenant_scope(tenant.pk):
        assert tenants.change(tenant, actor=SYSTEM, now=NOW, name="New").name == "New"


@pytest.mark.django_db
def test_a_refused_currency_change_names_the_fixed_currency() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), USED, HOUR)
    with tenant_scope(tenant.pk), pytest.raises(CurrencyFixed, match="EUR") as refused:
        tenants.change(tenant, actor=SYSTEM, now=NOW, currency="USD")
    assert refused.value.status == 409
    assert current_currency(tenant) == "EUR"


def test_an_administrator_who_bypasses_rls_cannot_change_the_currency_either(own_database: OwnDatabase) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), USED, HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    with (
        own_database.server.as_administrator(own_database.name) as administrator,
        pytest.raises(psycopg.errors.RestrictViolation, match="stays with it"),
    ):
        administrator.execute("UPDATE tenants_tenant SET currency = 'USD'")


def test_a_currency_change_waits_for_an_uncommitted_charge(own_database: OwnDatabase) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), USED, HOUR)
    rated, go, wrong = Event(), Event(), []

    def rate() -> None:
        try:
            with transaction.atomic():
                lease_rating.rate_tenant_leases(tenant, now=NOW)
                rated.set()
                go.wait(60)
        finally:
            connection.close()

    def change() -> None:
        try:
            set_currency(tenant)
        except IntegrityError as error:
            wrong.append(error)
        finally:
            connection.close()

    first = Thread(target=rate)
    first.start()
    assert rated.wait(60)
    second = Thread(target=change)
    second.start()
    try:
        wait_for_lock_waiter()
    finally:
        go.set()
        first.join(60)
        second.join(60)
    assert len(wrong) == 1
    assert (current_currency(tenant), len(charges_of(tenant))) == ("EUR", 1)
