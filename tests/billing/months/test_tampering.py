"""Whoever changes in a bundle what the month carries is found out, and late months do not disturb a minimum."""

import json
from datetime import timedelta
from typing import Any

import pytest

from billing.models import Invoice
from billing.services import bundles, drafts, rating
from billing.verify.verify import check
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, at, customer, invoices, ran, sold
from tests.billing.months.terms import START, checked, closed, given, tiered
from tests.billing.months.test_minimums import agreed
from tests.billing.verify.papers import sealed

pytestmark = pytest.mark.django_db


def told(invoice: Invoice) -> dict[str, Any]:
    with as_tenant(invoice.tenant_id):
        found: dict[str, Any] = json.loads(b"".join(bundles.bundle(invoice)))
    return found


@pytest.mark.parametrize("percent_bp", [-1, 10_001])
def test_a_discount_of_less_than_nothing_or_more_than_all(percent_bp: int) -> None:
    tenant, project = customer()
    given(tenant, percent_bp=1000)
    ran(project, sold(EURO), START, 10 * HOUR)
    good = told(closed(tenant))
    assert check(sealed(good)).equal
    bad = good | {"discounts": [good["discounts"][0] | {"percent_bp": percent_bp}]}
    assert any("less than nothing, or more than all" in each for each in check(sealed(bad)).differences)


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
def test_tiers_that_could_never_have_been_published(change: dict[str, Any]) -> None:
    tenant, project = customer()
    offering = sold(None)
    tiered(offering, "graduated", [10 * HOUR], [EURO // 2])
    ran(project, offering, START, 12 * HOUR)
    good = told(closed(tenant))
    assert check(sealed(good)).equal
    bad = good | {"prices": [good["prices"][0] | change]}
    assert any("tiers are not in order" in each for each in check(sealed(bad)).differences)


def test_late_seconds_count_for_the_minimum_of_the_month_that_carries_them() -> None:
    tenant, project = customer()
    offering = sold(EURO)
    ran(project, offering, START, 10 * HOUR)
    closed(tenant)
    agreed(tenant, 2000, since=at("2026-12-01 00:00:00"))
    ran(project, offering, START + timedelta(days=2), 4 * HOUR)
    ran(project, offering, at("2026-12-01 00:00:00"), 8 * HOUR)
    now = at("2026-12-02 00:00:00")
    rating.rate(now=now)
    drafts.refresh(tenant, now=now)
    late = invoices(tenant)[-1]
    assert (late.period.label, late.total) == ("2026-12", 2000)
    checked(late)
