"""GPU-hour quotas in a new month, before their first use."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from ports import clock
from tenants.models import Quota, QuotaKind, User
from tenants.services import quotas, rls
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner, current_time

pytestmark = pytest.mark.django_db
HOUR = 3600 * 1000


@pytest.fixture
def delta() -> TenantWithOwner:
    """Create a tenant that used all its hours of last month."""
    delta = tenant_setup.create_tenant_with_owner("Delta")
    last_month = clock.month_start(clock.month_start(current_time()) - timedelta(days=1))
    with rls.tenant_scope(delta.tenant.pk):
        quotas.set_limit(
            project=delta.root,
            kind=QuotaKind.GPU_SECONDS,
            limit=10 * HOUR,
            actor=tenant_setup.SYSTEM,
            now=last_month,
        )
        Quota.objects.filter(kind=QuotaKind.GPU_SECONDS).update(used=10 * HOUR)
    return delta


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def gpu_hour_quota(quotas_told: list[dict[str, Any]]) -> dict[str, Any]:
    return next(quota for quota in quotas_told if quota["kind"] == "gpu_seconds")


def test_the_whole_gpu_hour_quota_is_free_in_a_new_month(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        (hours,) = [
            r
            for r in quotas.remaining_quotas([delta.root], now=current_time())[delta.root.pk]
            if r.kind == "gpu_seconds"
        ]
        assert (hours.used, hours.free) == (0, 10 * HOUR)
        month_before = clock.month_start(current_time()) - timedelta(days=1)
        (hours,) = [
            r for r in quotas.remaining_quotas([delta.root], now=month_before)[delta.root.pk] if r.kind == "gpu_seconds"
        ]
        assert (hours.used, hours.free) == (10 * HOUR, 0)


def test_a_quota_window_ahead_of_the_reader_shows_its_own_count(delta: TenantWithOwner) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        quota = Quota.objects.get(kind=QuotaKind.GPU_SECONDS)
    earlier = quota.window_start - timedelta(seconds=1)
    assert (quota.used_at(earlier), quota.window_at(earlier)) == (10 * HOUR, quota.window_start)
    assert Quota(kind=QuotaKind.GPU_SECONDS, used=5).used_at(current_time()) == 0
    units = Quota(kind=QuotaKind.UNITS, used=5)
    assert (units.used_at(current_time()), units.window_at(current_time())) == (5, None)


def test_the_api_shows_the_quota_of_the_new_month(delta: TenantWithOwner) -> None:
    api: Any = ApiClient(delta.token())
    usage = gpu_hour_quota(api.send("GET", f"quota-usage?project={delta.root.pk}").json()["items"][0]["quotas"])
    assert (usage["used"], usage["remaining"]) == (0, 10 * HOUR)
    quota = gpu_hour_quota(api.send("GET", "quotas").json()["items"])
    assert quota["used"] == 0
    assert quota["window_start"] == clock.month_start(current_time()).isoformat().replace("+00:00", "Z")


def test_operators_see_the_quota_of_the_new_month(delta: TenantWithOwner, operator: Client) -> None:
    (tenant,) = operator.get("/api/v1/ops/tenants").json()["items"]
    assert gpu_hour_quota(tenant["quotas"])["used"] == 0
    (line,) = operator.get("/ops/tenants/").context["listing"].rows
    [hours] = [quota for quota in line["quotas"] if quota.kind == "gpu_seconds"]
    assert (hours.used_count, hours.limit_count) == (0, 10 * HOUR)


def test_the_projects_page_shows_the_quota_of_the_new_month(delta: TenantWithOwner) -> None:
    client = Client()
    client.force_login(delta.owner)
    nodes = client.get("/projects/").context["nodes"]
    assert gpu_hour_quota(nodes[0].quotas_here)["counts"] == (0, 10 * HOUR)
