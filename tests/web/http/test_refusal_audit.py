"""An operator's refused action stays in the audit log."""

from typing import Any

import pytest
from django.test import Client

from tenants.models import AuditEvent, Tenant, User
from tenants.services import rls
from tests.database import OwnDatabase
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner


@pytest.fixture
def no_second_factor(settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False


@pytest.fixture
def delta(db: None) -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def browser_of(user: User, *, checks: bool = False) -> Client:
    client = Client(enforce_csrf_checks=checks)
    client.force_login(user)
    return client


@pytest.fixture
def operator(delta: TenantWithOwner) -> User:
    return User.objects.create_user("operator@example.org", is_staff=True)


def refusals() -> list[AuditEvent]:
    with rls.staff_scope():
        return list(AuditEvent.objects.filter(action__endswith=".refused"))


@pytest.mark.usefixtures("no_second_factor")
def test_an_operators_request_for_a_missing_tenant_is_audited_as_refused(operator: User) -> None:
    path = "/ops/tenants/ten_missing/suspend/"
    answer = browser_of(operator).post(path, {"why": "unpaid"}, headers={"X-Request-ID": "req-9"})
    assert answer.status_code == 404
    (event,) = refusals()
    assert (event.action, event.actor_kind, event.actor_id) == (
        "ops.tenants.suspend.refused",
        "staff",
        operator.pk,
    )
    assert event.request_id == "req-9"
    assert event.detail == {
        "method": "POST",
        "path": path,
        "status": 404,
        "why": "Not found.",
    }


@pytest.mark.usefixtures("no_second_factor")
def test_a_form_sent_from_another_site_is_audited_as_refused(delta: TenantWithOwner, operator: User) -> None:
    path = f"/ops/tenants/{delta.tenant.pk}/suspend/"
    assert browser_of(operator, checks=True).post(path, {"why": "x"}).status_code == 403
    (event,) = refusals()
    assert (event.action, event.detail["status"]) == ("ops.tenants.suspend.refused", 403)
    with rls.staff_scope():
        assert Tenant.objects.get().suspended_at is None


@pytest.mark.usefixtures("no_second_factor")
def test_an_invalid_form_value_is_audited_as_refused(delta: TenantWithOwner, operator: User) -> None:
    path = f"/ops/tenants/{delta.tenant.pk}/quota/"
    assert browser_of(operator).post(path, {"kind": "units", "limit": "-1"}).status_code == 302
    (event,) = refusals()
    assert event.detail["why"].startswith("Limit: ")


@pytest.mark.usefixtures("no_second_factor")
def test_successful_actions_and_page_views_are_not_audited_as_refusals(delta: TenantWithOwner, operator: User) -> None:
    client = browser_of(operator)
    assert client.get("/ops/nodes/nod_missing/").status_code == 404
    assert client.post(f"/ops/tenants/{delta.tenant.pk}/suspend/", {"why": "unpaid"}).status_code == 302
    assert refusals() == []


@pytest.mark.usefixtures("no_second_factor")
def test_refusals_of_non_operators_stay_out_of_the_operators_audit_log(delta: TenantWithOwner) -> None:
    path = f"/ops/tenants/{delta.tenant.pk}/suspend/"
    assert browser_of(delta.owner).post(path, {"why": "x"}).status_code == 404
    assert Client().post(path, {"why": "x"}).status_code == 302
    assert refusals() == []


@pytest.mark.usefixtures("no_second_factor")
def test_a_value_with_a_nul_character_is_refused_and_audited(delta: TenantWithOwner, operator: User) -> None:
    path = f"/ops/tenants/{delta.tenant.pk}/quota/"
    assert browser_of(operator).post(path, {"kind": "a\0b", "limit": "1"}).status_code == 302
    (event,) = refusals()
    assert "a\N{REPLACEMENT CHARACTER}b" in event.detail["why"]


def test_the_refusal_of_an_operator_without_a_second_factor_is_audited(delta: TenantWithOwner, operator: User) -> None:
    path = f"/ops/tenants/{delta.tenant.pk}/suspend/"
    assert browser_of(operator).post(path, {"why": "x"}).status_code == 302
    (event,) = refusals()
    assert event.detail["why"] == "An operator needs a second factor."


@pytest.mark.usefixtures("no_second_factor")
def test_a_refusal_is_audited_although_its_request_was_rolled_back(own_database: OwnDatabase) -> None:
    operator = User.objects.create_user("operator@example.org", is_staff=True)
    path = "/ops/tenants/ten_missing/resume/"
    assert browser_of(operator).post(path).status_code == 404
    with own_database.server.as_administrator(own_database.name) as administrator:
        found = administrator.execute("SELECT action FROM tenants_auditevent").fetchall()
    assert found == [("ops.tenants.resume.refused",)]
