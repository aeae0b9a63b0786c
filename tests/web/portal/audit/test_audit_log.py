"""The audit page: its filters, address, API call and values."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from io import StringIO

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from ports import clock
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services import members, quotas, rls, tenants, tokens
from tenants.services.actors import BILLING, SYSTEM, Actor
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner, current_time
from tests.web.portal.team.test_team_pages import signed_in
from web.portal.audit import audit_filters

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


@pytest.fixture
def owner(delta: TenantWithOwner) -> Browser:
    return signed_in(delta.owner)


def words(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(strip_tags(page.replace("<", " <")))).strip()


def rows(page: str) -> list[str]:
    """Return the texts of the event rows."""
    [body] = re.findall(r"<tbody>(.*)</tbody>", page, re.DOTALL) or [""]
    return [words(row) for row in body.split("<tr>")[1:]]


def note(
    world: TenantWithOwner,
    action: str,
    *,
    subject_id: str = "",
    subject_label: str = "",
    actor: Actor = SYSTEM,
    at: datetime | None = None,
    **values: object,
) -> None:
    from tenants.services import audit as writing

    with rls.tenant_scope(world.tenant.pk):
        about = (subject_id, subject_label, world.tenant.pk)
        writing.record(action, *about, actor=actor, now=at or current_time(), **values)


def test_ids_are_written_as_names_and_counts_in_their_units(delta: TenantWithOwner, owner: Browser) -> None:
    lab = delta.create_project("lab")
    with rls.tenant_scope(delta.tenant.pk):
        for limit in (20_000, 1_028_000):
            quotas.set_limit(project=lab, kind=QuotaKind.UNITS, limit=limit, actor=SYSTEM, now=current_time())
        burn = 28 * 10**9
        quotas.set_limit(project=lab, kind=QuotaKind.BURN, limit=burn, actor=SYSTEM, now=current_time())
        until = current_time() + timedelta(days=30)
        tokens.issue(
            tenant=delta.tenant,
            name="ci",
            scopes=["leases:read"],
            expires_at=until,
            actor=SYSTEM,
            now=current_time(),
            user_id=delta.owner.pk,
            project=lab,
        )
        tenants.change(delta.tenant, actor=SYSTEM, now=current_time(), name="Delta Labs", time_zone="Europe/Madrid")
    page = owner.get("/audit/").content.decode()
    text = " ".join(rows(page))
    assert "burn of lab €28.00 /h · project lab" in text
    assert "units of lab 20 units → 1,028 units · project lab" in text
    assert f"owner {delta.owner.email}" in text
    assert "name Delta → Delta Labs · time zone Europe/Berlin → Europe/Madrid" in text
    assert "prj_" not in text
    assert "usr_" not in text
    assert "1028000" not in page


def test_missing_objects_show_their_id_and_empty_values_are_omitted(delta: TenantWithOwner, owner: Browser) -> None:
    gone = f"prj_{'0' * 26}"
    note(delta, "lease.request", subject_label="fold", project=gone, quantity=2_000, max_duration_s=5400, image="",
         same_node=True, volume=None, end_reason="by_tenant", keys={"ssh": 2, "none": ""}, ends_at="soon",
         size_gib=1200, at_most=[1, 2])  # fmt: skip
    (row,) = rows(owner.get("/audit/?action=lease.request").content.decode())
    for found in (
        f"project {gone}",
        "quantity 2,000",
        "at most 1 h 30 min",
        "same node yes",
        "end reason by tenant",
        "keys ssh 2 ·",
        "ends soon",
        "size 1,200 GiB",
        "at most 1, 2",
    ):
        assert found in row
    assert "image" not in row
    assert "volume" not in row


def test_amounts_times_and_previous_values_are_formatted(delta: TenantWithOwner, owner: Browser) -> None:
    note(delta, "invoice.pay", amount=123_456, currency="EUR", since="2026-11-21T08:30:00+00:00")
    note(delta, "quota.remove", subject_label="burn of lab", before=3 * 10**9)
    note(delta, "quota.set", subject_label="else of lab", after=1000, currency="")
    note(delta, "x.broken", since="2026-99-21T08:30:00+00:00", expires_at="2026-11-21")
    text = " ".join(rows(owner.get("/audit/").content.decode()))
    assert "amount €1,234.56" in text
    assert "08:30" in text
    assert "was €3.00 /h" in text
    assert "else of lab 1,000" in text
    assert "since 2026-99-21T08:30:00+00:00 · until 2026-11-21" in text


def test_seconds_are_formatted_as_a_duration(delta: TenantWithOwner, owner: Browser) -> None:
    note(delta, "lease.stop", subject_label="short", active_seconds=11)
    note(delta, "lease.stop", subject_label="long", active_seconds=5460)
    long, short = rows(owner.get("/audit/?action=lease.stop").content.decode())
    assert "ran 11 s" in short
    assert "ran 1 h 31 min" in long


def test_tax_rates_are_formatted_in_percent_and_prices_in_money(delta: TenantWithOwner, owner: Browser) -> None:
    note(delta, "tax.publish", before=1900, after=2300, since="2026-01-01")
    note(delta, "price.agree", currency="EUR", before=2 * 10**9, after=15 * 10**8)
    note(delta, "price.end", currency="EUR", price=10**9)
    note(delta, "commitment.agree", price="0.200000000 EUR/h")
    text = " ".join(rows(owner.get("/audit/").content.decode()))
    for told in ("19 % → 23 % · since 2026-01-01", "€2.00 /h → €1.50 /h", "price €1.00 /h", "price €0.20 /h"):
        assert told in text


def test_a_day_filter_uses_the_tenants_time_zone_on_the_page_and_in_the_api_call(
    delta: TenantWithOwner, owner: Browser
) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        tenants.change(delta.tenant, actor=SYSTEM, now=current_time(), time_zone="America/New_York")
    for hour in (4, 5, 28, 29):
        at = datetime(2026, 11, 10, tzinfo=UTC) + timedelta(hours=hour)
        note(delta, "x.at", at=at, subject_label=f"hour {hour}.")
    page = owner.get("/audit/?day=2026-11-10").content.decode()
    assert [re.search(r"hour \d+", row)[0] for row in rows(page)] == ["hour 28", "hour 5"]
    call = re.search(r"audit-events\?([^\s']+)", unescape(page))[1]
    assert call == "at__gte=2026-11-10T05:00:00Z&at__lt=2026-11-11T05:00:00Z"
    api = tenant_setup.ApiClient(delta.token())
    assert len(api.send("GET", f"audit-events?{call}").json()["items"]) == 2
    for none in ("2026-13-40", "yesterday", "20261110", "٢٠٢٦-١١-١٠"):
        assert len(rows(owner.get(f"/audit/?day={none}").content.decode())) > 4


def test_the_page_and_its_csv_show_actor_action_and_old_value(delta: TenantWithOwner, owner: Browser) -> None:
    viewer = delta.user_with_role(Role.VIEWER)
    owner.post(f"/team/members/{delta.membership(viewer).pk}/role/", {"role": "member"})
    note(delta, "x.other")
    text = f"?action=member.role&actor={delta.owner.pk}"
    (row,) = rows(owner.get(f"/audit/{text}").content.decode())
    assert f"member.role {viewer.email} viewer → member {delta.owner.email}" in row
    (kept,) = csv.DictReader(StringIO(owner.get(f"/audit.csv{text}").content.decode()))
    assert (kept["actor"], kept["action"], kept["subject"]) == (
        delta.owner.email,
        "member.role",
        viewer.email,
    )
    assert json.loads(kept["detail"]) == {"project": "", "before": "viewer", "after": "member"}
    assert kept["id"].startswith("aud_")


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_first_and_last_possible_day_do_not_fail(owner: Browser, day: str) -> None:
    assert owner.get(f"/audit/?day={day}").status_code == 200
    assert owner.get(f"/audit.csv?day={day}").status_code == 200


def test_filters_can_be_combined_and_removed_one_by_one(delta: TenantWithOwner, owner: Browser) -> None:
    lead = delta.user_with_role(Role.ADMIN)
    note(
        delta,
        "x.one",
        actor=Actor("user", lead.pk, lead.email),
        subject_id="qta_1",
        subject_label="the thing",
    )
    note(delta, "x.two", actor=Actor("user", lead.pk, lead.email))
    page = owner.get("/audit/?action=x.one").content.decode()
    assert f'href="?action=x.one&amp;actor={lead.pk}"' in page
    assert 'aria-label="Action x.one: remove this filter"' in page
    assert '<input type="hidden" name="action" value="x.one">' in page
    both = owner.get(f"/audit/?action=x.one&actor={lead.pk}&subject=qta_1").content.decode()
    assert f'aria-label="User {lead.email}: remove this filter"' in both
    assert 'aria-label="Object the thing: remove this filter"' in both
    assert f"audit-events?action=x.one&actor={lead.pk}&subject=qta_1" in unescape(both)
    assert len(rows(both)) == 1
    assert f'href="/audit.csv?action=x.one&amp;actor={lead.pk}&amp;subject=qta_1"' in both
    today = clock.now().date().isoformat()
    assert f'href="?action=x.one&amp;day={today}"' in page


def test_actors_are_labelled_as_automatic_or_operator(delta: TenantWithOwner, owner: Browser) -> None:
    note(delta, "x.sweep", actor=BILLING)
    note(delta, "x.staff", actor=Actor("staff", "usr_1", "ada@operator.example"))
    page = owner.get("/audit/").content.decode()
    text = " ".join(rows(page))
    assert "billing automatic" in text
    assert "ada@operator.example operator" in text
    assert 'href="?actor="' not in page


def test_the_number_of_queries_is_the_same_with_many_rows_names_and_actors(
    delta: TenantWithOwner, owner: Browser
) -> None:
    counts: list[int] = []

    def grow() -> None:
        project = delta.create_project(f"p{len(counts)}")
        machine = delta.create_service_account(f"m {project.pk}")
        user = delta.user_with_role(Role.MEMBER)
        with rls.tenant_scope(delta.tenant.pk):
            members.add(
                tenant=delta.tenant, user=user, role=Role.VIEWER, project=project, actor=SYSTEM, now=current_time()
            )
        actor = Actor("user", user.pk, user.email)
        note(delta, f"x.{project.pk}", actor=actor, project=project.pk, bearer=user.pk, by=machine.pk,
             token=f"tok_{'0' * 26}", unknown=f"xyz_{'0' * 26}")  # fmt: skip

    for _ in range(3):
        grow()
        owner.get("/audit/")
        with CaptureQueriesContext(connection) as queries:
            assert owner.get(f"/audit/?day={current_time().date()}").status_code == 200
        counts.append(len(queries))
    assert len(set(counts)) == 1, counts


def test_filters_offer_only_actions_of_recent_events(
    delta: TenantWithOwner, owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(delta, "x.old")
    note(delta, "x.new")
    monkeypatch.setattr(audit_filters, "RECENT_EVENTS", 1)
    page = owner.get("/audit/?day=2000-01-01").content.decode()
    assert "x.new" in page
    assert "x.old" not in page


def test_a_day_is_parsed_or_ignored() -> None:
    assert audit_filters.parse_day("2026-02-28").isoformat() == "2026-02-28"
    assert [audit_filters.parse_day(text) for text in ("", "2026-02-30", "2026-W01-1")] == [None, None, None]
