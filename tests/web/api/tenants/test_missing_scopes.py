"""A token's missing scope is a 403 of its own that names the scope."""

from datetime import timedelta
from typing import Any

import pytest

from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner, current_time

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def missing_scopes(answer: Any) -> list[str]:
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (403, "missing-scope"), problem
    assert problem["title"] == "The token lacks a scope"
    assert all(scope in problem["detail"] and scope in problem["fix"]["text"] for scope in problem["scopes"])
    return list(problem["scopes"])


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "leases", "leases:read"),
        ("GET", "leases/lse_x", "leases:read"),
        ("POST", "leases", "leases:write"),
        ("DELETE", "leases/lse_x", "leases:write"),
        ("GET", "invoices", "billing:read"),
        ("GET", "users/me", "tenant:read"),
        ("GET", "events", "leases:read"),
        ("POST", "projects", "projects:write"),
    ],
)
def test_the_scope_of_an_operation_is_named(delta: TenantWithOwner, method: str, path: str, scope: str) -> None:
    api = ApiClient(delta.token(scopes=("tokens:read",)))
    assert missing_scopes(api.send(method, path, {} if method == "POST" else None)) == [scope]


def token_body(**body: Any) -> dict[str, Any]:
    expires_at = (current_time() + timedelta(days=1)).isoformat()
    return {"name": "x", "scopes": ["tokens:write"], "expires_at": expires_at, **body}


@pytest.mark.parametrize("scope", ["leases:write", "billing:read", "tenant:admin"])
def test_the_scope_that_a_minted_token_would_exceed_is_named(delta: TenantWithOwner, scope: str) -> None:
    api = ApiClient(delta.token(scopes=("tokens:write",)))
    assert missing_scopes(api.send("POST", "tokens", token_body(scopes=[scope]))) == [scope]


def test_the_scopes_to_mint_for_a_service_account_are_named(delta: TenantWithOwner) -> None:
    robot = delta.create_service_account("robot").pk
    for account in (robot, "sva_unknown"):
        api = ApiClient(delta.token(scopes=("tokens:write",)))
        assert missing_scopes(api.send("POST", "tokens", token_body(service_account=account))) == ["members:read"]
    api = ApiClient(delta.token(scopes=("tokens:write", "members:read")))
    assert "members:write" in missing_scopes(api.send("POST", "tokens", token_body(service_account=robot)))


def test_the_scopes_to_give_a_role_are_named(delta: TenantWithOwner) -> None:
    api = ApiClient(delta.token(scopes=("members:write",)))
    named = missing_scopes(api.send("POST", "service-accounts", {"name": "x", "role": "member"}))
    assert {"leases:write", "projects:read"} <= set(named)


def test_a_role_that_does_not_suffice_is_no_missing_scope(delta: TenantWithOwner) -> None:
    answer = ApiClient(delta.token(tenant_setup.Role.VIEWER)).send("POST", "projects", {"name": "x", "parent": "p"})
    assert (answer.status_code, answer.json()["code"]) == (403, "policy-denied")
