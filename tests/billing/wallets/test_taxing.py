"""By which rate money is set aside: that of the last day of the month whose invoice is next, or a higher one ahead."""

from datetime import UTC, date, datetime

import pytest

from billing.domain.tax import Standing, Treatment
from billing.services import periods
from billing.services.wallets.taxing import last_day, rate_of
from tenants.services.walls import as_tenant
from tests.billing.histories import at, customer
from tests.billing.tax.papers import taxed

pytestmark = pytest.mark.django_db
HOME = Standing(Treatment.DOMESTIC, "DE")


def test_a_month_that_is_over_and_open_is_still_taxed_by_its_own_last_day() -> None:
    taxed("DE", 20)
    taxed("DE", 10, since=date(2026, 12, 1))
    tenant, _ = customer("Pacific/Honolulu")
    first = at("2026-12-01 00:30:00")  # the afternoon of 30 November there
    with as_tenant(tenant.pk):
        assert rate_of(tenant, HOME, on=first) == 1000  # nothing of it is open
        periods.ensure(tenant, since=at("2026-11-20 00:00:00"), until=first)
        assert rate_of(tenant, HOME, on=first) == 2000
        assert rate_of(tenant, Standing(Treatment.OUTSIDE), on=first) == 0


@pytest.mark.parametrize(
    ("label", "day"), [("2026-11", 30), ("2026-12", 31), ("2028-02", 29), ("2026-02", 28)]
)
def test_the_last_day_of_a_month(label: str, day: int) -> None:
    found = last_day(label)
    assert (f"{found:%Y-%m}", found.day) == (label, day)
    assert datetime.combine(found, datetime.min.time(), UTC).day == day
