"""What was used without a price is an error that operators see, and is charged once a price fills the gap."""

from datetime import timedelta

import pytest

from billing.services import gaps, rating
from billing.services.gaps import Unpriced
from tenants.services.walls import as_staff
from tests.billing.histories import (
    EURO,
    HOUR,
    at,
    charges,
    customer,
    promise,
    ran,
    reprice,
    runs,
    sold,
)

pytestmark = pytest.mark.django_db
NOW = at("2026-11-21 09:00:00")
START = at("2026-11-21 06:00:00")


def listed() -> list[Unpriced]:
    with as_staff():
        return gaps.unpriced(now=NOW)


def test_ended_and_running_use_without_a_price_is_listed_to_the_second() -> None:
    offering = sold(EURO, since=START + timedelta(hours=1))
    tenant, project = customer()
    over = ran(project, offering, START, 2 * HOUR, quantity=2)
    still = runs(project, offering, START + timedelta(minutes=30))
    never = runs(project, sold(None), START)
    runs(project, offering, START + timedelta(hours=2))
    rating.rate(now=NOW)
    found = {gap.lease: (gap.since, gap.until, gap.unit_seconds) for gap in listed()}
    assert found == {
        over.pk: (START, START + timedelta(hours=2), 2 * HOUR),
        still.pk: (START + timedelta(minutes=30), NOW, HOUR // 2),
        never.pk: (START, NOW, 3 * HOUR),
    }
    assert charges(tenant) == []


def test_a_price_where_the_gap_begins_mends_it() -> None:
    offering = sold(EURO, since=START + timedelta(hours=1))
    tenant, project = customer()
    ran(project, offering, START, 2 * HOUR)
    rating.rate(now=NOW)
    assert len(listed()) == 1
    reprice(offering, 2 * EURO, since=START)
    assert listed() == []
    rating.rate(now=NOW)
    assert [charge.unit_seconds for charge in charges(tenant)] == [HOUR, HOUR]


def test_a_quote_is_a_price() -> None:
    offering = sold(EURO, since=START - timedelta(hours=1))
    version = offering.price_versions.get()
    version.valid = type(version.valid)(version.valid.lower, START)
    version.save(update_fields=["valid"])
    _, project = customer()
    for lease in (ran(project, offering, START, HOUR), runs(project, offering, START)):
        promise(lease, version)
    rating.rate(now=NOW)
    assert listed() == []


def test_nothing_used_is_no_gap() -> None:
    assert listed() == []


def test_two_prices_that_meet_leave_no_gap() -> None:
    offering = sold(EURO)
    reprice(offering, 2 * EURO, since=START + timedelta(hours=1))
    _, project = customer()
    runs(project, offering, START)
    assert listed() == []
