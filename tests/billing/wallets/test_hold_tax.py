"""Tax rate of prepaid holds."""

from datetime import UTC, date, datetime

import pytest

from billing.domain.tax import TaxStatus, TaxTreatment
from billing.services.funds.wallets.reserved_tax_rate import last_day, max_tax_rate_bp
from billing.services.periods import billing_periods
from tenants.services.rls import tenant_scope
from tests.billing.histories import create_customer, utc
from tests.billing.tax.taxed_tenants import set_tax_rate

pytestmark = pytest.mark.django_db
HOME = TaxStatus(TaxTreatment.DOMESTIC, "DE")


def test_an_open_past_month_is_taxed_at_the_rate_of_its_last_day() -> None:
    set_tax_rate("DE", 20)
    set_tax_rate("DE", 10, since=date(2026, 12, 1))
    tenant, _ = create_customer("Pacific/Honolulu")
    first = utc("2026-12-01 00:30:00")  # the afternoon of 30 November there
    with tenant_scope(tenant.pk):
        assert max_tax_rate_bp(tenant, HOME, on=first) == 1000  # nothing of it is open
        billing_periods.ensure_periods(tenant, since=utc("2026-11-20 00:00:00"), until=first)
        assert max_tax_rate_bp(tenant, HOME, on=first) == 2000
        assert max_tax_rate_bp(tenant, TaxStatus(TaxTreatment.OUTSIDE), on=first) == 0


@pytest.mark.parametrize(("label", "day"), [("2026-11", 30), ("2026-12", 31), ("2028-02", 29), ("2026-02", 28)])
def test_the_last_day_of_a_month_is_computed(label: str, day: int) -> None:
    found = last_day(label)
    assert (f"{found:%Y-%m}", found.day) == (label, day)
    assert datetime.combine(found, datetime.min.time(), UTC).day == day
