"""Operations refuse query parameters that are unknown, repeated or empty."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tenants.models import Project, Tenant
from tenants.services.rls import tenant_scope
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner, current_time
from web.http.query_parameters import parse_moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


@pytest.fixture
def api(delta: TenantWithOwner) -> ApiClient:
    return ApiClient(delta.token())


def post_project(delta: TenantWithOwner, api: ApiClient, query: str) -> Any:
    return api.send("POST", f"projects?{query}", {"name": "lab", "parent": delta.root.pk})


def count_projects(delta: TenantWithOwner) -> int:
    with tenant_scope(delta.tenant.pk):
        return Project.objects.count()


@pytest.mark.parametrize("value", ["true", "True", "TRUE", "1", "yes", "Yes", "on"])
def test_a_dry_run_is_asked_for_in_any_usual_spelling(delta: TenantWithOwner, api: ApiClient, value: str) -> None:
    answer = post_project(delta, api, f"dry_run={value}")
    assert (answer.status_code, answer["Dry-Run"]) == (200, "true")
    assert count_projects(delta) == 1


@pytest.mark.parametrize("value", ["false", "False", "FALSE", "0", "no", "off"])
def test_a_dry_run_is_declined_in_any_usual_spelling(delta: TenantWithOwner, api: ApiClient, value: str) -> None:
    assert post_project(delta, api, f"dry_run={value}").status_code == 201
    assert count_projects(delta) == 2


@pytest.mark.parametrize("value", ["ture", "y e s", "2", "", "null", "wahr", "true,false"])
def test_an_unclear_dry_run_changes_nothing_and_says_what_to_send(
    delta: TenantWithOwner, api: ApiClient, value: str
) -> None:
    answer = post_project(delta, api, f"dry_run={value}")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "dry_run"
    assert "Send " in answer.json()["detail"]
    assert count_projects(delta) == 1


def test_a_dry_run_of_a_deletion_deletes_nothing(delta: TenantWithOwner, api: ApiClient) -> None:
    robot = delta.create_service_account("robot")
    assert api.send("DELETE", f"service-accounts/{robot.pk}?dry_run=1", If_Match="*").status_code == 200
    assert api.send("GET", "service-accounts?closed=No").json()["total_estimate"] == 1


def test_flags_of_lists_take_the_same_spellings(delta: TenantWithOwner, api: ApiClient) -> None:
    delta.create_project("lab")
    assert api.send("GET", "projects?archived=NO").json()["total_estimate"] == 2
    assert api.send("GET", "projects?archived=Yes").json()["total_estimate"] == 0
    answer = api.send("GET", "projects?archived=maybe")
    assert "Send archived=true or archived=false." in answer.json()["detail"]


@pytest.mark.parametrize("query", ["name=x", "dryrun=true", "dry-run=true", "DRY_RUN=true", "limit=5", "archived=true"])
def test_an_unknown_parameter_of_a_write_is_refused(delta: TenantWithOwner, api: ApiClient, query: str) -> None:
    answer = post_project(delta, api, query)
    assert answer.status_code == 400
    assert "Known: dry_run." in answer.json()["detail"]
    assert count_projects(delta) == 1


def test_an_unknown_parameter_of_one_object_is_refused(delta: TenantWithOwner, api: ApiClient) -> None:
    assert api.send("GET", f"projects/{delta.root.pk}?name=x").status_code == 400
    assert api.send("GET", "users/me?dry_run=true").status_code == 400


def test_a_search_is_refused_where_there_is_none(api: ApiClient) -> None:
    assert api.send("GET", "quotas?q=x").status_code == 400


@pytest.mark.parametrize("query", ["archived=true&archived=false", "limit=1&limit=2", "q=a&q=b", "parent=a&parent=a"])
def test_a_repeated_parameter_is_refused(api: ApiClient, query: str) -> None:
    answer = api.send("GET", f"projects?{query}")
    assert answer.status_code == 400
    assert "several times" in answer.json()["detail"]


@pytest.mark.parametrize(
    "query", ["projects?archived=", "projects?parent=", "projects?limit=", "audit-events?at__gte=", "usage?from="]
)
def test_an_empty_parameter_is_refused(api: ApiClient, query: str) -> None:
    answer = api.send("GET", query)
    assert answer.status_code == 400
    assert "Is empty" in answer.json()["detail"]


def test_an_empty_cursor_is_the_first_page(api: ApiClient) -> None:
    assert api.send("GET", "projects?cursor=&q=").status_code == 200


MOMENTS = [
    ("2026-11-21T09:30:00", "2026-11-21T08:30:00Z"),  # Berlin, in winter
    ("2026-07-21T09:30:00", "2026-07-21T07:30:00Z"),  # in summer
    ("2026-11-21", "2026-11-20T23:00:00Z"),
    ("2026-11-21T09:30:00Z", "2026-11-21T09:30:00Z"),
    ("2026-11-21T09:30:00+02:00", "2026-11-21T07:30:00Z"),
]


@pytest.mark.parametrize(("text", "moment"), MOMENTS)
def test_a_time_without_a_zone_is_in_the_tenants(text: str, moment: str) -> None:
    assert parse_moment("at", text, ZoneInfo("Europe/Berlin")) == datetime.fromisoformat(moment)


def test_a_list_is_filtered_in_the_tenants_time_zone(delta: TenantWithOwner, api: ApiClient) -> None:
    with tenant_scope(delta.tenant.pk):
        Tenant.objects.filter(pk=delta.tenant.pk).update(time_zone="Pacific/Kiritimati")  # UTC+14
    local = (current_time().astimezone(UTC) + timedelta(hours=13)).strftime("%Y-%m-%dT%H:%M:%S")
    everything = api.send("GET", "audit-events").json()["total_estimate"]
    assert api.send("GET", f"audit-events?at__gte={local}").json()["total_estimate"] == everything > 0
    assert api.send("GET", f"audit-events?at__gte={local}Z").json()["total_estimate"] == 0


def test_a_body_is_read_in_the_tenants_time_zone(delta: TenantWithOwner, api: ApiClient) -> None:
    with tenant_scope(delta.tenant.pk):
        Tenant.objects.filter(pk=delta.tenant.pk).update(time_zone="Asia/Tokyo")
    day = (current_time() + timedelta(days=9)).strftime("%Y-%m-%d")
    body = {"name": "x", "scopes": ["leases:read"], "expires_at": f"{day}T09:00:00"}
    answer = api.send("POST", "tokens", body)
    assert answer.json()["expires_at"] == f"{day}T00:00:00Z"
