"""Billing locks: one per tenant, and one of all tenants for what all share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from django.db import OperationalError, connection, transaction

from billing.domain.parties import InvoiceParty
from billing.services.catalogue import price_list
from billing.services.invoicing import billing_details
from billing.services.invoicing.month_close import close_month
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.database import OwnDatabase

NOW = utc("2026-12-02 09:00:00")


@contextmanager
def held(take: Callable[[], None]) -> Iterator[None]:
    """Hold a lock in another session until the block ends."""
    taken, may_end = Event(), Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                take()
                taken.set()
                may_end.wait(30)
        finally:
            connection.close()

    thread = Thread(target=hold)
    thread.start()
    try:
        assert taken.wait(30)
        yield
    finally:
        may_end.set()
        thread.join(30)


def waits(take: Callable[[], object]) -> bool:
    """Return whether an action waits for another session."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '200ms'")
            take()
            transaction.set_rollback(True)
    except OperationalError:
        return True
    return False


def test_the_lock_of_a_tenant_excludes_that_tenant_only(own_database: OwnDatabase) -> None:
    with held(lambda: billing_periods.take_tenant_billing_locks(["ten_a", "ten_b"])):
        assert waits(lambda: billing_periods.take_tenant_billing_locks(["ten_b"]))
        assert not waits(lambda: billing_periods.take_tenant_billing_locks(["ten_c"]))
        assert waits(billing_periods.take_billing_lock)


def test_the_lock_of_all_tenants_excludes_each(own_database: OwnDatabase) -> None:
    with held(billing_periods.take_billing_lock):
        assert waits(lambda: billing_periods.take_tenant_billing_locks(["ten_c"]))
    many = [f"ten_{n}" for n in range(billing_periods.MAX_TENANT_LOCKS + 1)]
    with held(lambda: billing_periods.take_tenant_billing_locks(many)):
        assert waits(lambda: billing_periods.take_tenant_billing_locks(["ten_elsewhere"]))


@pytest.mark.timeout(120)
def test_while_a_month_closes_another_tenant_changes_its_details_and_is_charged(
    own_database: OwnDatabase,
) -> None:
    offering = create_priced_offering(EURO)
    closing, other = create_customer()[0], create_customer()
    add_ended_lease(other[1], offering, utc("2026-11-20 08:00:00"), HOUR)

    def change_details() -> None:
        with tenant_scope(other[0].pk):
            billing_details.set_billing_details(
                other[0],
                party=InvoiceParty("Kestrel GmbH", "Weg 1", postcode="10115", city="Berlin", country="DE"),
                actor=SYSTEM,
                now=NOW,
            )

    with held(lambda: billing_periods.take_tenant_billing_locks([closing.pk])):
        assert not waits(change_details)
        assert lease_rating.rate_all_leases(now=NOW).written == 1
        assert waits(lambda: close_month._charge_until(closing, utc("2026-12-01"), NOW))
        assert waits(
            lambda: price_list.publish_price(
                offering=offering, currency="EUR", nano_per_hour=2, since=utc("2027-01-01"), actor=SYSTEM, now=NOW
            )
        )
