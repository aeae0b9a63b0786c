"""Spend and invoices: the same figures to the cent, and every line opens to its seconds."""

import csv
from datetime import timedelta
from io import StringIO

import pytest

from billing.domain.money import shown
from billing.models import Invoice
from billing.services import closing, drafts, rating
from tenants.domain.roles import Role
from tenants.services.walls import as_tenant
from tests.billing import histories
from tests.billing.histories import HOUR, at, reprice
from tests.billing.portal.desks import EURO, Desk, ran
from tests.world import offering

pytestmark = pytest.mark.django_db


def charged(desk: Desk) -> Invoice:
    """Rate everything and bring the draft up to it."""
    rating.rate(now=desk.life.now)
    with as_tenant(desk.owner.tenant.pk):
        drafts.refresh(desk.owner.tenant, now=desk.life.now)
        return Invoice.objects.latest("pk")


def test_spend_equals_the_draft_invoice_to_the_cent(desk: Desk) -> None:
    child = desk.owner.child("design")
    for n, profile in enumerate(("1g.10gb", "2g.20gb", "3g.40gb", "card", "1g.10gb", "2g.20gb")):
        ran(desk, profile, 777 + 131 * n, project=child if n % 2 else desk.owner.project, quantity=1 + n % 3)
    draft = charged(desk)
    for group in ("offering", "project"):
        told = desk.get(f"/spend/?group={group}").context["told"]
        assert told.minor == draft.total
        assert sum(row.minor for row in told.groups) == draft.total
    assert "all of it, to the cent" in desk.read("/spend/")


def test_the_frame_and_home_say_the_same_as_spend_to_the_cent(desk: Desk) -> None:
    for profile in ("1g.10gb", "2g.20gb", "3g.40gb", "card"):
        ran(desk, profile, 5)  # 0.14, 0.28, 0.42 and 0.97 cents: each line is rounded on its own
    desk.life.lease(desk.owner, offering("card"), quantity=2, max_duration_s=9 * 3600)
    desk.life.run(1234)
    spend = desk.get("/spend/").context["told"].minor
    for path in ("/spend/", "/"):
        assert f"Spent in November {shown(spend, 'EUR')}" in desk.read(path)
    assert desk.get("/").context["month"].spent == spend


def test_a_price_renewed_as_it_was_is_rounded_on_its_own_as_on_the_invoice(desk: Desk) -> None:
    what = offering("1g.10gb")
    ran(desk, "1g.10gb", 10)  # 0.28 cents, which is nought
    reprice(what, EURO, since=desk.life.now)
    ran(desk, "1g.10gb", 10)  # and again, though both together would be one
    ran(desk, "card", 3600)
    running = desk.get("/spend/").context["told"].minor
    assert charged(desk).total == running == desk.get("/spend/").context["told"].minor == 700


def test_spend_of_a_part_stands_beside_no_invoice_of_the_whole(desk: Desk) -> None:
    child = desk.owner.child("design")
    ran(desk, "1g.10gb", 3600, project=child)
    ran(desk, "card", 3600)
    draft = charged(desk)
    assert desk.get("/spend/").context["draft"] == draft
    for role in (Role.OWNER, Role.VIEWER):
        page = desk.signed_in_as(role, child).get("/spend/")
        assert (page.context["draft"], page.context["told"].minor) == (None, 100)
        assert draft.pk not in page.content.decode()
    desk.works_in(child)
    assert desk.get("/spend/").context["draft"] is None


def test_what_still_runs_is_in_spend_and_named_beside_the_draft(desk: Desk) -> None:
    ran(desk, "1g.10gb", 3600)
    draft = charged(desk)
    desk.life.lease(desk.owner, offering("2g.20gb"), max_duration_s=9 * 3600)
    desk.life.run(1800)
    page = desk.get("/spend/")
    assert page.context["told"].minor == draft.total + 100
    assert "€1.00 more still runs" in page.content.decode()


