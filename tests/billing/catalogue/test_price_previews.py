"""Price previews on last month's usage."""

from datetime import timedelta

import pytest

from billing.domain.money import EXACT_PER_UNIT
from billing.models import PriceVersion
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.reports import price_impact
from billing.services.reports.price_impact import PricePreview, TenantPriceEffect
from broker.models import Offering
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    LONG_AGO,
    add_ended_lease,
    add_quote,
    add_running_lease,
    create_customer,
    create_priced_offering,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
OCTOBER = utc("2026-10-01 00:00:00")


def preview(offering: Offering, nano: int, *, currency: str = "EUR") -> PricePreview:
    with staff_scope():
        return price_impact.preview_price(offering, currency=currency, nano_per_hour=nano, now=NOW)


def test_a_preview_reprices_last_months_usage_per_tenant() -> None:
    offering, other = create_priced_offering(EURO), create_priced_offering(EURO)
    kestrel, tern = create_customer(), create_customer("Asia/Kolkata")
    add_ended_lease(kestrel[1], offering, utc("2026-10-10 00:00:00"), 10 * HOUR, quantity=2)
    add_ended_lease(kestrel[1], other, utc("2026-10-10 00:00:00"), HOUR)
    for hours in (1, 2):
        add_ended_lease(tern[1], offering, utc("2026-10-20 00:00:00"), hours * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = preview(offering, 3 * EURO // 2)
    hour = EXACT_PER_UNIT  # what a euro an hour comes to
    assert found.effects == (
        TenantPriceEffect(kestrel[0].pk, kestrel[0].name, 1, 20 * HOUR, 20 * hour, 30 * hour),
        TenantPriceEffect(tern[0].pk, tern[0].name, 2, 3 * HOUR, 3 * hour, 9 * hour // 2),
    )
    assert (found.was_minor, found.would_be_minor, found.kept_minor) == (2300, 3450, 0)
    assert (found.month.start, found.unit_seconds) == (OCTOBER, 23 * HOUR)
    assert PriceVersion.objects.filter(offering=offering).count() == 1


def test_a_preview_covers_the_utc_month_in_every_tenant_time_zone() -> None:
    offering = create_priced_offering(EURO)
    _, project = create_customer("America/St_Johns")
    for start in (OCTOBER - timedelta(hours=1), utc("2026-10-31 23:00:00")):
        add_ended_lease(project, offering, start, 2 * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    assert preview(offering, 2 * EURO).unit_seconds == 2 * HOUR


def test_a_preview_of_a_month_with_two_prices_uses_both() -> None:
    offering = create_priced_offering(EURO)
    set_price(offering, 2 * EURO, since=utc("2026-10-10 01:00:00"))
    _, project = create_customer()
    add_ended_lease(project, offering, utc("2026-10-10 00:00:00"), 2 * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = preview(offering, EURO)
    assert (found.was_minor, found.would_be_minor) == (300, 200)


def test_quoted_usage_keeps_its_price_in_a_preview_of_a_higher_one() -> None:
    offering = create_priced_offering(EURO)
    _, project = create_customer()
    add_quote(add_ended_lease(project, offering, utc("2026-10-10 00:00:00"), HOUR), offering.price_versions.get())
    add_ended_lease(project, offering, utc("2026-10-10 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = preview(offering, 5 * EURO)
    assert (found.was_minor, found.would_be_minor, found.kept_minor) == (200, 600, 100)
    found = preview(offering, EURO // 2)
    assert (found.was_minor, found.would_be_minor, found.kept_minor) == (200, 100, 0)


def test_a_running_lease_is_previewed_once_its_month_is_closed() -> None:
    offering = create_priced_offering(EURO)
    _, project = create_customer()
    add_running_lease(project, offering, utc("2026-10-31 22:00:00"))
    close_month.close_due_months(now=NOW)
    assert preview(offering, 2 * EURO).unit_seconds == 2 * HOUR


def test_a_preview_excludes_tenants_in_other_currencies() -> None:
    offering = create_priced_offering(EURO)
    set_price(offering, EURO, since=LONG_AGO, currency="USD")
    _, project = create_customer(currency="USD")
    add_ended_lease(project, offering, utc("2026-10-10 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    assert preview(offering, 5 * EURO).effects == ()
    assert preview(offering, 5 * EURO, currency="USD").was_minor == 100


@pytest.mark.parametrize(("nano", "currency"), [(-1, "EUR"), (10**16, "EUR"), (1, "XXX")])
def test_an_invalid_price_is_not_previewed(nano: int, currency: str) -> None:
    with pytest.raises(InvalidValue):
        preview(create_priced_offering(EURO), nano, currency=currency)
