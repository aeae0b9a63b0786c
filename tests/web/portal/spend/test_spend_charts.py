"""Spend charts: columns, running total, forecast and budget."""

import re
from xml.etree.ElementTree import Element, fromstring

import pytest

from billing.services.rating import lease_rating
from tests.web.portal.signed_in_user import PortalSession, run_lease_for

pytestmark = pytest.mark.django_db

LIKELY = "series-1 forecast-bar"
SEAM = 0.6  # that a column leaves to what stands on it


def drawn(portal: PortalSession, path: str, name: str) -> Element:
    """Return the chart of this class on a page."""
    found = re.search(rf'<svg class="{name}".*?</svg>', portal.get(path).content.decode(), re.DOTALL)
    assert found, f"{path} draws no {name}"
    return fromstring(found.group())


def grid(chart: Element) -> list[tuple[float, float]]:
    """Return the amount and height of each grid line."""
    says = [float((word.text or "").removeprefix("€")) for word in chart.findall("text[@class='align-end']")]
    drawn_at = [float(re.split("[ H]", line.attrib["d"])[1]) for line in chart.findall("path[@class='grid-line']")]
    return list(zip(says, drawn_at, strict=True))


def euros(chart: Element, length: float) -> float:
    """Return the amount of a height in a chart."""
    (low, bottom), *_, (high, top) = grid(chart)
    return round(length * (high - low) / (bottom - top), 1)


def columns(chart: Element) -> dict[float, list[tuple[str, float]]]:
    """Return the stacked values of each column, from left to right."""
    return bars(chart, [bar for bar in chart.findall("rect") if bar.attrib["class"] != LIKELY])


def to_come(chart: Element) -> list[float]:
    """Return the forecast cost of each remaining day."""
    found = bars(chart, chart.findall(f"rect[@class='{LIKELY}']"))
    return [amount for stack in found.values() for _, amount in stack]


def bars(chart: Element, rects: list[Element]) -> dict[float, list[tuple[str, float]]]:
    found: dict[float, list[tuple[str, float]]] = {}
    for bar in rects:
        height = float(bar.attrib["height"]) + (0 if bar.attrib["class"] == LIKELY else SEAM)
        found.setdefault(float(bar.attrib["x"]), []).append((bar.attrib["class"], euros(chart, height)))
    return found


@pytest.fixture
def november(portal: PortalSession) -> PortalSession:
    """Three days with something to pay, the last with two offerings; it is the 21st."""
    for day, profiles in ((2, ["1g.10gb"]), (4, ["2g.20gb"]), (17, ["1g.10gb", "3g.40gb"])):
        portal.sim.clock.at = portal.sim.now.replace(day=day, hour=8)
        for profile in profiles:
            run_lease_for(portal, profile, 3600)
    portal.sim.clock.at = portal.sim.now.replace(day=21, hour=8)
    return portal


def test_each_day_is_a_column_of_its_cost_stacked_by_offering(november: PortalSession) -> None:
    chart = drawn(november, "/spend/", "chart")
    stacks = columns(chart)
    # By what they came to in all: 3g.40gb, then 1g.10gb and 2g.20gb, a colour each.
    assert [[amount for _, amount in stack] for stack in stacks.values()] == [[1], [2], [3, 1]]
    (one,), (two,), both = [[series for series, _ in stack] for stack in stacks.values()]
    assert both[1] == one
    assert len({one, two, both[0]}) == 3
    first, second, third = stacks
    assert round((third - first) / (second - first), 1) == 7.5  # the 17th and the 4th, from the 2nd
    assert chart.attrib["aria-label"] == "Spend per day, stacked by offering"


@pytest.mark.parametrize(("step", "heights"), [("week", [3, 4]), ("month", [7])])
def test_columns_can_be_weeks_or_months(november: PortalSession, step: str, heights: list[float]) -> None:
    stacks = columns(drawn(november, f"/spend/?by={step}", "chart")).values()
    assert [sum(amount for _, amount in stack) for stack in stacks] == heights


def test_the_running_total_is_drawn_below_the_total_of_last_month(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=2, hour=8)
    run_lease_for(portal, "3g.40gb", 3600)
    for day, profile in ((2, "1g.10gb"), (4, "1g.10gb")):
        portal.sim.clock.at = portal.sim.now.replace(month=11, day=day, hour=8)
        run_lease_for(portal, profile, 3600)
    chart = drawn(portal, "/spend/", "chart chart-narrow")
    bottom = grid(chart)[0][1]
    line = chart.find("polyline[@class='chart-line']")
    limit = chart.find("path[@class='limit']")
    assert line is not None
    assert limit is not None
    climb = [bottom - float(pair.split(",")[1]) for pair in line.attrib["points"].split()]
    assert [euros(chart, height) for height in climb] == [0, 0, 1, 1, 2]
    assert euros(chart, bottom - float(re.split("[ H]", limit.attrib["d"])[1])) == 3
    assert "October total" in [word.text for word in chart.findall("text")]


def run_on_days(portal: PortalSession, days: range) -> None:
    """Add an hour at one euro on each of these days of November."""
    for day in days:
        portal.sim.clock.at = portal.sim.now.replace(month=11, day=day, hour=8, minute=0, second=0)
        run_lease_for(portal, "1g.10gb", 3600)


@pytest.mark.deep
def test_remaining_days_are_forecast_by_weekday(portal: PortalSession) -> None:
    run_on_days(portal, range(1, 16))
    portal.sim.clock.at = portal.sim.now.replace(day=16, hour=12)
    chart = drawn(portal, "/spend/", "chart")
    assert to_come(chart) == [1] * 14  # the 17th to the 30th
    assert len(chart.findall("path[@class='whisker']")) == 14
    assert "now" in [word.text for word in chart.findall("text")]
    read = portal.read("/spend/")
    assert "Forecast for 30 November" in read
    assert "€29.50" in read  # fifteen days, half of today and fourteen more
    total = drawn(portal, "/spend/", "chart chart-narrow")
    assert "€29.50 likely" in [word.text for word in total.findall("text")]


@pytest.mark.deep
def test_too_few_days_of_usage_show_no_forecast(portal: PortalSession) -> None:
    run_on_days(portal, range(3, 14))
    assert drawn(portal, "/spend/", "chart").findall("path[@class='whisker']") == []
    assert "likely" not in portal.read("/spend/")


@pytest.mark.deep
def test_filtered_weekly_and_past_views_show_no_forecast(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=2, hour=8)
    run_lease_for(portal, "1g.10gb", 3600)
    lease_rating.rate_all_leases(now=portal.sim.now)  # which makes October known
    run_on_days(portal, range(1, 16))
    portal.sim.clock.at = portal.sim.now.replace(day=16, hour=12)
    for address in ("?class=on_demand", "?by=week", "?period=2026-10"):
        assert "likely" not in portal.read(f"/spend/{address}")


def test_with_a_budget_the_running_total_is_drawn_below_the_budget(portal: PortalSession) -> None:
    run_on_days(portal, range(2, 3))
    portal.post("/budgets/", project=portal.owner.project.pk, limit="25")
    chart = drawn(portal, "/spend/", "chart chart-narrow")
    limit = chart.find("path[@class='limit']")
    assert limit is not None
    assert euros(chart, grid(chart)[0][1] - float(re.split("[ H]", limit.attrib["d"])[1])) == 25
    assert "Budget €25.00" in [word.text for word in chart.findall("text")]
    assert "Against the budget" in portal.read("/spend/")
