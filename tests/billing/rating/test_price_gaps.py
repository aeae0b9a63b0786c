"""Usage without a price."""

from datetime import timedelta

import pytest

from billing.services.rating import lease_rating, unpriced_usage
from billing.services.rating.unpriced_usage import UnpricedInterval
from tenants.services.rls import staff_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_quote,
    add_running_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
START = utc("2026-11-21 06:00:00")


def listed_gaps() -> list[UnpricedInterval]:
    with staff_scope():
        return unpriced_usage.unpriced_usage(now=NOW)


def test_unpriced_usage_of_ended_and_running_leases_is_listed_to_the_second() -> None:
    offering = create_priced_offering(EURO, since=START + timedelta(hours=1))
    tenant, project = create_customer()
    over = add_ended_lease(project, offering, START, 2 * HOUR, quantity=2)
    still = add_running_lease(project, offering, START + timedelta(minutes=30))
    never = add_running_lease(project, create_priced_offering(None), START)
    add_running_lease(project, offering, START + timedelta(hours=2))
    lease_rating.rate_all_leases(now=NOW)
    found = {gap.lease: (gap.since, gap.until, gap.unit_seconds) for gap in listed_gaps()}
    assert found == {
        over.pk: (START, START + timedelta(hours=2), 2 * HOUR),
        still.pk: (START + timedelta(minutes=30), NOW, HOUR // 2),
        never.pk: (START, NOW, 3 * HOUR),
    }
    assert charges_of(tenant) == []


def test_a_price_from_the_start_of_a_gap_closes_it() -> None:
    offering = create_priced_offering(EURO, since=START + timedelta(hours=1))
    tenant, project = create_customer()
    add_ended_lease(project, offering, START, 2 * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    assert len(listed_gaps()) == 1
    set_price(offering, 2 * EURO, since=START)
    assert listed_gaps() == []
    lease_rating.rate_all_leases(now=NOW)
    assert [charge.unit_seconds for charge in charges_of(tenant)] == [HOUR, HOUR]


def test_quoted_usage_is_not_a_price_gap() -> None:
    offering = create_priced_offering(EURO, since=START - timedelta(hours=1))
    version = offering.price_versions.get()
    version.valid = type(version.valid)(version.valid.lower, START)
    version.save(update_fields=["valid"])
    _, project = create_customer()
    for lease in (add_ended_lease(project, offering, START, HOUR), add_running_lease(project, offering, START)):
        add_quote(lease, version)
    lease_rating.rate_all_leases(now=NOW)
    assert listed_gaps() == []


def test_no_usage_is_no_price_gap() -> None:
    assert listed_gaps() == []


def test_consecutive_prices_leave_no_gap() -> None:
    offering = create_priced_offering(EURO)
    set_price(offering, 2 * EURO, since=START + timedelta(hours=1))
    _, project = create_customer()
    add_running_lease(project, offering, START)
    assert listed_gaps() == []
