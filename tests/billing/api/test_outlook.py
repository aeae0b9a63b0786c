"""What the month will likely cost, as the API tells it."""

from datetime import timedelta

import pytest

from billing.services import rating
from ports import clock
from tenants.domain.roles import Role
from tests.billing.histories import EURO, HOUR, at, ran, runs, sold
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
        "going_on": euros("28.00")["amount"],
        "items": [
            {"day": "2026-11-28", "cost": euros("0.50"), "month_by_then": euros("28.50")},
            {"day": "2026-11-29", "cost": euros("1.00"), "month_by_then": euros("29.50")},
            {"day": "2026-11-30", "cost": euros("1.00"), "month_by_then": euros("30.50")},
        ],
    }
    assert asked(kestrel, f"/api/v1/usage-outlook?project={kestrel.project.pk}") == told


def test_what_goes_on_is_told_beside_what_is_likely() -> None:
    kestrel = home("Kestrel")
    lived(kestrel, 29)
    with clock.standing_at(NOON):
        runs(kestrel.project, sold(4 * EURO), NOON)
    told = asked(kestrel)
    assert (told["month"], told["going_on"]) == (euros("30.50"), euros("268.00")["amount"])  # 60 h more at 4


def test_too_little_use_tells_nothing() -> None:
    kestrel = home("Kestrel")
    lived(kestrel, 13)
    assert asked(kestrel) == {"time_zone": "UTC", "month": None, "going_on": None, "items": []}


def test_a_project_of_nobody_knows_is_refused() -> None:
    assert asked(home("Kestrel"), "/api/v1/usage-outlook?project=prj_0", status=404)["code"] == "not-found"
