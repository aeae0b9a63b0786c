"""Month close across clock changes, first usage dates and server time zones.

Prefix bN: number of the bug in the catalogue of billing bugs (`make mutants`).
"""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import connection

from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_running_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    invoices_of,
    periods_of,
    utc,
)
from tests.database import OwnDatabase

# Zones whose clocks change around midnight, by half an hour, or skip a midnight altogether.
UNUSUAL_ZONES = ("Australia/Lord_Howe", "Africa/Cairo", "America/Santiago", "Asia/Beirut", "Atlantic/Azores")


def moments_around_months(year: int) -> Iterator[datetime]:
    """Yield moments around the start of every month of a year."""
    for month in [*(f"{year}-{number:02d}" for number in range(1, 13)), f"{year + 1}-01"]:
        first = utc(f"{month}-01 00:00:00")
        yield from (first + timedelta(hours=hours) for hours in range(-24, 25, 6))


@pytest.mark.deep
@pytest.mark.django_db
@pytest.mark.parametrize("zone", UNUSUAL_ZONES)
def test_b6_closing_terminates_with_one_invoice_per_month_for_a_year(zone: str) -> None:
    tenant, project = create_customer(zone)
    add_running_lease(project, create_priced_offering(EURO), utc("2025-12-15 12:00:00"))
    for now in moments_around_months(2026):
        lease_rating.rate_all_leases(now=now)
        close_month.close_due_months(now=now)
    labels = [invoice.period.label for invoice in invoices_of(tenant)]
    assert labels == ["2025-12", *[f"2026-{month:02d}" for month in range(1, 13)]]
    last = periods_of(tenant)[12].span.upper
    used = int((last - utc("2025-12-15 12:00:00")).total_seconds())
    assert sum(charge.unit_seconds for charge in charges_of(tenant)) == used
    assert close_month.close_due_months(now=now).months == 0


@pytest.mark.django_db
def test_b7_the_date_of_the_first_usage_changes_no_invoice_total() -> None:
    offering, totals = create_priced_offering(1_340_000_000), set()
    # Before and after the clocks of Berlin go forward on 29 March 2026; the first use creates the billing periods.
    for first in ("2026-03-01 00:00:00", "2026-03-29 00:30:00", "2026-03-30 12:00:00"):
        tenant, project = create_customer("Europe/Berlin")
        add_ended_lease(project, offering, utc(first), 1)
        add_ended_lease(project, offering, utc("2026-04-10 00:00:00"), 100 * HOUR)
        lease_rating.rate_all_leases(now=utc("2026-05-01 00:00:00"))
        close_month.close_due_months(now=utc("2026-05-01 00:00:00"))
        totals.add(invoices_of(tenant)[-1].total)
    assert totals == {13400}


@pytest.fixture
def server_in_other_zones(own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the process in Kolkata's time zone and PostgreSQL sessions in St. John's."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Kolkata")
        patched.setenv("PGTZ", "America/St_Johns")
        time.tzset()
        connection.close()
        yield
    time.tzset()
    connection.close()


def test_b9_the_servers_time_zone_does_not_change_months_or_invoices(server_in_other_zones: None) -> None:
    tenant, project = create_customer("Europe/Berlin")
    add_ended_lease(project, create_priced_offering(EURO), utc("2026-10-31 22:00:00"), 2 * HOUR)
    lease_rating.rate_all_leases(now=utc("2026-11-05 00:00:00"))
    close_month.close_due_months(now=utc("2026-11-05 00:00:00"))
    assert [(month.label, month.span.lower) for month in periods_of(tenant)] == [
        ("2026-10", utc("2026-09-30 22:00:00")),
        ("2026-11", utc("2026-10-31 23:00:00")),
    ]
    assert [charge.unit_seconds for charge in charges_of(tenant)] == [HOUR, HOUR]
    found = [(invoice.period.label, invoice.status, invoice.total) for invoice in invoices_of(tenant)]
    assert found == [("2026-10", "finalized", 100), ("2026-11", "draft", 100)]
