"""Clock changes, creation dates and the server's own zone move no cent and make no second invoice."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import connection

from billing.services import closing, rating
from tests.billing.histories import EURO, HOUR, at, charges, customer, invoices, months, ran, runs, sold
from tests.database import OwnDatabase

# Zones whose clocks change around midnight, by half an hour, or skip a midnight altogether.
RESTLESS = ("Australia/Lord_Howe", "Africa/Cairo", "America/Santiago", "Asia/Beirut", "Atlantic/Azores")


def around_every_first_of(year: int) -> Iterator[datetime]:
    """Yield moments six hours apart from a day before to a day after every month begins, and the year after."""
    for month in [*(f"{year}-{number:02d}" for number in range(1, 13)), f"{year + 1}-01"]:
        first = at(f"{month}-01 00:00:00")
        yield from (first + timedelta(hours=hours) for hours in range(-24, 25, 6))


@pytest.mark.django_db
@pytest.mark.parametrize("zone", RESTLESS)
def test_b6_closing_ends_and_makes_one_invoice_a_month_through_a_whole_year(zone: str) -> None:
    tenant, project = customer(zone)
    runs(project, sold(EURO), at("2025-12-15 12:00:00"))
    for now in around_every_first_of(2026):
        rating.rate(now=now)
        closing.close_due(now=now)
    labels = [invoice.period.label for invoice in invoices(tenant)]
    assert labels == ["2025-12", *[f"2026-{month:02d}" for month in range(1, 13)]]
    last = months(tenant)[12].span.upper
    used = int((last - at("2025-12-15 12:00:00")).total_seconds())
    assert sum(charge.unit_seconds for charge in charges(tenant)) == used
    assert closing.close_due(now=now).months == 0


@pytest.mark.django_db
def test_b7_the_day_an_account_was_made_changes_no_total() -> None:
    offering, totals = sold(1_340_000_000), set()
    # Before and after the clocks of Berlin go forward on 29 March 2026: its first use makes its months.
    for first in ("2026-03-01 00:00:00", "2026-03-29 00:30:00", "2026-03-30 12:00:00"):
        tenant, project = customer("Europe/Berlin")
        ran(project, offering, at(first), 1)
        ran(project, offering, at("2026-04-10 00:00:00"), 100 * HOUR)
        rating.rate(now=at("2026-05-01 00:00:00"))
        closing.close_due(now=at("2026-05-01 00:00:00"))
        totals.add(invoices(tenant)[-1].total)
    assert totals == {13400}


@pytest.fixture
def elsewhere(own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the process believe it is in Calcutta, and its connections to PostgreSQL that they are in St. John's."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Kolkata")
        patched.setenv("PGTZ", "America/St_Johns")
        time.tzset()
        connection.close()
        yield
    time.tzset()
    connection.close()


def test_b9_the_servers_own_zone_moves_nothing(elsewhere: None) -> None:
    tenant, project = customer("Europe/Berlin")
    ran(project, sold(EURO), at("2026-10-31 22:00:00"), 2 * HOUR)
    rating.rate(now=at("2026-11-05 00:00:00"))
    closing.close_due(now=at("2026-11-05 00:00:00"))
    assert [(month.label, month.span.lower) for month in months(tenant)] == [
        ("2026-10", at("2026-09-30 22:00:00")),
        ("2026-11", at("2026-10-31 23:00:00")),
    ]
    assert [charge.unit_seconds for charge in charges(tenant)] == [HOUR, HOUR]
    found = [(invoice.period.label, invoice.status, invoice.total) for invoice in invoices(tenant)]
    assert found == [("2026-10", "finalized", 100), ("2026-11", "draft", 100)]
