"""Another price is tried on last month's real use before anybody publishes it, and nothing is written."""

from datetime import timedelta

import pytest

from billing.domain.money import EXACT_PER_UNIT
from billing.models import PriceVersion
from billing.services import closing, rating, repricing
from billing.services.repricing import Effect, Preview
from broker.models import Offering
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff
from tests.billing.histories import EURO, HOUR, LONG_AGO, at, customer, promise, ran, reprice, runs, sold

pytestmark = pytest.mark.django_db
NOW = at("2026-11-21 09:00:00")
OCTOBER = at("2026-10-01 00:00:00")


def preview(offering: Offering, nano: int, *, currency: str = "EUR") -> Preview:
    with as_staff():
        return repricing.preview(offering, currency=currency, nano_per_hour=nano, now=NOW)


def test_last_month_is_charged_once_more_tenant_by_tenant() -> None:
    offering, other = sold(EURO), sold(EURO)
    kestrel, tern = customer(), customer("Asia/Kolkata")
    ran(kestrel[1], offering, at("2026-10-10 00:00:00"), 10 * HOUR, quantity=2)
    ran(kestrel[1], other, at("2026-10-10 00:00:00"), HOUR)
    for hours in (1, 2):
        ran(tern[1], offering, at("2026-10-20 00:00:00"), hours * HOUR)
    rating.rate(now=NOW)
    found = preview(offering, 3 * EURO // 2)
    hour = EXACT_PER_UNIT  # what a euro an hour comes to
    assert found.effects == (
        Effect(kestrel[0].pk, kestrel[0].name, 1, 20 * HOUR, 20 * hour, 30 * hour),
        Effect(tern[0].pk, tern[0].name, 2, 3 * HOUR, 3 * hour, 9 * hour // 2),
    )
    assert (found.was_minor, found.would_be_minor, found.kept_minor) == (2300, 3450, 0)
    assert (found.month.start, found.unit_seconds) == (OCTOBER, 23 * HOUR)
    assert PriceVersion.objects.filter(offering=offering).count() == 1


def test_only_the_seconds_of_the_month_count_whatever_the_tenants_zone() -> None:
    offering = sold(EURO)
    _, project = customer("America/St_Johns")
    for start in (OCTOBER - timedelta(hours=1), at("2026-10-31 23:00:00")):
        ran(project, offering, start, 2 * HOUR)
    rating.rate(now=NOW)
    assert preview(offering, 2 * EURO).unit_seconds == 2 * HOUR


def test_what_the_month_cost_at_several_prices_is_what_it_was() -> None:
    offering = sold(EURO)
    reprice(offering, 2 * EURO, since=at("2026-10-10 01:00:00"))
    _, project = customer()
    ran(project, offering, at("2026-10-10 00:00:00"), 2 * HOUR)
    rating.rate(now=NOW)
    found = preview(offering, EURO)
    assert (found.was_minor, found.would_be_minor) == (300, 200)


def test_what_a_quote_fixed_stays_at_any_price() -> None:
    offering = sold(EURO)
    _, project = customer()
    promise(ran(project, offering, at("2026-10-10 00:00:00"), HOUR), offering.price_versions.get())
    ran(project, offering, at("2026-10-10 00:00:00"), HOUR)
    rating.rate(now=NOW)
    found = preview(offering, 5 * EURO)
    assert (found.was_minor, found.would_be_minor, found.kept_minor) == (200, 600, 100)


def test_a_lease_that_still_runs_is_in_it_once_its_month_is_closed() -> None:
    offering = sold(EURO)
    _, project = customer()
    runs(project, offering, at("2026-10-31 22:00:00"))
    closing.close_due(now=NOW)
    assert preview(offering, 2 * EURO).unit_seconds == 2 * HOUR


def test_other_currencies_are_left_out_and_nothing_used_is_nothing() -> None:
    offering = sold(EURO)
    reprice(offering, EURO, since=LONG_AGO, currency="USD")
    _, project = customer(currency="USD")
    ran(project, offering, at("2026-10-10 00:00:00"), HOUR)
    rating.rate(now=NOW)
    assert preview(offering, 5 * EURO).effects == ()
    assert preview(offering, 5 * EURO, currency="USD").was_minor == 100


@pytest.mark.parametrize(("nano", "currency"), [(-1, "EUR"), (10**16, "EUR"), (1, "XXX")])
def test_a_price_that_cannot_be_meant_is_not_tried(nano: int, currency: str) -> None:
    with pytest.raises(Invalid):
        preview(sold(EURO), nano, currency=currency)
