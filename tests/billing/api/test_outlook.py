"""What the month will likely cost, as the API tells it."""

from datetime import timedelta

import pytest

from billing.services import rating
from ports import clock
from tenants.domain.roles import Role
from tests.billing.histories import EURO, HOUR, at, ran, sold
from tests.tenants.people import Api
from tests.world import Home, home

pytestmark = pytest.mark.django_db
NOON = at("2026-11-28 12:00:00")


def asked(owner: Home, path: str = "/api/v1/usage-outlook", status: int = 200) -> dict[str, object]:
    with clock.standing_at(NOON):
        answer = Api(owner.token(Role.VIEWER, now=NOON)).ask("GET", path)
    assert answer.status_code == status, answer.content
    told: dict[str, object] = answer.json()
    return told


def lived(owner: Home, days: int) -> None:
    """Let an hour run on each of the last days, today's between nine and ten."""
    with clock.standing_at(NOON):
        offering = sold(EURO)
        for n in range(days):
            ran(owner.project, offering, NOON - timedelta(hours=3) - timedelta(days=n), HOUR)
        rating.rate(now=NOON)


def euros(amount: str) -> dict[str, dict[str, str]]:
    coins = {"amount": f"{amount}0000", "currency": "EUR"}
    return {"amount": coins, "low": coins, "high": coins}


def test_days_to_come_are_told_with_what_the_month_will_have_cost_by_then() -> None:
    kestrel = home("Kestrel")
    lived(kestrel, 29)  # the 31st of October is the first, so 28 of November with today
    told = asked(kestrel)
    assert told == {
        "time_zone": "UTC",
        "month": euros("30.50"),
        "items": [
            {"day": "2026-11-28", "cost": euros("0.50"), "month_by_then": euros("28.50")},
            {"day": "2026-11-29", "cost": euros("1.00"), "month_by_then": euros("29.50")},
            {"day": "2026-11-30", "cost": euros("1.00"), "month_by_then": euros("30.50")},
        ],
    }
    assert asked(kestrel, f"/api/v1/usage-outlook?project={kestrel.project.pk}") == told


def test_too_little_use_tells_nothing() -> None:
    kestrel = home("Kestrel")
    lived(kestrel, 13)
    assert asked(kestrel) == {"time_zone": "UTC", "month": None, "items": []}


def test_a_project_of_nobody_knows_is_refused() -> None:
    assert asked(home("Kestrel"), "/api/v1/usage-outlook?project=prj_0", status=404)["code"] == "not-found"
