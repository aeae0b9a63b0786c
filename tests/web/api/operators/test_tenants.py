"""Operators' list of tenants over the API."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tenants.domain.roles import Role
from tenants.models import AuditEvent, QuotaKind, Tenant, User
from tenants.services import quotas, rls, tenants
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner, current_time

pytestmark = pytest.mark.django_db
TENANTS = "/api/v1/ops/tenants"


@pytest.fixture
def operator(settings: Any) -> Iterator[Client]:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def items(client: Client, address: str) -> list[dict[str, Any]]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]  # type: ignore[no-any-return]


def limited(world: TenantWithOwner, units: int) -> None:
    with rls.tenant_scope(world.tenant.pk):
        quotas.set_limit(project=world.root, kind=QuotaKind.UNITS, limit=units, actor=SYSTEM, now=current_time())


def suspended(world: TenantWithOwner) -> None:
    with rls.tenant_scope(world.tenant.pk):
        tenants.suspend(world.tenant, actor=SYSTEM, now=current_time(), why="unpaid")


def test_a_tenant_shows_its_member_count_and_root_project_quotas(operator: Client) -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    delta.user_with_role(Role.VIEWER)
    delta.user_with_role(Role.VIEWER, project=delta.create_project("below"))
    limited(delta, 7000)
    (shown,) = items(operator, TENANTS)
    assert (shown["id"], shown["name"], shown["member_count"]) == (delta.tenant.pk, "Delta", 3)
    assert shown["suspended_at"] is None
    (quota,) = [each for each in shown["quotas"] if each["kind"] == "units"]
    assert (quota["limit"], quota["used"]) == (7000, 0)
    assert operator.get(f"{TENANTS}/{delta.tenant.pk}").json() == shown


def test_tenants_are_searched_filtered_and_paginated(operator: Client) -> None:
    worlds = [tenant_setup.create_tenant_with_owner(name) for name in ("Ada", "Bell", "Cray", "Bellini")]
    suspended(worlds[2])
    assert [row["name"] for row in items(operator, f"{TENANTS}?q=bell")] == ["Bell", "Bellini"]
    assert [row["name"] for row in items(operator, f"{TENANTS}?suspended=true")] == ["Cray"]
    assert [row["name"] for row in items(operator, f"{TENANTS}?suspended=false&limit=500")] == [
        "Ada",
        "Bell",
        "Bellini",
    ]
    first = operator.get(f"{TENANTS}?limit=3").json()
    rest = operator.get(f"{TENANTS}?limit=3&cursor={first['next_cursor']}").json()
    assert [row["name"] for row in first["items"] + rest["items"]] == ["Ada", "Bell", "Bellini", "Cray"]
    assert rest["next_cursor"] is None
    assert operator.get(f"{TENANTS}?owner=x").status_code == 400


def test_reading_tenants_over_the_api_is_audited_like_the_page(operator: Client) -> None:
    for address in ("/ops/tenants/?q=x", f"{TENANTS}?q=x"):
        operator.get(address, headers={"X-Request-ID": "look"})
        with rls.staff_scope():
            event = AuditEvent.objects.latest("at", "id")
        seen = (event.action, event.actor_kind, event.actor_label, event.tenant_id, event.request_id)
        assert seen == ("ops.tenants.list", "staff", "operator@example.org", "", "look")
        assert event.detail == {"method": "GET", "path": address}


def test_non_operators_get_no_tenants_and_leave_no_audit_entry(settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    delta = tenant_setup.create_tenant_with_owner("Delta")
    client = Client()
    assert client.get(TENANTS).status_code == 401
    assert tenant_setup.ApiClient(delta.token()).send("GET", TENANTS).status_code == 401  # type: ignore[attr-defined]
    client.force_login(delta.owner)
    assert client.get(TENANTS).status_code == client.get("/api/v1/ops/audit-events").status_code == 404
    with rls.staff_scope():
        assert not AuditEvent.objects.filter(action__startswith="ops.").exists()


def test_reading_tenants_leaves_the_scope_of_the_transaction_unchanged(operator: Client) -> None:
    tenant_setup.create_tenant_with_owner("Delta")
    assert items(operator, TENANTS)
    assert not Tenant.objects.exists()


def test_the_number_of_queries_is_the_same_with_many_tenants(operator: Client) -> None:
    counts = []
    for number in (2, 12):
        for each in range(number):
            limited(tenant_setup.create_tenant_with_owner(f"T {number}-{each}"), 1000)
        operator.get(TENANTS)
        with CaptureQueriesContext(connection) as seen:
            assert len(items(operator, f"{TENANTS}?limit=100")) >= number
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_the_audit_log_filters_by_write_or_read_and_by_tenant(operator: Client) -> None:
    delta, echo = tenant_setup.create_tenant_with_owner("Delta"), tenant_setup.create_tenant_with_owner("Echo")
    suspended(delta)
    operator.get("/ops/tenants/")
    trail = "/api/v1/ops/audit-events"
    assert {row["action"] for row in items(operator, f"{trail}?actor_kind=staff&visits=true")} == {
        "ops.tenants.list",
        "ops.audit",
    }
    assert items(operator, f"{trail}?actor_kind=staff&visits=false") == []
    assert "tenant.suspend" in {row["action"] for row in items(operator, f"{trail}?tenant={delta.tenant.pk}")}
    assert "tenant.suspend" not in {r["action"] for r in items(operator, f"{trail}?tenant={echo.tenant.pk}")}
    tomorrow = (current_time() + timedelta(days=1)).isoformat().replace("+", "%2B")
    assert items(operator, f"{trail}?at__gte={tomorrow}") == []
