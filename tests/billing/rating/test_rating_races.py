"""Concurrent rating, price changes and month close."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

import pytest
from django.db import connection, connections, transaction

from billing.models import InvoiceSeries
from billing.services.catalogue import price_list
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.services.rls import tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    invoices_of,
    set_price,
    utc,
)
from tests.database import OwnDatabase

NOW = utc("2026-11-21 09:00:00")
WORKERS = 4


def together(*works: Callable[[], object]) -> list[BaseException]:
    """Run each in a thread with its own connection; return the errors."""
    wrong: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            wrong.append(error)
        finally:
            connection.close()

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return wrong


@contextmanager
def refused_charges(unless: str) -> Iterator[None]:
    """Let PostgreSQL accept only charges that meet a condition."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"ALTER TABLE billing_ratedcharge ADD CONSTRAINT only_for_this_test CHECK ({unless}) NOT VALID")
        yield
        cursor.execute("ALTER TABLE billing_ratedcharge DROP CONSTRAINT only_for_this_test")


def test_b11_usage_committed_after_a_rating_run_is_charged_by_the_next(
    own_database: OwnDatabase,
) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    written, may_commit = Event(), Event()

    def slowly() -> None:
        with tenant_scope(tenant.pk):
            add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), HOUR)
            written.set()
            may_commit.wait(30)

    def meanwhile() -> None:
        written.wait(30)
        add_ended_lease(project, offering, utc("2026-11-20 10:00:00"), 60)
        assert lease_rating.rate_all_leases(now=NOW).written == 1
        may_commit.set()

    assert together(slowly, meanwhile) == []
    assert lease_rating.rate_all_leases(now=NOW).written == 1
    assert sorted(charge.unit_seconds for charge in charges_of(tenant)) == [60, HOUR]
    assert lease_rating.rate_all_leases(now=NOW).written == 0


@pytest.mark.deep
def test_usage_rated_during_a_month_close_goes_on_the_next_invoice(own_database: OwnDatabase) -> None:
    """Charges during the close would land on a final invoice."""
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    closed, charged = Event(), Event()

    def close() -> None:
        with tenant_scope(tenant.pk):
            close_month.close_period(tenant, "2026-10", now=NOW)
            closed.set()
            charged.wait(2)  # in vain where the run waits for us, as it should

    def late() -> None:
        closed.wait(30)
        add_ended_lease(project, offering, utc("2026-10-31 22:00:00"), 60)
        lease_rating.rate_all_leases(now=NOW)
        charged.set()

    assert together(close, late) == []
    drafts.refresh_drafts(tenant, now=NOW)
    first, second = invoices_of(tenant)
    assert (first.status, first.total) == ("finalized", 100)
    assert (second.status, second.total) == ("draft", 2)


def test_a_price_cannot_start_before_seconds_already_charged(own_database: OwnDatabase) -> None:
    """Usage after the button was pressed may be rated before the price."""
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, NOW - timedelta(seconds=HOUR), HOUR + 5)
    assert lease_rating.rate_all_leases(now=NOW + timedelta(seconds=6)).written == 1
    with pytest.raises(price_list.PriceAlreadyCharged, match="may have been charged"):
        set_price(offering, 2 * EURO, since=NOW)
    set_price(offering, 2 * EURO, since=NOW + timedelta(seconds=5))
    assert [charge.exact_num for charge in charges_of(tenant)] == [(HOUR + 5) * EURO]


@pytest.mark.deep
def test_rating_waits_for_a_concurrent_price_change(own_database: OwnDatabase) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    written, charged = Event(), Event()

    def publish() -> None:
        with transaction.atomic():
            set_price(offering, 2 * EURO, since=NOW)
            written.set()
            charged.wait(2)  # in vain where the run waits for us, as it should

    def rate() -> None:
        written.wait(30)
        add_ended_lease(project, offering, NOW - timedelta(seconds=HOUR), 2 * HOUR)
        lease_rating.rate_all_leases(now=NOW + timedelta(seconds=HOUR))
        charged.set()

    assert together(publish, rate) == []
    assert sum(charge.exact_num for charge in charges_of(tenant)) == HOUR * EURO + HOUR * 2 * EURO


def test_a_database_error_blocks_charges_of_its_own_tenant_only(own_database: OwnDatabase) -> None:
    offering, ran_by = create_priced_offering(), []
    for _ in range(5):
        tenant, project = create_customer()
        add_ended_lease(project, offering, utc("2026-11-20 08:00:00"), 60)
        ran_by.append(tenant)
    odd = ran_by[2]
    with refused_charges(f"tenant_id <> '{odd.pk}'"):
        outcome = lease_rating.rate_all_leases(now=NOW)
        assert (outcome.written, len(outcome.tenants)) == (4, 4)
        assert [one.tenant for one in outcome.broken] == [odd.pk]
        assert "only_for_this_test" in outcome.broken[0].why
    assert charges_of(odd) == []
    repaired = lease_rating.rate_all_leases(now=NOW)
    assert (repaired.written, repaired.broken) == (1, ())
    assert [charge.unit_seconds for charge in charges_of(odd)] == [60]


def test_concurrent_rating_and_drafting_charges_all_usage_once(own_database: OwnDatabase) -> None:
    offering = create_priced_offering(EURO)
    customers = [create_customer() for _ in range(3)]
    for _, project in customers:
        for day in range(1, 11):
            add_ended_lease(project, offering, utc(f"2026-11-{day:02d} 08:00:00"), HOUR)

    def work() -> None:
        for tenant_id in lease_rating.rate_all_leases(now=NOW).tenants:
            drafts.refresh_all_drafts([tenant_id], now=NOW)

    assert together(*[work] * WORKERS) == []
    for tenant, _ in customers:
        assert len(charges_of(tenant)) == 10
        drafts.refresh_drafts(tenant, now=NOW)
        assert [invoice.total for invoice in invoices_of(tenant)] == [1000]


def test_b36_concurrent_month_close_assigns_every_invoice_number_once(own_database: OwnDatabase) -> None:
    offering = create_priced_offering(EURO)
    customers = [create_customer() for _ in range(8)]
    for _, project in customers:
        add_ended_lease(project, offering, utc("2026-10-05 08:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)

    def work() -> None:
        close_month.close_due_months(now=NOW)

    assert together(*[work] * WORKERS) == []
    numbers = [invoice.number for tenant, _ in customers for invoice in invoices_of(tenant)]
    assert sorted(numbers) == list(range(1, 9))
    assert InvoiceSeries.objects.get().next_number == 9
