"""A tenant's currency is what its charges are counted in: it never changes under them."""

from threading import Event, Thread

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction

from billing.services import rating
from tenants.models import Tenant
from tenants.services import tenants
from tenants.services.actors import SYSTEM
from tenants.services.tenants import CurrencyStays
from tenants.services.walls import as_tenant
from tests.billing.histories import HOUR, at, charges, customer, ran, runs, sold
from tests.database import OwnDatabase
from tests.locks import wait_until_somebody_waits

NOW = at("2026-11-21 09:00:00")
USED = at("2026-11-10 09:00:00")


def move(tenant: Tenant, currency: str = "USD") -> None:
    with as_tenant(tenant.pk):
        Tenant.objects.filter(pk=tenant.pk).update(currency=currency)


def currency(tenant: Tenant) -> str:
    with as_tenant(tenant.pk):
        return Tenant.objects.get(pk=tenant.pk).currency


@pytest.mark.django_db
def test_a_tenant_that_was_never_charged_may_take_another_currency() -> None:
    tenant, _ = customer()
    charged, project = customer()
    ran(project, sold(), USED, HOUR)
    rating.rate_tenant(charged, now=NOW)
    move(tenant)
    assert currency(tenant) == "USD"


@pytest.mark.django_db
def test_the_products_own_login_cannot_change_it_under_a_charge() -> None:
    tenant, project = customer()
    ran(project, sold(), USED, HOUR)
    rating.rate_tenant(tenant, now=NOW)
    assert charges(tenant)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("gpubroker_web",)
    with pytest.raises(IntegrityError, match="stays with it"), transaction.atomic():
        move(tenant)
    assert currency(tenant) == "EUR"


@pytest.mark.django_db
@pytest.mark.parametrize("use", [ran, runs])
def test_it_stays_for_seconds_that_are_not_rated_yet(use: object) -> None:
    tenant, project = customer()
    if use is ran:
        ran(project, sold(), USED, HOUR)
    else:
        runs(project, sold(), USED)
    with pytest.raises(IntegrityError, match="stays with it"), transaction.atomic():
        move(tenant)


@pytest.mark.django_db
def test_everything_else_of_a_charged_tenant_may_still_change() -> None:
    tenant, project = customer()
    ran(project, sold(), USED, HOUR)
    rating.rate_tenant(tenant, now=NOW)
    move(tenant, "EUR")
    with as_tenant(tenant.pk):
        assert tenants.change(tenant, actor=SYSTEM, now=NOW, name="New").name == "New"


@pytest.mark.django_db
def test_a_service_is_told_why() -> None:
    tenant, project = customer()
    ran(project, sold(), USED, HOUR)
    with as_tenant(tenant.pk), pytest.raises(CurrencyStays, match="EUR") as refused:
        tenants.change(tenant, actor=SYSTEM, now=NOW, currency="USD")
    assert refused.value.status == 409
    assert currency(tenant) == "EUR"


def test_an_administrator_whom_no_wall_stops_is_refused_too(own_database: OwnDatabase) -> None:
    tenant, project = customer()
    ran(project, sold(), USED, HOUR)
    rating.rate_tenant(tenant, now=NOW)
    with (
        own_database.server.as_administrator(own_database.name) as administrator,
        pytest.raises(psycopg.errors.RestrictViolation, match="stays with it"),
    ):
        administrator.execute("UPDATE tenants_tenant SET currency = 'USD'")


def test_a_charge_on_its_way_is_waited_for(own_database: OwnDatabase) -> None:
    tenant, project = customer()
    ran(project, sold(), USED, HOUR)
    rated, go, wrong = Event(), Event(), []

    def rate() -> None:
        try:
            with transaction.atomic():
                rating.rate_tenant(tenant, now=NOW)
                rated.set()
                go.wait(60)
        finally:
            connection.close()

    def change() -> None:
        try:
            move(tenant)
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
        wait_until_somebody_waits()
    finally:
        go.set()
        first.join(60)
        second.join(60)
    assert len(wrong) == 1
    assert (currency(tenant), len(charges(tenant))) == ("EUR", 1)
