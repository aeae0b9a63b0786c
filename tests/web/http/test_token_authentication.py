"""A token works for its tenant, lifetime, scopes and role only."""

from datetime import timedelta

import pytest

from tenants.domain.roles import Role
from tenants.models import ApiToken
from tenants.services import members, rls, tokens
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ALL_ROLES, ApiClient, TenantWithOwner, current_time

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def test_a_valid_token_identifies_its_user_tenant_and_roles(delta: TenantWithOwner) -> None:
    answer = ApiClient(delta.token()).send("GET", "users/me")
    assert answer.status_code == 200
    assert answer.json()["tenant"] == delta.tenant.pk
    assert answer.json()["roles"] == [{"role": "owner", "project": None}]


def test_a_request_without_a_token_gets_a_401_with_www_authenticate(delta: TenantWithOwner) -> None:
    answer = ApiClient().send("GET", "projects")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "not-authenticated"


def mistyped(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


@pytest.mark.parametrize("spoil", [mistyped, lambda t: t[:-8], lambda t: "gpb_live_x", lambda t: "ä" * 9])
def test_an_altered_token_is_refused(delta: TenantWithOwner, spoil: object) -> None:
    assert ApiClient(spoil(delta.token())).send("GET", "projects").status_code == 401


def test_expired_revoked_and_unknown_tokens_get_the_same_body(delta: TenantWithOwner) -> None:
    text = delta.token()
    bodies = []
    for change in (
        {"expires_at": current_time()},
        {"revoked_at": current_time(), "expires_at": current_time() + timedelta(1)},
    ):
        with rls.tenant_scope(delta.tenant.pk):
            ApiToken.objects.update(**change)
        answer = ApiClient(text).send("GET", "projects", X_Request_ID="r1")
        assert answer.status_code == 401
        bodies.append(answer.content)
    with rls.tenant_scope(delta.tenant.pk):
        ApiToken.objects.all().delete()
    bodies.append(ApiClient(text).send("GET", "projects", X_Request_ID="r1").content)
    assert len(set(bodies)) == 1


def test_a_removed_members_token_is_invalid_at_the_next_request(delta: TenantWithOwner) -> None:
    text = delta.token(Role.MEMBER)
    assert ApiClient(text).send("GET", "projects").status_code == 200
    with rls.tenant_scope(delta.tenant.pk):
        member = delta.membership(delta.user_with_role(Role.MEMBER))
        members.remove(member, grants=ALL_ROLES, actor=SYSTEM, now=current_time())
        assert not ApiToken.objects.filter(user=member.user, revoked_at=None).exists()
    assert ApiClient(text).send("GET", "projects").status_code == 401


def test_a_token_reads_no_projects_of_another_tenant(delta: TenantWithOwner) -> None:
    other = tenant_setup.create_tenant_with_owner("Other")
    answer = ApiClient(delta.token()).send("GET", f"projects/{other.root.pk}")
    missing = ApiClient(delta.token()).send("GET", "projects/prj_00000000000000000000000000")
    assert answer.status_code == missing.status_code == 404
    assert [p["id"] for p in ApiClient(delta.token()).send("GET", "projects").json()["items"]] == [delta.root.pk]


def test_a_token_is_limited_to_its_scopes(delta: TenantWithOwner) -> None:
    reads = ApiClient(delta.token(scopes=("projects:read",)))
    assert reads.send("GET", "projects").status_code == 200
    answer = reads.send("POST", "projects", {"name": "x", "parent": delta.root.pk})
    assert answer.status_code == 403
    assert "projects:write" in answer.json()["detail"]


def test_a_token_limited_to_a_project_sees_only_its_subtree(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    below = delta.create_project("bench", lab)
    delta.create_project("elsewhere")
    seen = ApiClient(delta.token(within=lab)).send("GET", "projects").json()["items"]
    assert {p["id"] for p in seen} == {lab.pk, below.pk}


def test_a_token_limited_to_a_project_cannot_revoke_tokens_with_more_rights(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    below = delta.create_project("bench", lab)
    delta.token()
    confined = ApiClient(delta.token(within=lab))
    delta.token(within=below)
    delta.token(within=delta.create_project("elsewhere"))
    with rls.tenant_scope(delta.tenant.pk):
        placed = {token.project_id: token.pk for token in ApiToken.objects.all()}
    assert len(placed) == 4
    seen = {token["id"] for token in confined.send("GET", "tokens").json()["items"]}
    assert seen == {placed[lab.pk], placed[below.pk]}
    for token in set(placed.values()) - seen:
        assert confined.send("DELETE", f"tokens/{token}").status_code == 404
    assert confined.send("DELETE", f"tokens/{placed[lab.pk]}").status_code == 204


def test_the_last_use_of_a_token_is_updated_at_most_once_a_minute(delta: TenantWithOwner) -> None:
    text = delta.token()
    ApiClient(text).send("GET", "projects")
    with rls.tenant_scope(delta.tenant.pk):
        first = ApiToken.objects.get().last_used_at
    assert first is not None
    ApiClient(text).send("GET", "projects")
    with rls.tenant_scope(delta.tenant.pk):
        assert ApiToken.objects.get().last_used_at == first
        ApiToken.objects.update(last_used_at=first - timedelta(minutes=1))
    ApiClient(text).send("GET", "projects")
    with rls.tenant_scope(delta.tenant.pk):
        assert ApiToken.objects.get().last_used_at >= first


def test_a_token_of_a_closed_service_account_is_invalid(delta: TenantWithOwner) -> None:
    from tenants.services import service_accounts

    robot = delta.create_service_account()
    with rls.tenant_scope(delta.tenant.pk):
        _, text = tokens.issue(
            tenant=delta.tenant,
            name="robot",
            scopes=["leases:read", "tenant:read"],
            expires_at=current_time() + timedelta(days=1),
            actor=SYSTEM,
            now=current_time(),
            service_account=robot,
        )
    assert ApiClient(text).send("GET", "users/me").json()["kind"] == "service_account"
    with rls.tenant_scope(delta.tenant.pk):
        service_accounts.close(robot, grants=ALL_ROLES, actor=SYSTEM, now=current_time())
    assert ApiClient(text).send("GET", "users/me").status_code == 401


def test_token_authentication_needs_one_query(delta: TenantWithOwner, django_assert_num_queries: object) -> None:
    text = delta.token()
    ApiClient(text).send("GET", "users/me")
    client = ApiClient(text)
    with django_assert_num_queries(5):  # savepoint, authentication, release; and the scope closed before and after
        client.send("GET", "users/me")
