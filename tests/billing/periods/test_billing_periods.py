"""Billing months of a tenant in every time zone."""

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.models import BillingRun
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import add_ended_lease, create_customer, create_priced_offering, periods_of, utc

pytestmark = pytest.mark.django_db
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
)


def ensure_periods(tenant: Tenant, since: datetime, until: datetime) -> None:
    with tenant_scope(tenant.pk):
        billing_periods.ensure_periods(tenant, since=since, until=until)


def test_months_start_at_local_midnight_and_extend_past_the_end() -> None:
    tenant, _ = create_customer("Europe/Berlin")
    ensure_periods(tenant, utc("2026-10-24 00:00:00"), utc("2026-10-31 23:00:00"))
    found = [(month.label, month.span.lower, month.span.upper) for month in periods_of(tenant)]
    assert found == [
        ("2026-10", utc("2026-09-30 22:00:00"), utc("2026-10-31 23:00:00")),
        ("2026-11", utc("2026-10-31 23:00:00"), utc("2026-11-30 23:00:00")),
    ]


def test_months_are_added_before_and_after_without_a_gap() -> None:
    tenant, _ = create_customer("Asia/Kolkata")
    ensure_periods(tenant, utc("2026-06-15 00:00:00"), utc("2026-06-15 00:00:00"))
    ensure_periods(tenant, utc("2026-03-15 00:00:00"), utc("2026-08-15 00:00:00"))
    found = periods_of(tenant)
    assert [month.label for month in found] == [f"2026-{month:02d}" for month in range(3, 9)]
    assert all(a.span.upper == b.span.lower for a, b in pairwise(found))


def test_creating_periods_again_creates_none() -> None:
    tenant, _ = create_customer()
    for _ in range(2):
        ensure_periods(tenant, utc("2026-06-15 00:00:00"), utc("2026-07-15 00:00:00"))
    assert len(periods_of(tenant)) == 2


def test_the_current_month_is_created_on_demand() -> None:
    tenant, _ = create_customer()
    with tenant_scope(tenant.pk):
        first = billing_periods.current_period(tenant, now=utc("2026-11-21 09:00:00"))
        assert billing_periods.current_period(tenant, now=utc("2026-11-30 23:59:59")) == first
    assert first.label == "2026-11"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(ZONES), min_size=2, max_size=5))
def test_b2_b3_a_time_zone_change_leaves_no_gap_or_overlap_between_months(zones: list[str]) -> None:
    tenant, _ = create_customer(zones[0])
    now = utc("2026-01-10 00:00:00")
    for zone in zones:
        tenant.time_zone = zone
        ensure_periods(tenant, utc("2026-01-10 00:00:00"), now)
        now += timedelta(days=40)
    found = periods_of(tenant)
    assert all(a.span.upper == b.span.lower for a, b in pairwise(found))
    assert [month.label for month in found] == [f"2026-{n + 1:02d}" for n in range(len(found))]
    assert all(timedelta(days=26) < month.span.upper - month.span.lower < timedelta(days=33) for month in found)


def test_the_tzdata_version_is_read_from_the_first_folder_that_has_it(tmp_path: Path) -> None:
    (tmp_path / "tzdata.zi").write_text("# version 2031c\n# This zic input file is in the public domain.\n")
    assert billing_periods.tzdata_version((str(tmp_path / "elsewhere"), str(tmp_path))) == "2031c"
    assert billing_periods.tzdata_version((str(tmp_path / "elsewhere"),)) == ""


def test_a_billing_run_stores_its_tzdata_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(billing_periods, "tzdata_version", lambda: "2031c")
    _tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(), utc("2026-11-20 08:00:00"), 60)
    lease_rating.rate_all_leases(now=utc("2026-11-21 09:00:00"))
    assert [run.tzdata_version for run in BillingRun.objects.all()] == ["2031c"]
