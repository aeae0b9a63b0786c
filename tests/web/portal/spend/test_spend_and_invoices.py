"""Spend and invoices show the same figures, down to the second."""

import csv
from datetime import timedelta
from io import StringIO

import pytest

from billing.domain.money import format_minor
from billing.models import Invoice
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing import histories
from tests.billing.histories import HOUR, set_price, utc
from tests.simulation import offering
from tests.web.portal.signed_in_user import EURO, PortalSession, run_lease_for

pytestmark = pytest.mark.django_db


def charged(portal: PortalSession) -> Invoice:
    """Rate all usage, and refresh the draft."""
    lease_rating.rate_all_leases(now=portal.sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        drafts.refresh_drafts(portal.owner.tenant, now=portal.sim.now)
        return Invoice.objects.latest("pk")


@pytest.mark.deep
def test_spend_equals_the_draft_invoice_to_the_cent(portal: PortalSession) -> None:
    child = portal.owner.create_project("design")
    for n, profile in enumerate(("1g.10gb", "2g.20gb", "3g.40gb", "whole-gpu", "1g.10gb", "2g.20gb")):
        run_lease_for(
            portal, profile, 777 + 131 * n, project=child if n % 2 else portal.owner.project, quantity=1 + n % 3
        )
    draft = charged(portal)
    for group in ("offering", "project"):
        totals = portal.get(f"/spend/?group={group}").context["page"].totals
        assert totals.minor == draft.total
        assert sum(row.minor for row in totals.groups) == draft.total
    assert "matches the spend exactly" in portal.read("/spend/")


@pytest.mark.deep
def test_the_page_layout_and_home_show_the_same_amount_as_spend_to_the_cent(portal: PortalSession) -> None:
    for profile in ("1g.10gb", "2g.20gb", "3g.40gb", "whole-gpu"):
        run_lease_for(portal, profile, 5)  # 0.14, 0.28, 0.42 and 0.97 cents: each line is rounded on its own
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=2, max_duration_s=9 * 3600)
    portal.sim.run(1234)
    spend = portal.get("/spend/").context["page"].totals.minor
    for path in ("/spend/", "/"):
        assert f"Spent in November {format_minor(spend, 'EUR')}" in portal.read(path)
    assert portal.get("/").context["page"].month_spend.spent == spend


@pytest.mark.deep
def test_each_price_version_is_rounded_separately_on_spend_and_invoice(portal: PortalSession) -> None:
    what = offering("1g.10gb")
    run_lease_for(portal, "1g.10gb", 10)  # 0.28 cents, which is nought
    set_price(what, EURO, since=portal.sim.now)
    run_lease_for(portal, "1g.10gb", 10)  # and again, though both together would be one
    run_lease_for(portal, "whole-gpu", 3600)
    running = portal.get("/spend/").context["page"].totals.minor
    assert charged(portal).total == running == portal.get("/spend/").context["page"].totals.minor == 700


def test_spend_of_a_project_shows_no_draft_of_the_tenant(portal: PortalSession) -> None:
    child = portal.owner.create_project("design")
    run_lease_for(portal, "1g.10gb", 3600, project=child)
    run_lease_for(portal, "whole-gpu", 3600)
    draft = charged(portal)
    assert portal.get("/spend/").context["page"].draft == draft
    for role in (Role.OWNER, Role.VIEWER):
        page = portal.sign_in_as(role, child).get("/spend/")
        assert (page.context["page"].draft, page.context["page"].totals.minor) == (None, 100)
        assert draft.pk not in page.content.decode()
    portal.switch_project(child)
    assert portal.get("/spend/").context["page"].draft is None


@pytest.mark.deep
def test_spend_includes_running_leases_and_shows_them_beside_the_draft(portal: PortalSession) -> None:
    run_lease_for(portal, "1g.10gb", 3600)
    draft = charged(portal)
    portal.sim.create_lease(portal.owner, offering("2g.20gb"), max_duration_s=9 * 3600)
    portal.sim.run(1800)
    page = portal.get("/spend/")
    assert page.context["page"].totals.minor == draft.total + 100
    assert "+ €1.00 from running leases" in page.content.decode()


