"""Detection of changed adjustments in a bundle, and late usage under a minimum."""

import json
from datetime import timedelta
from typing import Any

import pytest

from billing.models import Invoice
from billing.services.documents import invoice_bundles
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from billing.verify.verify import check
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import (
    START,
    close_and_get_invoice,
    create_discount,
    set_tiered_price,
    verify_invoice,
)
from tests.billing.agreements.test_minimums import create_test_minimum
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    utc,
)
from tests.billing.verify.written_bundles import write_bundle

pytestmark = pytest.mark.django_db


def read_bundle(invoice: Invoice) -> dict[str, Any]:
    with tenant_scope(invoice.tenant_id):
        found: dict[str, Any] = json.loads(b"".join(invoice_bundles.build_bundle(invoice)))
    return found


@pytest.mark.parametrize("percent_bp", [-1, 10_001])
def test_a_discount_below_0_or_above_100_percent_in_a_bundle_is_detected(percent_bp: int) -> None:
    tenant, project = create_customer()
    create_discount(tenant, percent_bp=1000)
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    good = read_bundle(close_and_get_invoice(tenant))
    assert check(write_bundle(good)).equal
    bad = good | {"discounts": [good["discounts"][0] | {"percent_bp": percent_bp}]}
    assert any("negative or more than 100 %" in each for each in check(write_bundle(bad)).differences)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "by the moon"},
        {"model": "flat"},
        {"tiers": [{"from_s": 36_000, "nano_per_hour": "1000000001"}]},
        {"tiers": [{"from_s": 0, "nano_per_hour": "500000000"}]},
        {"tiers": [{"from_s": 36_000, "nano_per_hour": "-1"}]},
    ],
)
def test_invalid_price_tiers_in_a_bundle_are_detected(change: dict[str, Any]) -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(None)
    set_tiered_price(offering, "graduated", [10 * HOUR], [EURO // 2])
    add_ended_lease(project, offering, START, 12 * HOUR)
    good = read_bundle(close_and_get_invoice(tenant))
    assert check(write_bundle(good)).equal
    bad = good | {"prices": [good["prices"][0] | change]}
    assert any("tiers are not in ascending order" in each for each in check(write_bundle(bad)).differences)


def test_late_usage_counts_towards_the_minimum_of_the_month_that_bills_it() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, START, 10 * HOUR)
    close_and_get_invoice(tenant)
    create_test_minimum(tenant, 2000, since=utc("2026-12-01 00:00:00"))
    add_ended_lease(project, offering, START + timedelta(days=2), 4 * HOUR)
    add_ended_lease(project, offering, utc("2026-12-01 00:00:00"), 8 * HOUR)
    now = utc("2026-12-02 00:00:00")
    lease_rating.rate_all_leases(now=now)
    drafts.refresh_drafts(tenant, now=now)
    late = invoices_of(tenant)[-1]
    assert (late.period.label, late.total) == ("2026-12", 2000)
    verify_invoice(late)