def test_columns_add_up_to_the_total_by_day_week_and_month(desk: Desk) -> None:
    for day in (1, 3, 9):
        desk.life.clock.at = desk.life.now.replace(day=day, hour=8)
        ran(desk, "1g.10gb", 3600)
    desk.life.clock.at = desk.life.now.replace(day=21)
    for step in ("day", "week", "month"):
        columns = desk.get(f"/spend/?by={step}").context["columns"]
        assert sum(sum(column.get("amounts", ())) for column in columns) == 300, (
            step
        )  # days to come have none


def test_a_night_across_midnight_is_split_at_the_tenants_own(desk: Desk) -> None:
    desk.moves_to("America/New_York")
    desk.life.clock.at = desk.life.now.replace(day=12, hour=4, minute=0)  # 23:00 on the 11th
    ran(desk, "1g.10gb", 2 * 3600)
    desk.life.clock.at += timedelta(days=2)
    columns = desk.get("/spend/").context["columns"]
    amounts = [sum(column["amounts"]) for column in columns]
    assert sum(amounts[10:12]) == sum(amounts) == 200
    assert 98 <= amounts[10] <= 100


def test_spend_compares_with_the_same_days_of_last_month(desk: Desk) -> None:
    desk.life.clock.at = desk.life.now.replace(month=10, day=2)
    ran(desk, "1g.10gb", 3600)
    desk.life.clock.at = desk.life.now.replace(month=10, day=29)
    ran(desk, "1g.10gb", 3600)
    desk.life.clock.at = desk.life.now.replace(month=11, day=3, hour=20)
    ran(desk, "2g.20gb", 3600)
    page = desk.read("/spend/")
    assert "€2.00 +100.0 % on the same days of October" in page
    assert "October in all" in page


def test_the_same_days_of_last_month_end_at_the_same_whole_second_everywhere(desk: Desk) -> None:
    desk.life.clock.at = desk.life.now.replace(month=10, day=3, hour=7)
    ran(desk, "card", 2 * 3600, quantity=4)
    told = []
    for microsecond in (0, 700_000):
        desk.life.clock.at = desk.life.now.replace(month=11, day=3, hour=8, minute=0, second=0)
        desk.life.clock.at = desk.life.now.replace(microsecond=microsecond)
        before = desk.get("/spend/").context["before"]
        told.append((before.minor, before.groups[0].unit_seconds))
        assert desk.get("/").context["month"].before == before.minor
    assert told[0] == told[1]


def test_a_draft_that_carries_late_seconds_says_so(desk: Desk) -> None:
    desk.life.clock.at = desk.life.now.replace(month=10, day=31, hour=20)
    ran(desk, "1g.10gb", 3600)
    rating.rate(now=desk.life.now)
    desk.life.clock.at = desk.life.now.replace(month=11, day=3)
    with as_tenant(desk.owner.tenant.pk):
        assert closing.close_period(desk.owner.tenant, "2026-10", now=desk.life.now)
    histories.ran(desk.owner.project, offering("2g.20gb"), at("2026-10-30 08:00:00"), HOUR)
    ran(desk, "1g.10gb", 3600)
    assert charged(desk).total == 300
    page = desk.read("/spend/")
    assert desk.get("/spend/").context["told"].minor == 100
    assert "with what came late of months before" in page
    assert "to the cent" not in page


def test_many_times_as_much_as_last_month_is_told_as_a_multiple(desk: Desk) -> None:
    desk.life.clock.at = desk.life.now.replace(month=10, day=2)
    ran(desk, "1g.10gb", 3600)
    desk.life.clock.at = desk.life.now.replace(month=11, day=3, hour=8)
    ran(desk, "3g.40gb", 4 * 3600)
    assert "12 × the same days of October" in desk.read("/spend/")


