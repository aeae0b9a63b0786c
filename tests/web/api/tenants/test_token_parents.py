"""Minted tokens end with their parent; any token can describe itself."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from tenants.models import ApiToken
from tenants.services.rls import tenant_scope
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner, current_time

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


@pytest.fixture
def api(delta: TenantWithOwner) -> ApiClient:
    return ApiClient(delta.token())


def mint(api: ApiClient, *, days: float = 3, status: int = 201, **body: Any) -> Any:
    expires_at = (current_time() + timedelta(days=days)).isoformat()
    answer = api.send(
        "POST", "tokens", {"name": "ci", "scopes": ["tokens:write", "leases:read"], "expires_at": expires_at, **body}
    )
    assert answer.status_code == status, answer.content
    return answer.json()


def is_valid(minted: Any) -> bool:
    return bool(ApiClient(minted["token"]).send("GET", "tokens/current").status_code == 200)


def test_a_minted_token_names_its_parent(api: ApiClient) -> None:
    me = api.send("GET", "tokens/current").json()
    assert me["parent"] is None
    child = mint(api)
    assert child["parent"] == me["id"]
    assert api.send("GET", f"tokens/{child['id']}").json()["parent"] == me["id"]


def test_a_minted_token_cannot_outlive_its_parent(api: ApiClient) -> None:
    child = mint(api, days=3)
    problem = mint(ApiClient(child["token"]), days=4, status=400)
    assert problem["errors"][0]["field"] == "expires_at"
    assert child["expires_at"][:16] in problem["fix"]["text"]
    grandchild = mint(ApiClient(child["token"]), days=2)
    assert datetime.fromisoformat(grandchild["expires_at"]) <= datetime.fromisoformat(child["expires_at"])


def test_a_revoked_token_takes_all_its_descendants_with_it(api: ApiClient) -> None:
    child = mint(api)
    grandchild, other = mint(ApiClient(child["token"]), days=2), mint(api)
    assert is_valid(grandchild)
    assert api.send("DELETE", f"tokens/{child['id']}").status_code == 204
    assert [is_valid(each) for each in (child, grandchild, other)] == [False, False, True]
    revoked = api.send("GET", "audit-events?action=token.revoke").json()["items"]
    assert {each["subject"]["id"] for each in revoked} == {child["id"], grandchild["id"]}


def test_a_token_of_a_service_account_dies_with_the_token_that_minted_it(
    delta: TenantWithOwner, api: ApiClient
) -> None:
    robot = delta.create_service_account("robot")
    child = mint(api)
    made = mint(api, service_account=robot.pk)
    assert is_valid(made)
    parent = api.send("GET", "tokens/current").json()["id"]
    api.send("DELETE", f"tokens/{parent}")
    assert [is_valid(made), is_valid(child)] == [False, False]


def test_a_dry_run_of_a_revocation_ends_nothing(api: ApiClient) -> None:
    child = mint(api)
    assert api.send("DELETE", f"tokens/{child['id']}?dry_run=true").status_code == 200
    assert is_valid(child)


def test_a_token_created_in_the_portal_has_no_parent(delta: TenantWithOwner) -> None:
    client = Client()
    client.force_login(delta.owner)
    body = {
        "name": "x",
        "scopes": ["leases:read"],
        "expires_at": (current_time() + timedelta(days=300)).isoformat(),
    }
    answer = client.post(
        "/api/v1/tokens", body, content_type="application/json", headers={"Idempotency-Key": "portal-1"}
    )
    assert answer.status_code == 201
    with tenant_scope(delta.tenant.pk):
        assert ApiToken.objects.get().parent_id is None


@pytest.mark.parametrize("scope", ["leases:write", "audit:read", "tokens:read", "tenant:admin"])
def test_any_token_can_ask_what_it_is(delta: TenantWithOwner, scope: str) -> None:
    lab = delta.create_project("lab")
    answer = ApiClient(delta.token(scopes=(scope,), within=lab)).send("GET", "tokens/current")
    assert answer.status_code == 200
    said = answer.json()
    assert (said["scopes"], said["project"], said["parent"], said["cap"]) == ([scope], lab.pk, None, None)
    assert said["id"].startswith("tok_")
    assert said["name"] == "test owner"
    assert datetime.fromisoformat(said["expires_at"]) > current_time()
    assert "token" not in said


def test_a_token_shows_its_cap(api: ApiClient) -> None:
    child = mint(api, cap={"daily": "5.00"}, scopes=["leases:write"])
    assert ApiClient(child["token"]).send("GET", "tokens/current").json()["cap"]["daily"]["amount"].startswith("5.00")


def test_a_session_has_no_token(delta: TenantWithOwner) -> None:
    client = Client()
    client.force_login(delta.owner)
    answer = client.get("/api/v1/tokens/current")
    assert answer.status_code == 404
    assert answer.json()["fix"]["href"] == "/api/v1/users/me"
