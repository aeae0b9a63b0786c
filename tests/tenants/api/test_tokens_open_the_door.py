"""A token opens its own tenant, as long as it lives, as far as its scopes and its bearer's role go."""

from datetime import timedelta

import pytest

from tenants.domain.roles import Role
from tenants.models import ApiToken
from tenants.services import members, tokens, walls
from tenants.services.actors import SYSTEM
from tests.tenants import people as world
from tests.tenants.people import ALL, Api, World, moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> World:
    return world.make("Delta")


def test_a_good_token_says_who_one_is(delta: World) -> None:
    answer = Api(delta.token()).ask("GET", "users/me")
    assert answer.status_code == 200
    assert answer.json()["tenant"] == delta.tenant.pk
    assert answer.json()["roles"] == [{"role": "owner", "project": None}]


def test_nobody_gets_a_401_that_says_how_to_sign_in(delta: World) -> None:
    answer = Api().ask("GET", "projects")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "not-authenticated"


def mistyped(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


@pytest.mark.parametrize("spoil", [mistyped, lambda t: t[:-8], lambda t: "gpb_live_x", lambda t: "ä" * 9])
def test_a_spoilt_token_is_refused(delta: World, spoil: object) -> None:
    assert Api(spoil(delta.token())).ask("GET", "projects").status_code == 401


def test_expired_revoked_and_unknown_tokens_get_the_same_body(delta: World) -> None:
    text = delta.token()
    bodies = []
    for change in ({"expires_at": moment()}, {"revoked_at": moment(), "expires_at": moment() + timedelta(1)}):
        with walls.as_tenant(delta.tenant.pk):
            ApiToken.objects.update(**change)
        answer = Api(text).ask("GET", "projects", X_Request_ID="r1")
        assert answer.status_code == 401
        bodies.append(answer.content)
    with walls.as_tenant(delta.tenant.pk):
        ApiToken.objects.all().delete()
    bodies.append(Api(text).ask("GET", "projects", X_Request_ID="r1").content)
    assert len(set(bodies)) == 1


def test_a_removed_members_token_is_dead_at_the_next_request(delta: World) -> None:
    text = delta.token(Role.MEMBER)
    assert Api(text).ask("GET", "projects").status_code == 200
    with walls.as_tenant(delta.tenant.pk):
        member = delta.membership(delta.person(Role.MEMBER))
        members.remove(member, grants=ALL, actor=SYSTEM, now=moment())
        assert not ApiToken.objects.filter(user=member.user, revoked_at=None).exists()
    assert Api(text).ask("GET", "projects").status_code == 401


def test_a_token_sees_nothing_of_another_tenant(delta: World) -> None:
    other = world.make("Other")
    answer = Api(delta.token()).ask("GET", f"projects/{other.root.pk}")
    missing = Api(delta.token()).ask("GET", "projects/prj_00000000000000000000000000")
    assert answer.status_code == missing.status_code == 404
    assert [p["id"] for p in Api(delta.token()).ask("GET", "projects").json()["items"]] == [delta.root.pk]


def test_a_token_reaches_no_further_than_its_scopes(delta: World) -> None:
    reads = Api(delta.token(scopes=("projects:read",)))
    assert reads.ask("GET", "projects").status_code == 200
    answer = reads.ask("POST", "projects", {"name": "x", "parent": delta.root.pk})
    assert answer.status_code == 403
    assert "projects:write" in answer.json()["detail"]


def test_a_token_confined_to_a_project_sees_only_what_is_below(delta: World) -> None:
    lab = delta.child("lab")
    below = delta.child("bench", lab)
    delta.child("elsewhere")
    seen = Api(delta.token(within=lab)).ask("GET", "projects").json()["items"]
    assert {p["id"] for p in seen} == {lab.pk, below.pk}


def test_a_token_confined_to_a_project_ends_none_that_reaches_further(delta: World) -> None:
    lab = delta.child("lab")
    below = delta.child("bench", lab)
    delta.token()
    confined = Api(delta.token(within=lab))
    delta.token(within=below)
    delta.token(within=delta.child("elsewhere"))
    with walls.as_tenant(delta.tenant.pk):
        placed = {token.project_id: token.pk for token in ApiToken.objects.all()}
    assert len(placed) == 4
    seen = {token["id"] for token in confined.ask("GET", "tokens").json()["items"]}
    assert seen == {placed[lab.pk], placed[below.pk]}
    for token in set(placed.values()) - seen:
        assert confined.ask("DELETE", f"tokens/{token}").status_code == 404
    assert confined.ask("DELETE", f"tokens/{placed[lab.pk]}").status_code == 204


def test_the_last_use_is_kept_to_the_minute(delta: World) -> None:
    text = delta.token()
    Api(text).ask("GET", "projects")
    with walls.as_tenant(delta.tenant.pk):
        first = ApiToken.objects.get().last_used_at
    assert first is not None
    Api(text).ask("GET", "projects")
    with walls.as_tenant(delta.tenant.pk):
        assert ApiToken.objects.get().last_used_at == first
        ApiToken.objects.update(last_used_at=first - timedelta(minutes=1))
    Api(text).ask("GET", "projects")
    with walls.as_tenant(delta.tenant.pk):
        assert ApiToken.objects.get().last_used_at >= first


def test_a_token_of_a_closed_service_account_is_dead(delta: World) -> None:
    from tenants.services import service_accounts

    robot = delta.machine()
    with walls.as_tenant(delta.tenant.pk):
        _, text = tokens.issue(
            tenant=delta.tenant,
            name="robot",
            scopes=["leases:read", "tenant:read"],
            expires_at=moment() + timedelta(days=1),
            actor=SYSTEM,
            now=moment(),
            service_account=robot,
        )
    assert Api(text).ask("GET", "users/me").json()["kind"] == "service_account"
    with walls.as_tenant(delta.tenant.pk):
        service_accounts.close(robot, grants=ALL, actor=SYSTEM, now=moment())
    assert Api(text).ask("GET", "users/me").status_code == 401


def test_letting_a_token_in_costs_one_query(delta: World, django_assert_num_queries: object) -> None:
    text = delta.token()
    Api(text).ask("GET", "users/me")
    client = Api(text)
    with django_assert_num_queries(5):  # savepoint, knock, release; and the wall closed before and after
        client.ask("GET", "users/me")