def test_columns_add_up_to_the_total_by_day_week_and_month(portal: PortalSession) -> None:
    for day in (1, 3, 9):
        portal.sim.clock.at = portal.sim.now.replace(day=day, hour=8)
        run_lease_for(portal, "1g.10gb", 3600)
    portal.sim.clock.at = portal.sim.now.replace(day=21)
    for step in ("day", "week", "month"):
        columns = portal.get(f"/spend/?by={step}").context["page"].columns
        assert sum(sum(column.get("amounts", ())) for column in columns) == 300, step  # days to come have none


def test_usage_across_midnight_is_split_in_the_tenants_time_zone(portal: PortalSession) -> None:
    portal.change_time_zone("America/New_York")
    portal.sim.clock.at = portal.sim.now.replace(day=12, hour=4, minute=0)  # 23:00 on the 11th
    run_lease_for(portal, "1g.10gb", 2 * 3600)
    portal.sim.clock.at += timedelta(days=2)
    columns = portal.get("/spend/").context["page"].columns
    amounts = [sum(column["amounts"]) for column in columns]
    assert sum(amounts[10:12]) == sum(amounts) == 200
    assert 98 <= amounts[10] <= 100


def test_spend_compares_with_the_same_days_of_last_month(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=2)
    run_lease_for(portal, "1g.10gb", 3600)
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=29)
    run_lease_for(portal, "1g.10gb", 3600)
    portal.sim.clock.at = portal.sim.now.replace(month=11, day=3, hour=20)
    run_lease_for(portal, "2g.20gb", 3600)
    page = portal.read("/spend/")
    assert "€2.00 +100.0 % on same days in October" in page
    assert "October total" in page


def test_the_comparison_with_last_month_ends_at_the_same_whole_second_on_all_pages(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=3, hour=7)
    run_lease_for(portal, "whole-gpu", 2 * 3600, quantity=4)
    totals = []
    for microsecond in (0, 700_000):
        portal.sim.clock.at = portal.sim.now.replace(month=11, day=3, hour=8, minute=0, second=0)
        portal.sim.clock.at = portal.sim.now.replace(microsecond=microsecond)
        before = portal.get("/spend/").context["page"].before
        totals.append((before.minor, before.groups[0].unit_seconds))
        assert portal.get("/").context["page"].month_spend.before == before.minor
    assert totals[0] == totals[1]


def test_a_draft_with_late_charges_of_earlier_months_states_it(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=31, hour=20)
    run_lease_for(portal, "1g.10gb", 3600)
    lease_rating.rate_all_leases(now=portal.sim.now)
    portal.sim.clock.at = portal.sim.now.replace(month=11, day=3)
    with tenant_scope(portal.owner.tenant.pk):
        assert close_month.close_period(portal.owner.tenant, "2026-10", now=portal.sim.now)
    histories.add_ended_lease(portal.owner.project, offering("2g.20gb"), utc("2026-10-30 08:00:00"), HOUR)
    run_lease_for(portal, "1g.10gb", 3600)
    assert charged(portal).total == 300
    page = portal.read("/spend/")
    assert portal.get("/spend/").context["page"].totals.minor == 100
    assert "includes late charges of earlier months" in page
    assert "to the cent" not in page


def test_spend_many_times_that_of_last_month_is_shown_as_a_multiple(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=2)
    run_lease_for(portal, "1g.10gb", 3600)
    portal.sim.clock.at = portal.sim.now.replace(month=11, day=3, hour=8)
    run_lease_for(portal, "3g.40gb", 4 * 3600)
    assert "12 × same days in October" in portal.read("/spend/")


def test_spend_is_filtered_by_price_class_and_past_months_stay_visible(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=2)
    run_lease_for(portal, "3g.40gb", 3600)
    lease_rating.rate_all_leases(now=portal.sim.now)
    portal.sim.clock.at = portal.sim.now.replace(month=11, day=21)
    assert "€3.00" in portal.read("/spend/?period=2026-10")
    assert "No spend in October" in portal.read("/spend/?period=2026-10&class=spot")
    assert portal.get("/spend/?period=1999-99&by=x&group=y").status_code == 200


