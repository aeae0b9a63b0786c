"""The operators' tenant page: usage, suspension and reactivation."""

from typing import Any

import pytest
from django.test import Client

from tenants.domain.roles import Role
from tenants.models import AuditEvent, QuotaKind, Tenant, User
from tenants.services import quotas, rls
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import current_time

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def acts(tenant: Tenant) -> list[tuple[str, str, str]]:
    """Return action, actor and reason of operator actions on a tenant."""
    with rls.staff_scope():
        done = AuditEvent.objects.filter(tenant_id=tenant.pk, actor_kind="staff").order_by("at", "id")
        return [(each.action, each.actor_label, each.detail["why"]) for each in done]


def suspended(tenant: Tenant) -> bool:
    with rls.staff_scope():
        return Tenant.objects.get(pk=tenant.pk).suspended_at is not None


def test_a_tenant_is_listed_with_its_members_and_usage(operator: Client) -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    tenant_setup.create_tenant_with_owner("Echo")
    delta.user_with_role(Role.VIEWER)
    with rls.tenant_scope(delta.tenant.pk):
        quotas.set_limit(project=delta.root, kind=QuotaKind.UNITS, limit=7000, actor=SYSTEM, now=current_time())
    (line,) = operator.get("/ops/tenants/?q=delt").context["listing"].rows
    assert (line["tenant"].name, line["members"]) == ("Delta", 2)
    (units,) = [each for each in line["quotas"] if each.kind == QuotaKind.UNITS]
    assert (units.used, units.limit_text, units.used_count, units.limit_count) == ("0", "7", 0, 7000)
    assert {each["tenant"].name for each in operator.get("/ops/tenants/").context["listing"].rows} == {
        "Delta",
        "Echo",
    }


def test_suspending_and_resuming_a_tenant_are_audited(operator: Client) -> None:
    tenant = tenant_setup.create_tenant_with_owner("Delta").tenant
    operator.post(f"/ops/tenants/{tenant.pk}/suspend/", {"why": ""})
    assert not suspended(tenant)
    operator.post(f"/ops/tenants/{tenant.pk}/suspend/", {"why": "unpaid"})
    assert suspended(tenant)
    shown = operator.get("/ops/tenants/").content.decode()
    assert "Delta was suspended." in shown
    assert f"/ops/tenants/{tenant.pk}/resume/" in shown
    operator.post(f"/ops/tenants/{tenant.pk}/resume/")
    assert not suspended(tenant)
    assert "Delta is active again." in operator.get("/ops/tenants/").content.decode()
    assert acts(tenant) == [
        ("tenant.suspend", "operator@example.org", "unpaid"),
        ("tenant.resume", "operator@example.org", "by an operator"),
    ]
