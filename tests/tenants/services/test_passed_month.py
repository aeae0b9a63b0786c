"""Until somebody is granted hours in a new month, a quota's row tells of the last one; people are told of theirs."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tenants.models import Quota, QuotaKind, User
from tenants.services import quotas, walls
from tenants.services.quotas import window_of
from tests.tenants import people
from tests.tenants.people import Api, World, moment

pytestmark = pytest.mark.django_db
HOUR = 3600 * 1000


@pytest.fixture
def delta() -> World:
    """A tenant whose hours of last month are all used up, with nothing asked for in this one."""
    delta = people.make("Delta")
    last_month = window_of(window_of(moment()) - timedelta(days=1))
    with walls.as_tenant(delta.tenant.pk):
        quotas.set_limit(
            project=delta.root,
            kind=QuotaKind.GPU_SECONDS,
            limit=10 * HOUR,
            actor=people.SYSTEM,
            now=last_month,
        )
        Quota.objects.filter(kind=QuotaKind.GPU_SECONDS).update(used=10 * HOUR)
    return delta


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def of_hours(quotas_told: list[dict[str, Any]]) -> dict[str, Any]:
    return next(quota for quota in quotas_told if quota["kind"] == "gpu_seconds")


def test_all_of_it_is_free_in_the_new_month(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk):
        (hours,) = [
            r for r in quotas.room([delta.root], now=moment())[delta.root.pk] if r.kind == "gpu_seconds"
        ]
        assert (hours.used, hours.free) == (0, 10 * HOUR)
        month_before = window_of(moment()) - timedelta(days=1)
        (hours,) = [
            r for r in quotas.room([delta.root], now=month_before)[delta.root.pk] if r.kind == "gpu_seconds"
        ]
        assert (hours.used, hours.free) == (10 * HOUR, 0)


def test_a_row_that_is_ahead_of_who_reads_it_tells_what_it_counts(delta: World) -> None:
    with walls.as_tenant(delta.tenant.pk):
        quota = Quota.objects.get(kind=QuotaKind.GPU_SECONDS)
    earlier = quota.window_start - timedelta(seconds=1)
    assert (quota.used_at(earlier), quota.window_at(earlier)) == (10 * HOUR, quota.window_start)
    assert Quota(kind=QuotaKind.GPU_SECONDS, used=5).used_at(moment()) == 0
    units = Quota(kind=QuotaKind.UNITS, used=5)
    assert (units.used_at(moment()), units.window_at(moment())) == (5, None)


def test_the_api_tells_the_new_month(delta: World) -> None:
    api: Any = Api(delta.token())
    usage = of_hours(api.ask("GET", f"quota-usage?project={delta.root.pk}").json()["items"][0]["quotas"])
    assert (usage["used"], usage["free"]) == (0, 10 * HOUR)
    quota = of_hours(api.ask("GET", "quotas").json()["items"])
    assert quota["used"] == 0
    assert quota["window_start"] == window_of(moment()).isoformat().replace("+00:00", "Z")


def test_operators_are_told_it_too(delta: World, operator: Client) -> None:
    (tenant,) = operator.get("/api/v1/ops/tenants").json()["items"]
    assert of_hours(tenant["quotas"])["used"] == 0
    (line,) = operator.get("/ops/tenants/").context["lines"]
    assert of_hours(line["quotas"])["counts"] == (0, 10 * HOUR)


def test_the_projects_page_tells_it_too(delta: World) -> None:
    client = Client()
    client.force_login(delta.owner)
    nodes = client.get("/projects/").context["nodes"]
    assert of_hours(nodes[0].quotas_here)["counts"] == (0, 10 * HOUR)