def test_spend_as_csv_has_a_line_per_day_and_group(portal: PortalSession) -> None:
    run_lease_for(portal, "1g.10gb", 3600)
    answer = portal.get("/spend/?format=csv")
    [row] = csv.DictReader(StringIO(answer.content.decode()))
    assert row == {"day": "2026-11-21", "group": "H100 SXM 80GB 1g.10gb", "unit_seconds": "3600", "amount": "1.000000",
                   "currency": "EUR"}  # fmt: skip


def test_an_invoice_line_shows_its_seconds_price_and_calculation(portal: PortalSession) -> None:
    run_lease_for(portal, "1g.10gb", 5000, name="fold-1")
    draft = charged(portal)
    page = portal.read(f"/invoices/{draft.pk}/?line=1")
    assert "recalculated, matches" in page
    assert "fold-1 5,000 s" in page
    assert "5,000 s × 1.000000000 €/h ÷ 3600 s/h = 5,000,000,000,000 / 3,600,000,000,000 = 1.388888" in page
    assert "→ 1.39 €" in page
    assert "not charged" in page
    assert f"/invoices/{draft.pk}/lines/1/explain" in page


@pytest.mark.deep
def test_invoice_lines_add_up_to_the_total_and_match_the_csv(portal: PortalSession) -> None:
    run_lease_for(portal, "1g.10gb", 1000)
    run_lease_for(portal, "2g.20gb", 1000)
    draft = charged(portal)
    answer = portal.get(f"/invoices/{draft.pk}/")
    assert sum(row.line.minor for row in answer.context["page"].rows) == draft.total
    rows = list(csv.DictReader(StringIO(portal.get(f"/invoices/{draft.pk}/?format=csv").content.decode())))
    assert sorted(row["amount"] for row in rows) == ["0.280000", "0.560000"]


def test_an_unknown_invoice_line_shows_no_calculation(portal: PortalSession) -> None:
    run_lease_for(portal, "1g.10gb", 1000)
    draft = charged(portal)
    for line in ("0", "99", "x", "1'"):
        assert "recomputed" not in portal.read(f"/invoices/{draft.pk}/?line={line}")


def test_the_invoice_of_a_closed_month_has_a_number_and_a_history(portal: PortalSession) -> None:
    portal.sim.clock.at = portal.sim.now.replace(month=10, day=2)
    run_lease_for(portal, "1g.10gb", 3600)
    lease_rating.rate_all_leases(now=portal.sim.now)
    portal.sim.clock.at = portal.sim.now.replace(month=11, day=1, hour=3)
    with tenant_scope(portal.owner.tenant.pk):
        final = close_month.close_period(portal.owner.tenant, "2026-10", now=portal.sim.now)
    assert final is not None
    page = portal.read("/invoices/")
    assert "October 2026" in page
    assert "2026-10-0001" in page
    [row] = csv.DictReader(StringIO(portal.get("/invoices/?format=csv").content.decode()))
    assert (row["month"], row["number"], row["status"]) == ("2026-10", "2026-10-0001", "finalized")
    assert (row["total"], row["currency"]) == ("1.000000", "EUR")
    page = portal.read(f"/invoices/{final.pk}/")
    assert "Finalized as 2026-10-0001" in page
    assert "Month closed" in page


def test_owners_and_billing_members_read_invoices_and_viewers_do_not(portal: PortalSession) -> None:
    draft_owner = portal.get("/invoices/")
    assert draft_owner.status_code == 200
    assert portal.sign_in_as(Role.BILLING).get("/invoices/").status_code == 200
    assert portal.sign_in_as(Role.VIEWER).get("/invoices/").status_code == 403


def test_a_tenant_without_charges_sees_empty_invoice_and_spend_pages(portal: PortalSession) -> None:
    assert "No invoice yet" in portal.read("/invoices/")
    assert "No spend in November" in portal.read("/spend/")