def test_spend_is_filtered_by_class_and_past_months_stay_to_be_seen(desk: Desk) -> None:
    desk.life.clock.at = desk.life.now.replace(month=10, day=2)
    ran(desk, "3g.40gb", 3600)
    rating.rate(now=desk.life.now)
    desk.life.clock.at = desk.life.now.replace(month=11, day=21)
    assert "€3.00" in desk.read("/spend/?period=2026-10")
    assert "Nothing was spent in October" in desk.read("/spend/?period=2026-10&class=spot")
    assert desk.get("/spend/?period=1999-99&by=x&group=y").status_code == 200


def test_spend_as_csv_has_a_line_per_day_and_group(desk: Desk) -> None:
    ran(desk, "1g.10gb", 3600)
    answer = desk.get("/spend/?format=csv")
    [row] = csv.DictReader(StringIO(answer.content.decode()))
    assert row == {"day": "2026-11-21", "group": "H100 1g.10gb", "unit_seconds": "3600", "amount": "1.000000",
                   "currency": "EUR"}  # fmt: skip


def test_an_invoice_line_opens_to_its_seconds_its_price_and_its_rule(desk: Desk) -> None:
    ran(desk, "1g.10gb", 5000, name="fold-1")
    draft = charged(desk)
    page = desk.read(f"/invoices/{draft.pk}/?line=1")
    assert "recomputed, equal" in page
    assert "fold-1 5,000 s" in page
    assert "5,000 s × 1.000000000 €/h ÷ 3600 s/h = 5,000,000,000,000 / 3,600,000,000,000 = 1.388888" in page
    assert "→ 1.39 €" in page
    assert "not charged" in page
    assert f"/invoices/{draft.pk}/lines/1/explain" in page


def test_the_lines_of_an_invoice_add_up_and_are_the_csv(desk: Desk) -> None:
    ran(desk, "1g.10gb", 1000)
    ran(desk, "2g.20gb", 1000)
    draft = charged(desk)
    answer = desk.get(f"/invoices/{draft.pk}/")
    assert sum(row.line.minor for row in answer.context["rows"]) == draft.total
    rows = list(csv.DictReader(StringIO(desk.get(f"/invoices/{draft.pk}/?format=csv").content.decode())))
    assert sorted(row["amount"] for row in rows) == ["0.280000", "0.560000"]


def test_a_line_that_is_not_there_opens_nothing(desk: Desk) -> None:
    ran(desk, "1g.10gb", 1000)
    draft = charged(desk)
    for line in ("0", "99", "x", "1'"):
        assert "recomputed" not in desk.read(f"/invoices/{draft.pk}/?line={line}")


def test_a_closed_month_has_its_number_and_its_history(desk: Desk) -> None:
    desk.life.clock.at = desk.life.now.replace(month=10, day=2)
    ran(desk, "1g.10gb", 3600)
    rating.rate(now=desk.life.now)
    desk.life.clock.at = desk.life.now.replace(month=11, day=1, hour=3)
    with as_tenant(desk.owner.tenant.pk):
        final = closing.close_period(desk.owner.tenant, "2026-10", now=desk.life.now)
    assert final is not None
    page = desk.read("/invoices/")
    assert "October 2026" in page
    assert "2026-10-0001" in page
    [row] = csv.DictReader(StringIO(desk.get("/invoices/?format=csv").content.decode()))
    assert (row["month"], row["number"], row["status"]) == ("2026-10", "2026-10-0001", "finalized")
    assert (row["total"], row["currency"]) == ("1.000000", "EUR")
    page = desk.read(f"/invoices/{final.pk}/")
    assert "Finalized as 2026-10-0001; it never changes again" in page
    assert "Month closed" in page


def test_invoices_are_for_those_who_pay_or_lead(desk: Desk) -> None:
    draft_owner = desk.get("/invoices/")
    assert draft_owner.status_code == 200
    assert desk.signed_in_as(Role.BILLING).get("/invoices/").status_code == 200
    assert desk.signed_in_as(Role.VIEWER).get("/invoices/").status_code == 403


def test_a_tenant_without_a_charge_is_told_when_its_first_invoice_comes(desk: Desk) -> None:
    assert "No invoice yet" in desk.read("/invoices/")
    assert "Nothing was spent in November" in desk.read("/spend/")
