"""Offerings, models and the fleet over the API."""

from typing import Any

import pytest
from django.test import Client

from billing.services.quotes.quota_room import count_within_quotas
from broker.models import Cluster, Node, Offering
from tenants.domain.roles import Role
from tenants.models import QuotaKind, User
from tests.broker.domain.fleet import MODELS
from tests.simulation import Simulation, TenantContext, offering
from tests.web.api.broker.conftest import Api


def test_an_offering_shows_how_many_are_free_and_how_many_the_quota_allows(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    kestrel.set_quota(QuotaKind.UNITS, 13_500)
    sim.create_lease(kestrel, offering("3g.40gb"))
    read = api.get(f"offerings/{offering('1g.10gb').pk}").body
    assert read["availability"]["free_now"] == 11  # 4 beside the 3g slice, 7 on the empty GPU
    assert read["availability"]["quota_left"] == 10
    assert api.get(f"offerings/{offering('1g.10gb').pk}/availability").body == read["availability"]
    assert (read["quota_units"], read["gpu_model"], read["price_class"]) == ("1.000", "H100-80GB", "on_demand")


def test_the_quota_left_counts_gpu_hours_at_the_shortest_duration(api: Api, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 200_000)  # thousandths of a GPU; the shortest lease has 60 s
    assert api.get(f"offerings/{offering('1g.10gb').pk}").body["availability"]["quota_left"] == 3


def test_the_quota_left_is_the_least_of_all_quotas() -> None:
    slice_of_gpu, per_hour = Offering(gpu_model_id="H100-80GB", milli_units=1_000), 2_000_000_000
    free = {QuotaKind.UNITS: 9_000, QuotaKind.GPU_SECONDS: 360_000, QuotaKind.BURN: 5 * per_hour - 1}
    assert count_within_quotas(free, slice_of_gpu, per_hour) == 4
    assert count_within_quotas(free, slice_of_gpu, None) == 6


def test_the_quota_of_the_requested_project_applies(api: Api, kestrel: TenantContext) -> None:
    team = kestrel.create_project("team")
    kestrel.set_quota(QuotaKind.UNITS, 3_000, team)
    page = api.get(f"offerings?project={team.pk}&profile=1g.10gb&price_class=spot").body
    assert [item["availability"]["quota_left"] for item in page["items"]] == [3]
    assert api.get("offerings?project=prj_none").status_code == 404


def test_a_project_member_sees_the_quota_of_that_project(kestrel: TenantContext) -> None:
    from datetime import timedelta

    from tenants.services import tokens
    from tenants.services.rls import tenant_scope
    from tests.simulation import NOW

    team = kestrel.create_project("team")
    kestrel.set_quota(QuotaKind.UNITS, 2_000, team)
    user = kestrel.create_member(Role.MEMBER, team)
    with tenant_scope(kestrel.tenant.pk):
        _, text = tokens.issue(
            tenant=kestrel.tenant,
            name="t",
            scopes=["offerings:read", "projects:read", "quotas:read"],
            expires_at=NOW + timedelta(days=1),
            actor=kestrel.actor,
            now=NOW,
            user_id=user.pk,
        )
    page = Api(text).get("offerings?profile=1g.10gb").body
    assert {item["availability"]["quota_left"] for item in page["items"]} == {2}


def test_without_a_quota_the_remaining_quota_is_null(api: Api, kestrel: TenantContext) -> None:
    from tenants.models import Quota
    from tenants.services.rls import tenant_scope

    with tenant_scope(kestrel.tenant.pk):
        Quota.objects.all().delete()
    assert api.get("offerings").body["items"][0]["availability"]["quota_left"] is None


def test_draft_offerings_are_hidden_and_retired_ones_stay_readable(api: Api) -> None:
    drafted, retired = offering("1g.10gb"), offering("3g.40gb")
    Offering.objects.filter(pk=drafted.pk).update(state="draft")
    Offering.objects.filter(pk=retired.pk).update(state="retired")
    assert api.get(f"offerings/{drafted.pk}").status_code == 404
    assert api.get(f"offerings/{retired.pk}").body["state"] == "retired"
    assert [o["id"] for o in api.get("offerings?state=retired").body["items"]] == [retired.pk]
    assert drafted.pk not in {o["id"] for o in api.get("offerings?limit=500").body["items"]}


def test_gpu_models_show_their_memory_grid_and_compute_slices(api: Api) -> None:
    model = api.get("gpu-models/H100-80GB").body
    assert (model["memory_slices"], model["compute_slices"]) == (8, 7)
    assert len(api.get("gpu-models?limit=500").body["items"]) == len(MODELS) + 1  # and CPU


@pytest.mark.parametrize("path", ["clusters", "nodes", "gpus"])
def test_the_fleet_is_hidden_from_tenants(api: Api, kestrel: TenantContext, path: str) -> None:
    assert api.get(path).status_code == 401  # a token is no operator's session
    client = Client()
    client.force_login(kestrel.create_member(Role.OWNER))
    assert client.get(f"/api/v1/{path}").status_code == 404


@pytest.fixture
def operator(kestrel: TenantContext, settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def test_operators_read_the_fleet(operator: Client) -> None:
    node = Node.objects.get()
    assert operator.get("/api/v1/clusters").json()["items"][0]["name"] == Cluster.objects.get().name
    assert operator.get(f"/api/v1/nodes/{node.pk}").json()["state"] == "ready"
    gpus = operator.get(f"/api/v1/gpus?node={node.pk}&sort=id").json()
    assert [gpu["index"] for gpu in gpus["items"]] == [0, 1]
    assert operator.get("/api/v1/gpus?health=unhealthy").json()["items"] == []
    assert operator.get("/api/v1/gpus?health=odd").status_code == 400
    assert operator.post("/api/v1/nodes", {}).status_code == 405


def test_an_operator_without_a_required_second_factor_gets_a_404(operator: Client, settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = True
    assert operator.get("/api/v1/gpus").status_code == 404


def test_an_offering_shows_the_cpu_memory_and_scratch_of_one_slice(api: Api) -> None:
    read = api.get(f"offerings/{offering('1g.10gb').pk}").body
    assert (read["cpu_milli"], read["host_memory_mib"], read["scratch_mib"]) == (1500, 12_288, 25_600)
