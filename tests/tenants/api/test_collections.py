"""Projects, people, tokens and quotas over the API: what changes, who may, what is refused."""

from datetime import timedelta

import pytest

from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, Quota
from tenants.services import walls
from tests.tenants import people as world
from tests.tenants.people import Api, World, moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> World:
    return world.make("Delta")


@pytest.fixture
def api(delta: World) -> Api:
    return Api(delta.token())


def soon() -> str:
    return (moment() + timedelta(days=3)).isoformat()


def test_a_change_needs_the_newest_etag(delta: World, api: Api) -> None:
    address = f"projects/{delta.root.pk}"
    tag = api.ask("GET", address)["ETag"]
    assert api.ask("PATCH", address, {"name": "x"}).status_code == 428
    changed = api.ask("PATCH", address, {"name": "x"}, If_Match=tag)
    assert changed.status_code == 200
    assert changed["ETag"] != tag
    stale = api.ask("PATCH", address, {"name": "y"}, If_Match=tag)
    assert stale.status_code == 412
    assert stale.json()["fix"]["text"]


def test_a_dry_run_answers_and_changes_nothing(delta: World, api: Api) -> None:
    answer = api.ask("POST", "projects?dry_run=true", {"name": "lab", "parent": delta.root.pk})
    assert answer.status_code == 200
    assert answer["Dry-Run"] == "true"
    assert answer.json()["name"] == "lab"
    assert [p["name"] for p in api.ask("GET", "projects").json()["items"]] == ["Delta"]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x" * 121},
        {"name": "a\x07b"},
        {"name": "a\u202eb"},
        {"name": "\ud800"},
        {"name": ""},
        {"name": 7},
        {"name": None},
        {"name": ["a"]},
        {"name": "x", "tenant_id": "ten_x"},
        {"name": "x", "version": 10**30},
        {},
    ],
)
def test_a_name_that_cannot_be_is_refused(delta: World, api: Api, body: dict[str, object]) -> None:
    answer = api.ask("POST", "projects", {"parent": delta.root.pk, **body})
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "{",
        '{"name": NaN}',
        '{"name": -Infinity}',
        "[" * 5000,
        '{"a":' * 21 + "1" + "}" * 21,
        '{"a": 1, "a": 2}',
        '{"a": 9223372036854775808}',
        '{"a": "\\u0000"}',
        '{"a": "\\ud800"}',
        "\xff",
    ],
)
def test_malformed_json_is_refused_as_such(delta: World, body: str) -> None:
    answer = Api(delta.token()).generic(
        "POST",
        "/api/v1/projects",
        body.encode("latin-1"),
        content_type="application/json",
        headers={"Idempotency-Key": "k1"},
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")
    assert answer.json()["fix"]["text"]


def test_a_body_of_ten_megabytes_is_refused_unread(delta: World, api: Api) -> None:
    answer = api.ask("POST", "projects", {"name": "x" * 10_000_000, "parent": delta.root.pk})
    assert answer.status_code == 413


def test_a_body_of_no_declared_length_is_refused_and_not_taken_for_an_empty_one(
    delta: World, api: Api
) -> None:
    body = {"name": "x", "parent": delta.root.pk}
    answer = api.ask("POST", "projects", body, Transfer_Encoding="chunked")
    assert (answer.status_code, answer.json()["code"]) == (411, "length-required")
    assert "Content-Length" in answer.json()["fix"]["text"]


def test_a_foreign_parent_is_as_missing_as_none_at_all(delta: World, api: Api) -> None:
    other = world.make("Other")
    bodies = [
        api.ask("POST", "projects", {"name": "x", "parent": parent}, X_Request_ID="r").content
        for parent in (other.root.pk, "prj_00000000000000000000000000")
    ]
    assert bodies[0] == bodies[1]


def test_the_tree_keeps_its_rules(delta: World, api: Api) -> None:
    lab = api.ask("POST", "projects", {"name": "lab", "parent": delta.root.pk}).json()
    assert lab["path"] == [delta.root.pk, lab["id"]]
    assert api.ask("POST", "projects", {"name": "lab", "parent": delta.root.pk}).status_code == 409
    bench = api.ask("POST", "projects", {"name": "bench", "parent": lab["id"]}).json()
    assert api.ask("POST", f"projects/{lab['id']}/archive").json()["code"] == "project-tree"
    assert api.ask("POST", f"projects/{delta.root.pk}/archive").json()["code"] == "project-tree"
    assert api.ask("POST", f"projects/{bench['id']}/archive").json()["archived_at"]
    assert api.ask("POST", "projects", {"name": "x", "parent": bench["id"]}).status_code == 404
    again = api.ask("PATCH", f"projects/{lab['id']}", {"name": "lab2"}, If_Match="*")
    assert again.json()["name"] == "lab2"


def test_projects_go_eight_deep_and_no_further(delta: World, api: Api) -> None:
    parent = delta.root.pk
    for depth in range(2, 10):
        answer = api.ask("POST", "projects", {"name": f"d{depth}", "parent": parent})
        parent = answer.json().get("id")
    assert answer.status_code == 409


def test_the_last_owner_cannot_go(delta: World, api: Api) -> None:
    me = delta.membership(delta.owner)
    for answer in (
        api.ask("DELETE", f"members/{me.pk}", If_Match="*"),
        api.ask("PATCH", f"members/{me.pk}", {"role": "viewer"}, If_Match="*"),
    ):
        assert answer.status_code == 409
        assert answer.json()["code"] == "last-owner"


def test_an_admin_cannot_make_or_unmake_owners(delta: World) -> None:
    admin = Api(delta.token(Role.ADMIN))
    owner, member = delta.membership(delta.owner), delta.membership(delta.person(Role.MEMBER))
    assert admin.ask("DELETE", f"members/{owner.pk}", If_Match="*").status_code == 403
    up = admin.ask("PATCH", f"members/{member.pk}", {"role": "owner"}, If_Match="*")
    assert up.status_code == 403
    down = admin.ask("PATCH", f"members/{member.pk}", {"role": "viewer"}, If_Match="*")
    assert down.json()["role"] == "viewer"
    invited = admin.ask("POST", "invitations", {"email": "x@example.org", "role": "owner"})
    assert invited.status_code == 403


def test_an_admin_gives_no_machine_more_than_they_have(delta: World) -> None:
    admin, robot = Api(delta.token(Role.ADMIN)), delta.machine()
    made = admin.ask("POST", "service-accounts", {"name": "ci", "role": "owner"})
    changed = admin.ask("PATCH", f"service-accounts/{robot.pk}", {"role": "owner"}, If_Match="*")
    ended = admin.ask("DELETE", f"service-accounts/{delta.machine('top', Role.OWNER).pk}", If_Match="*")
    assert [answer.status_code for answer in (made, changed, ended)] == [403, 403, 403]


def test_a_role_on_a_project_reaches_its_subtree_only(delta: World) -> None:
    lab = delta.child("lab")
    below = delta.child("bench", lab)
    lead = Api(delta.token(Role.ADMIN, project=lab))
    assert {p["id"] for p in lead.ask("GET", "projects").json()["items"]} == {lab.pk, below.pk}
    made = lead.ask("POST", "projects", {"name": "new", "parent": below.pk})
    assert made.status_code == 201
    assert lead.ask("GET", f"projects/{delta.root.pk}").status_code == 404
    assert lead.ask("POST", "projects", {"name": "x", "parent": delta.root.pk}).status_code == 404
    assert lead.ask("GET", "audit-events").status_code == 403
    elsewhere = lead.ask("POST", "invitations", {"email": "x@example.org", "role": "viewer"})
    assert elsewhere.status_code == 403
    here = lead.ask("POST", "invitations", {"email": "x@example.org", "role": "viewer", "project": lab.pk})
    assert here.status_code == 201


def test_who_leads_a_project_sets_ceilings_below_it_and_not_its_own(delta: World, api: Api) -> None:
    lab = delta.child("lab")
    below = delta.child("bench", lab)
    lead = Api(delta.token(Role.OWNER, project=lab))
    own = api.ask("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 4000}).json()
    for refused in (
        lead.ask("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 9000}),
        lead.ask("POST", "quotas", {"project": lab.pk, "kind": "gpu_seconds", "limit": 9000}),
        lead.ask("PATCH", f"quotas/{own['id']}", {"limit": 9000}, If_Match="*"),
        lead.ask("DELETE", f"quotas/{own['id']}", If_Match="*"),
    ):
        assert refused.status_code == 403
        assert "above" in refused.json()["detail"] + refused.json()["fix"]["text"]
    assert lead.ask("GET", f"quotas/{own['id']}").json()["limit"] == 4000
    made = lead.ask("POST", "quotas", {"project": below.pk, "kind": "units", "limit": 9000})
    assert made.status_code == 201
    assert lead.ask("DELETE", f"quotas/{made.json()['id']}", If_Match="*").status_code == 204


def test_somebody_who_leaves_the_tenant_may_do_so_themselves(delta: World) -> None:
    viewer = Api(delta.token(Role.VIEWER))
    mine = delta.membership(delta.person(Role.VIEWER))
    theirs = delta.membership(delta.person(Role.MEMBER))
    assert viewer.ask("DELETE", f"members/{theirs.pk}", If_Match="*").status_code == 403
    assert viewer.ask("DELETE", f"members/{mine.pk}", If_Match="*").status_code == 204
    assert viewer.ask("GET", "members").status_code == 401


def test_an_invitation_shows_its_link_once(delta: World, api: Api) -> None:
    made = api.ask("POST", "invitations", {"email": "New@Example.org", "role": "member"}).json()
    assert "/join/" in made["url"]
    assert made["email"] == "new@example.org"
    assert "url" not in api.ask("GET", f"invitations/{made['id']}").json()
    assert api.ask("DELETE", f"invitations/{made['id']}").status_code == 204
    assert api.ask("GET", f"invitations/{made['id']}").json()["revoked_at"]


def test_tokens_of_others_are_seen_by_those_who_lead(delta: World, api: Api) -> None:
    body = {"name": "ci", "scopes": ["leases:read"], "expires_at": soon()}
    viewer = Api(delta.token(Role.VIEWER))
    made = viewer.ask("POST", "tokens", body).json()
    assert api.ask("GET", f"tokens/{made['id']}").status_code == 200
    mine = api.ask("POST", "tokens", body).json()
    assert viewer.ask("GET", f"tokens/{mine['id']}").status_code == 404
    assert viewer.ask("DELETE", f"tokens/{mine['id']}").status_code == 404
    assert api.ask("DELETE", f"tokens/{made['id']}").status_code == 204
    assert Api(made["token"]).ask("GET", "leases").status_code in (401, 404)


@pytest.mark.parametrize(
    "change",
    [
        {"scopes": []},
        {"scopes": ["everything"]},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "2999-01-01T00:00:00Z"},
        {"expires_at": "soon"},
        {"project": "prj_x"},
        {"service_account": "sva_x"},
    ],
)
def test_a_token_that_cannot_be_is_refused(delta: World, api: Api, change: dict[str, object]) -> None:
    body = {"name": "ci", "scopes": ["leases:read"], "expires_at": soon(), **change}
    assert api.ask("POST", "tokens", body).status_code in (400, 404)


def test_a_token_makes_no_token_that_reaches_further(delta: World) -> None:
    lab = delta.child("lab")
    narrow = Api(delta.token(scopes=("tokens:write", "leases:write", "projects:read"), within=lab))
    body = {"name": "ci", "expires_at": soon()}
    for change in (
        {"scopes": ["tenant:admin"], "project": lab.pk},
        {"scopes": ["billing:read"], "project": lab.pk},
        {"scopes": ["leases:read"]},
    ):
        assert narrow.ask("POST", "tokens", {**body, **change}).status_code == 403
    good = narrow.ask("POST", "tokens", {**body, "scopes": ["leases:read"], "project": lab.pk})
    assert good.status_code == 201


def test_a_service_account_works_with_its_own_token(delta: World, api: Api) -> None:
    robot = api.ask("POST", "service-accounts", {"name": "ci", "role": "member"}).json()
    assert api.ask("POST", "service-accounts", {"name": "ci", "role": "member"}).status_code == 409
    body = {"name": "t", "scopes": ["leases:write", "tokens:write"], "expires_at": soon()}
    made = api.ask("POST", "tokens", {**body, "service_account": robot["id"]}).json()
    machine = Api(made["token"])
    own = machine.ask("POST", "tokens", {**body, "scopes": ["leases:read"]}).json()
    assert own["service_account"] == robot["id"]
    makers = [each["made_by"] for each in (robot, made, own)]
    assert makers[0] == makers[1] == {"id": delta.owner.pk, "label": delta.owner.email}
    assert makers[2] == {"id": robot["id"], "label": "ci"}
    listed = api.ask("GET", f"tokens?made_by={robot['id']}").json()["items"]
    assert [token["id"] for token in listed] == [own["id"]]
    changed = api.ask("PATCH", f"service-accounts/{robot['id']}", {"role": "viewer"}, If_Match="*")
    assert changed.json()["role"] == "viewer"
    assert api.ask("DELETE", f"service-accounts/{robot['id']}", If_Match="*").status_code == 204
    assert machine.ask("GET", "users/me").status_code == 401


def test_quotas_below_the_root_are_the_tenants_own(delta: World, api: Api) -> None:
    lab = delta.child("lab")
    made = api.ask("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 4000})
    assert made.status_code == 201
    changed = api.ask("PATCH", f"quotas/{made.json()['id']}", {"limit": 2000}, If_Match=made["ETag"])
    assert changed.json()["limit"] == 2000
    root = api.ask("GET", f"quotas?project={delta.root.pk}").json()["items"][0]
    assert api.ask("PATCH", f"quotas/{root['id']}", {"limit": 1}, If_Match="*").status_code == 403
    assert api.ask("DELETE", f"quotas/{root['id']}", If_Match="*").status_code == 403
    usage = api.ask("GET", f"quota-usage?project={lab.pk}").json()["items"][0]["quotas"]
    assert usage[0]["free"] == 2000
    assert usage[0]["set_on"] == lab.pk
    assert api.ask("DELETE", f"quotas/{made.json()['id']}", If_Match="*").status_code == 204
    usage = api.ask("GET", f"quota-usage?project={lab.pk}").json()["items"][0]["quotas"]
    assert usage[0]["set_on"] == delta.root.pk


@pytest.mark.parametrize("limit", [-1, 2**63, 1e300, "many", None, True, 1.5])
def test_a_limit_that_cannot_be_is_refused(delta: World, api: Api, limit: object) -> None:
    body = {"project": delta.root.pk, "kind": "units", "limit": limit}
    assert api.ask("POST", "quotas", body).status_code == 400


def test_a_quota_may_be_set_below_what_is_in_use(delta: World, api: Api) -> None:
    lab = delta.child("lab")
    made = api.ask("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 4000}).json()
    with walls.as_tenant(delta.tenant.pk):
        Quota.objects.filter(pk=made["id"]).update(used=3000)
    changed = api.ask("PATCH", f"quotas/{made['id']}", {"limit": 1000}, If_Match="*").json()
    assert (changed["limit"], changed["used"]) == (1000, 3000)


def test_the_tenant_is_renamed_and_moved_by_its_owner(delta: World, api: Api) -> None:
    address = f"tenants/{delta.tenant.pk}"
    changed = api.ask("PATCH", address, {"name": "Delta 2", "time_zone": "Asia/Tokyo"}, If_Match="*")
    assert changed.json()["time_zone"] == "Asia/Tokyo"
    assert api.ask("PATCH", address, {"time_zone": "Mars/Base"}, If_Match="*").status_code == 400
    admin = Api(delta.token(Role.ADMIN)).ask("PATCH", address, {"name": "x"}, If_Match="*")
    assert admin.status_code == 403
    assert "owner" in admin.json()["detail"]


def test_a_suspended_tenant_looks_and_changes_nothing(delta: World, api: Api) -> None:
    from tenants.services import tenants
    from tenants.services.actors import SYSTEM

    with walls.as_tenant(delta.tenant.pk):
        tenants.suspend(delta.tenant, actor=SYSTEM, now=moment(), why="unpaid")
    assert api.ask("GET", "projects").status_code == 200
    answer = api.ask("POST", "projects", {"name": "x", "parent": delta.root.pk})
    assert (answer.status_code, answer.json()["code"]) == (403, "tenant-suspended")


def test_every_change_is_in_the_audit_trail_with_its_actor(delta: World, api: Api) -> None:
    api.ask("POST", "projects", {"name": "lab", "parent": delta.root.pk}, X_Request_ID="req-7")
    event = api.ask("GET", "audit-events?action=project.create").json()["items"][0]
    assert event["actor"]["id"] == delta.owner.pk
    assert event["subject"]["label"] == "lab"
    assert event["request_id"] == "req-7"
    assert api.ask("GET", f"audit-events/{event['id']}").json() == event


def test_a_change_is_told_with_what_it_was_before(delta: World, api: Api) -> None:
    member = delta.membership(delta.person(Role.VIEWER))
    api.ask("PATCH", f"members/{member.pk}", {"role": "member"}, If_Match="*")
    api.ask("PATCH", f"service-accounts/{delta.machine().pk}", {"role": "viewer"}, If_Match="*")
    api.ask("PATCH", f"projects/{delta.root.pk}", {"name": "New"}, If_Match="*")
    api.ask("PATCH", f"tenants/{delta.tenant.pk}", {"name": "Newer"}, If_Match="*")
    told = api.ask("GET", f"audit-events?actor={delta.owner.pk}").json()["items"]
    assert {event["actor"]["label"] for event in told} == {delta.owner.email}
    about = api.ask("GET", f"audit-events?subject={member.pk}&action=member.role").json()["items"]
    assert about == [event for event in told if event["action"] == "member.role"]
    assert {e["action"]: (e["detail"]["before"], e["detail"].get("after")) for e in told} == {
        "member.role": ("viewer", "member"),
        "service_account.role": ("member", "viewer"),
        "project.rename": ("Delta", None),  # its new name is the subject's
        "tenant.change": ({"name": "Delta"}, {"name": "Newer"}),
    }


def test_the_audit_trail_cannot_be_rewritten(delta: World) -> None:
    from django.db import DatabaseError, transaction

    with walls.as_tenant(delta.tenant.pk):
        for change in (
            lambda: AuditEvent.objects.update(action="x"),
            lambda: AuditEvent.objects.all().delete(),
        ):
            with pytest.raises(DatabaseError), transaction.atomic():
                change()


def test_roles_are_told_in_words(api: Api) -> None:
    roles = {row["role"]: row for row in api.ask("GET", "roles").json()["items"]}
    assert "launch" in roles["member"]["in_words"]
    assert "leases.write" not in roles["viewer"]["actions"]


def test_members_are_listed_with_their_roles(delta: World, api: Api) -> None:
    delta.person(Role.VIEWER)
    items = api.ask("GET", "members?role=viewer").json()["items"]
    assert [m["role"] for m in items] == ["viewer"]
    assert "password" not in str(items)
    with walls.as_tenant(delta.tenant.pk):
        assert Member.objects.count() == 2
