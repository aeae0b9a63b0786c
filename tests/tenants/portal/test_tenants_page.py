"""The operators' page of tenants: who they are, how full they are, and how one is suspended and let work again."""

from typing import Any

import pytest
from django.test import Client

from tenants.domain.roles import Role
from tenants.models import AuditEvent, QuotaKind, Tenant, User
from tenants.services import quotas, walls
from tenants.services.actors import SYSTEM
from tests.tenants import people
from tests.tenants.people import moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def acts(tenant: Tenant) -> list[tuple[str, str, str]]:
    """Return what operators did to a tenant: what, who, why."""
    with walls.as_staff():
        done = AuditEvent.objects.filter(tenant_id=tenant.pk, actor_kind="staff").order_by("at", "id")
        return [(each.action, each.actor_label, each.detail["why"]) for each in done]


def suspended(tenant: Tenant) -> bool:
    with walls.as_staff():
        return Tenant.objects.get(pk=tenant.pk).suspended_at is not None


def test_a_tenant_stands_there_with_its_members_and_what_it_uses(operator: Client) -> None:
    delta = people.make("Delta")
    people.make("Echo")
    delta.person(Role.VIEWER)
    with walls.as_tenant(delta.tenant.pk):
        quotas.set_limit(project=delta.root, kind=QuotaKind.UNITS, limit=7000, actor=SYSTEM, now=moment())
    (line,) = operator.get("/ops/tenants/?q=delt").context["lines"]
    assert (line["tenant"].name, line["members"]) == ("Delta", 2)
    (units,) = [each for each in line["quotas"] if each["kind"] == QuotaKind.UNITS]
    assert (units["words"], units["counts"]) == (("0", "7"), (0, 7000))
    assert {each["tenant"].name for each in operator.get("/ops/tenants/").context["lines"]} == {
        "Delta",
        "Echo",
    }


def test_a_tenant_is_suspended_and_let_work_again_with_each_in_the_trail(operator: Client) -> None:
    tenant = people.make("Delta").tenant
    operator.post(f"/ops/tenants/{tenant.pk}/suspend/", {"why": ""})
    assert not suspended(tenant)
    operator.post(f"/ops/tenants/{tenant.pk}/suspend/", {"why": "unpaid"})
    assert suspended(tenant)
    shown = operator.get("/ops/tenants/").content.decode()
    assert "Delta is suspended." in shown
    assert f"/ops/tenants/{tenant.pk}/resume/" in shown
    operator.post(f"/ops/tenants/{tenant.pk}/resume/")
    assert not suspended(tenant)
    assert "Delta may work again." in operator.get("/ops/tenants/").content.decode()
    assert acts(tenant) == [
        ("tenant.suspend", "operator@example.org", "unpaid"),
        ("tenant.resume", "operator@example.org", "by an operator"),
    ]
