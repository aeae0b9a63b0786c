"""The forecast of the month over the API."""

from datetime import timedelta

import pytest

from billing.services.rating import lease_rating
from ports import clock
from tenants.domain.roles import Role
from tests.billing.histories import EURO, HOUR, add_ended_lease, add_running_lease, create_priced_offering, utc
from tests.simulation import TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
NOON = utc("2026-11-28 12:00:00")


def get_forecast(owner: TenantContext, path: str = "/api/v1/usage-forecast", status: int = 200) -> dict[str, object]:
    with clock.frozen_at(NOON):
        answer = ApiClient(owner.token(Role.VIEWER, now=NOON)).send("GET", path)
    assert answer.status_code == status, answer.content
    body: dict[str, object] = answer.json()
    return body


def add_daily_usage(owner: TenantContext, days: int) -> None:
    """Add an hour of usage on each of the last days."""
    with clock.frozen_at(NOON):
        offering = create_priced_offering(EURO)
        for n in range(days):
            add_ended_lease(owner.project, offering, NOON - timedelta(hours=3) - timedelta(days=n), HOUR)
        lease_rating.rate_all_leases(now=NOON)


def euros(amount: str) -> dict[str, dict[str, str]]:
    coins = {"amount": f"{amount}0000", "currency": "EUR"}
    return {"amount": coins, "low": coins, "high": coins}


def test_the_forecast_lists_each_remaining_day_with_the_running_total() -> None:
    kestrel = create_tenant("Kestrel")
    add_daily_usage(kestrel, 29)  # the 31st of October is the first, so 28 of November with today
    found = get_forecast(kestrel)
    assert found == {
        "time_zone": "UTC",
        "month_total": euros("30.50"),
        "going_on": euros("28.00")["amount"],
        "items": [
            {"day": "2026-11-28", "cost": euros("0.50"), "month_by_then": euros("28.50")},
            {"day": "2026-11-29", "cost": euros("1.00"), "month_by_then": euros("29.50")},
            {"day": "2026-11-30", "cost": euros("1.00"), "month_by_then": euros("30.50")},
        ],
    }
    assert get_forecast(kestrel, f"/api/v1/usage-forecast?project={kestrel.project.pk}") == found


def test_the_forecast_separates_running_leases_from_the_likely_total() -> None:
    kestrel = create_tenant("Kestrel")
    add_daily_usage(kestrel, 29)
    with clock.frozen_at(NOON):
        add_running_lease(kestrel.project, create_priced_offering(4 * EURO), NOON)
    found = get_forecast(kestrel)
    assert (found["month_total"], found["going_on"]) == (euros("30.50"), euros("268.00")["amount"])  # 60 h more at 4


def test_too_little_usage_gives_no_expected_amount() -> None:
    kestrel = create_tenant("Kestrel")
    add_daily_usage(kestrel, 13)
    going_on = euros("13.00")["amount"]
    assert get_forecast(kestrel) == {"time_zone": "UTC", "month_total": None, "going_on": going_on, "items": []}


def test_an_unknown_project_is_refused() -> None:
    assert (
        get_forecast(create_tenant("Kestrel"), "/api/v1/usage-forecast?project=prj_0", status=404)["code"]
        == "not-found"
    )
