"""Projects, members, tokens and quotas over the API: changes, permissions, refusals."""

from datetime import timedelta

import pytest

from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, Quota
from tenants.services import rls
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner, current_time

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


@pytest.fixture
def api(delta: TenantWithOwner) -> ApiClient:
    return ApiClient(delta.token())


def soon() -> str:
    return (current_time() + timedelta(days=3)).isoformat()


def test_a_change_needs_the_newest_etag(delta: TenantWithOwner, api: ApiClient) -> None:
    address = f"projects/{delta.root.pk}"
    tag = api.send("GET", address)["ETag"]
    assert api.send("PATCH", address, {"name": "x"}).status_code == 428
    changed = api.send("PATCH", address, {"name": "x"}, If_Match=tag)
    assert changed.status_code == 200
    assert changed["ETag"] != tag
    stale = api.send("PATCH", address, {"name": "y"}, If_Match=tag)
    assert stale.status_code == 412
    assert stale.json()["fix"]["text"]


def test_a_dry_run_returns_the_result_and_changes_nothing(delta: TenantWithOwner, api: ApiClient) -> None:
    answer = api.send("POST", "projects?dry_run=true", {"name": "lab", "parent": delta.root.pk})
    assert answer.status_code == 200
    assert answer["Dry-Run"] == "true"
    assert answer.json()["name"] == "lab"
    assert [p["name"] for p in api.send("GET", "projects").json()["items"]] == ["Delta"]


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
def test_an_invalid_project_name_is_refused(delta: TenantWithOwner, api: ApiClient, body: dict[str, object]) -> None:
    answer = api.send("POST", "projects", {"parent": delta.root.pk, **body})
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
def test_malformed_json_is_refused_with_its_own_code(delta: TenantWithOwner, body: str) -> None:
    answer = ApiClient(delta.token()).generic(
        "POST",
        "/api/v1/projects",
        body.encode("latin-1"),
        content_type="application/json",
        headers={"Idempotency-Key": "k1"},
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")
    assert answer.json()["fix"]["text"]


def test_a_body_of_ten_megabytes_is_refused_unread(delta: TenantWithOwner, api: ApiClient) -> None:
    answer = api.send("POST", "projects", {"name": "x" * 10_000_000, "parent": delta.root.pk})
    assert answer.status_code == 413


def test_a_body_without_content_length_is_refused_with_a_411(delta: TenantWithOwner, api: ApiClient) -> None:
    body = {"name": "x", "parent": delta.root.pk}
    answer = api.send("POST", "projects", body, Transfer_Encoding="chunked")
    assert (answer.status_code, answer.json()["code"]) == (411, "length-required")
    assert "Content-Length" in answer.json()["fix"]["text"]


def test_a_parent_project_of_another_tenant_gets_the_same_answer_as_an_unknown_one(
    delta: TenantWithOwner, api: ApiClient
) -> None:
    other = tenant_setup.create_tenant_with_owner("Other")
    bodies = [
        api.send("POST", "projects", {"name": "x", "parent": parent}, X_Request_ID="r").content
        for parent in (other.root.pk, "prj_00000000000000000000000000")
    ]
    assert bodies[0] == bodies[1]


def test_duplicate_names_and_archiving_of_parent_projects_are_refused(delta: TenantWithOwner, api: ApiClient) -> None:
    lab = api.send("POST", "projects", {"name": "lab", "parent": delta.root.pk}).json()
    assert lab["path"] == [delta.root.pk, lab["id"]]
    assert api.send("POST", "projects", {"name": "lab", "parent": delta.root.pk}).status_code == 409
    bench = api.send("POST", "projects", {"name": "bench", "parent": lab["id"]}).json()
    assert api.send("POST", f"projects/{lab['id']}/archive").json()["code"] == "project-tree"
    assert api.send("POST", f"projects/{delta.root.pk}/archive").json()["code"] == "project-tree"
    assert api.send("POST", f"projects/{bench['id']}/archive").json()["archived_at"]
    assert api.send("POST", "projects", {"name": "x", "parent": bench["id"]}).json()["code"] == "project-archived"
    assert api.send("POST", f"projects/{bench['id']}/unarchive").json()["archived_at"] is None
    assert api.send("POST", "projects", {"name": "x", "parent": bench["id"]}).status_code == 201
    again = api.send("PATCH", f"projects/{lab['id']}", {"name": "lab2"}, If_Match="*")
    assert again.json()["name"] == "lab2"


def test_projects_are_nested_at_most_eight_levels_deep(delta: TenantWithOwner, api: ApiClient) -> None:
    parent = delta.root.pk
    for depth in range(2, 10):
        answer = api.send("POST", "projects", {"name": f"d{depth}", "parent": parent})
        parent = answer.json().get("id")
    assert answer.status_code == 409


def test_the_last_owner_cannot_be_removed_or_demoted(delta: TenantWithOwner, api: ApiClient) -> None:
    me = delta.membership(delta.owner)
    for answer in (
        api.send("DELETE", f"members/{me.pk}", If_Match="*"),
        api.send("PATCH", f"members/{me.pk}", {"role": "viewer"}, If_Match="*"),
    ):
        assert answer.status_code == 409
        assert answer.json()["code"] == "last-owner"


def test_an_admin_cannot_appoint_remove_or_invite_owners(delta: TenantWithOwner) -> None:
    admin = ApiClient(delta.token(Role.ADMIN))
    owner, member = delta.membership(delta.owner), delta.membership(delta.user_with_role(Role.MEMBER))
    assert admin.send("DELETE", f"members/{owner.pk}", If_Match="*").status_code == 403
    up = admin.send("PATCH", f"members/{member.pk}", {"role": "owner"}, If_Match="*")
    assert up.status_code == 403
    down = admin.send("PATCH", f"members/{member.pk}", {"role": "viewer"}, If_Match="*")
    assert down.json()["role"] == "viewer"
    invited = admin.send("POST", "invitations", {"email": "x@example.org", "role": "owner"})
    assert invited.status_code == 403


def test_an_admin_cannot_create_promote_or_close_an_owner_service_account(delta: TenantWithOwner) -> None:
    admin, robot = ApiClient(delta.token(Role.ADMIN)), delta.create_service_account()
    made = admin.send("POST", "service-accounts", {"name": "ci", "role": "owner"})
    changed = admin.send("PATCH", f"service-accounts/{robot.pk}", {"role": "owner"}, If_Match="*")
    ended = admin.send("DELETE", f"service-accounts/{delta.create_service_account('top', Role.OWNER).pk}", If_Match="*")
    assert [answer.status_code for answer in (made, changed, ended)] == [403, 403, 403]


def test_a_role_on_a_project_reaches_its_subtree_only(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    below = delta.create_project("bench", lab)
    lead = ApiClient(delta.token(Role.ADMIN, project=lab))
    assert {p["id"] for p in lead.send("GET", "projects").json()["items"]} == {lab.pk, below.pk}
    made = lead.send("POST", "projects", {"name": "new", "parent": below.pk})
    assert made.status_code == 201
    assert lead.send("GET", f"projects/{delta.root.pk}").status_code == 404
    assert lead.send("POST", "projects", {"name": "x", "parent": delta.root.pk}).status_code == 404
    assert lead.send("GET", "audit-events").status_code == 403
    elsewhere = lead.send("POST", "invitations", {"email": "x@example.org", "role": "viewer"})
    assert elsewhere.status_code == 403
    here = lead.send("POST", "invitations", {"email": "x@example.org", "role": "viewer", "project": lab.pk})
    assert here.status_code == 201


def test_a_project_owner_sets_quotas_below_the_project_but_not_its_own(delta: TenantWithOwner, api: ApiClient) -> None:
    lab = delta.create_project("lab")
    below = delta.create_project("bench", lab)
    lead = ApiClient(delta.token(Role.OWNER, project=lab))
    own = api.send("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 4000}).json()
    for refused in (
        lead.send("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 9000}),
        lead.send("POST", "quotas", {"project": lab.pk, "kind": "gpu_seconds", "limit": 9000}),
        lead.send("PATCH", f"quotas/{own['id']}", {"limit": 9000}, If_Match="*"),
        lead.send("DELETE", f"quotas/{own['id']}", If_Match="*"),
    ):
        assert refused.status_code == 403
        assert "parent projects" in refused.json()["detail"] + refused.json()["fix"]["text"]
    assert lead.send("GET", f"quotas/{own['id']}").json()["limit"] == 4000
    made = lead.send("POST", "quotas", {"project": below.pk, "kind": "units", "limit": 9000})
    assert made.status_code == 201
    assert lead.send("DELETE", f"quotas/{made.json()['id']}", If_Match="*").status_code == 204


def test_a_member_can_leave_the_tenant_but_not_remove_others(delta: TenantWithOwner) -> None:
    viewer = ApiClient(delta.token(Role.VIEWER))
    mine = delta.membership(delta.user_with_role(Role.VIEWER))
    theirs = delta.membership(delta.user_with_role(Role.MEMBER))
    assert viewer.send("DELETE", f"members/{theirs.pk}", If_Match="*").status_code == 403
    assert viewer.send("DELETE", f"members/{mine.pk}", If_Match="*").status_code == 204
    assert viewer.send("GET", "members").status_code == 401


def test_an_invitation_shows_its_link_once(delta: TenantWithOwner, api: ApiClient) -> None:
    made = api.send("POST", "invitations", {"email": "New@Example.org", "role": "member"}).json()
    assert "/join/" in made["url"]
    assert made["email"] == "new@example.org"
    assert "url" not in api.send("GET", f"invitations/{made['id']}").json()
    assert api.send("DELETE", f"invitations/{made['id']}").status_code == 204
    assert api.send("GET", f"invitations/{made['id']}").json()["revoked_at"]


def test_owners_see_the_tokens_of_others_and_viewers_do_not(delta: TenantWithOwner, api: ApiClient) -> None:
    body = {"name": "ci", "scopes": ["leases:read"], "expires_at": soon()}
    viewer = ApiClient(delta.token(Role.VIEWER))
    made = viewer.send("POST", "tokens", body).json()
    assert api.send("GET", f"tokens/{made['id']}").status_code == 200
    mine = api.send("POST", "tokens", body).json()
    assert viewer.send("GET", f"tokens/{mine['id']}").status_code == 404
    assert viewer.send("DELETE", f"tokens/{mine['id']}").status_code == 404
    assert api.send("DELETE", f"tokens/{made['id']}").status_code == 204
    assert ApiClient(made["token"]).send("GET", "leases").status_code in (401, 404)


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
def test_an_invalid_token_request_is_refused(delta: TenantWithOwner, api: ApiClient, change: dict[str, object]) -> None:
    body = {"name": "ci", "scopes": ["leases:read"], "expires_at": soon(), **change}
    assert api.send("POST", "tokens", body).status_code in (400, 404)


def test_a_token_cannot_create_a_token_with_more_rights(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    narrow = ApiClient(delta.token(scopes=("tokens:write", "leases:write", "projects:read"), within=lab))
    body = {"name": "ci", "expires_at": soon()}
    for change in (
        {"scopes": ["tenant:admin"], "project": lab.pk},
        {"scopes": ["billing:read"], "project": lab.pk},
        {"scopes": ["leases:read"]},
    ):
        assert narrow.send("POST", "tokens", {**body, **change}).status_code == 403
    good = narrow.send("POST", "tokens", {**body, "scopes": ["leases:read"], "project": lab.pk})
    assert good.status_code == 201


def test_a_service_account_can_use_and_create_tokens_until_it_is_closed(delta: TenantWithOwner, api: ApiClient) -> None:
    robot = api.send("POST", "service-accounts", {"name": "ci", "role": "member"}).json()
    assert api.send("POST", "service-accounts", {"name": "ci", "role": "member"}).status_code == 409
    body = {"name": "t", "scopes": ["leases:write", "tokens:write"], "expires_at": soon()}
    made = api.send("POST", "tokens", {**body, "service_account": robot["id"]}).json()
    machine = ApiClient(made["token"])
    own = machine.send("POST", "tokens", {**body, "scopes": ["leases:read"]}).json()
    assert own["service_account"] == robot["id"]
    makers = [each["created_by"] for each in (robot, made, own)]
    assert makers[0] == makers[1] == {"id": delta.owner.pk, "label": delta.owner.email}
    assert makers[2] == {"id": robot["id"], "label": "ci"}
    listed = api.send("GET", f"tokens?created_by={robot['id']}").json()["items"]
    assert [token["id"] for token in listed] == [own["id"]]
    changed = api.send("PATCH", f"service-accounts/{robot['id']}", {"role": "viewer"}, If_Match="*")
    assert changed.json()["role"] == "viewer"
    assert api.send("DELETE", f"service-accounts/{robot['id']}", If_Match="*").status_code == 204
    assert machine.send("GET", "users/me").status_code == 401


def test_owners_can_change_quotas_of_subprojects_but_not_of_the_root(delta: TenantWithOwner, api: ApiClient) -> None:
    lab = delta.create_project("lab")
    made = api.send("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 4000})
    assert made.status_code == 201
    changed = api.send("PATCH", f"quotas/{made.json()['id']}", {"limit": 2000}, If_Match=made["ETag"])
    assert changed.json()["limit"] == 2000
    root = api.send("GET", f"quotas?project={delta.root.pk}").json()["items"][0]
    assert api.send("PATCH", f"quotas/{root['id']}", {"limit": 1}, If_Match="*").status_code == 403
    assert api.send("DELETE", f"quotas/{root['id']}", If_Match="*").status_code == 403
    usage = api.send("GET", f"quota-usage?project={lab.pk}").json()["items"][0]["quotas"]
    assert usage[0]["remaining"] == 2000
    assert usage[0]["set_on"] == lab.pk
    assert api.send("DELETE", f"quotas/{made.json()['id']}", If_Match="*").status_code == 204
    usage = api.send("GET", f"quota-usage?project={lab.pk}").json()["items"][0]["quotas"]
    assert usage[0]["set_on"] == delta.root.pk


@pytest.mark.parametrize("limit", [-1, 2**63, 1e300, "many", None, True, 1.5])
def test_an_invalid_quota_limit_is_refused(delta: TenantWithOwner, api: ApiClient, limit: object) -> None:
    body = {"project": delta.root.pk, "kind": "units", "limit": limit}
    assert api.send("POST", "quotas", body).status_code == 400


def test_a_quota_may_be_set_below_what_is_in_use(delta: TenantWithOwner, api: ApiClient) -> None:
    lab = delta.create_project("lab")
    made = api.send("POST", "quotas", {"project": lab.pk, "kind": "units", "limit": 4000}).json()
    with rls.tenant_scope(delta.tenant.pk):
        Quota.objects.filter(pk=made["id"]).update(used=3000)
    changed = api.send("PATCH", f"quotas/{made['id']}", {"limit": 1000}, If_Match="*").json()
    assert (changed["limit"], changed["used"]) == (1000, 3000)


def test_only_the_owner_changes_the_tenants_name_and_time_zone(delta: TenantWithOwner, api: ApiClient) -> None:
    address = f"tenants/{delta.tenant.pk}"
    changed = api.send("PATCH", address, {"name": "Delta 2", "time_zone": "Asia/Tokyo"}, If_Match="*")
    assert changed.json()["time_zone"] == "Asia/Tokyo"
    assert api.send("PATCH", address, {"time_zone": "Mars/Base"}, If_Match="*").status_code == 400
    admin = ApiClient(delta.token(Role.ADMIN)).send("PATCH", address, {"name": "x"}, If_Match="*")
    assert admin.status_code == 403
    assert "owner" in admin.json()["detail"]


def test_a_suspended_tenant_can_read_but_not_write(delta: TenantWithOwner, api: ApiClient) -> None:
    from tenants.services import tenants
    from tenants.services.actors import SYSTEM

    with rls.tenant_scope(delta.tenant.pk):
        tenants.suspend(delta.tenant, actor=SYSTEM, now=current_time(), why="unpaid")
    assert api.send("GET", "projects").status_code == 200
    answer = api.send("POST", "projects", {"name": "x", "parent": delta.root.pk})
    assert (answer.status_code, answer.json()["code"]) == (403, "tenant-suspended")


def test_every_change_is_in_the_audit_log_with_its_actor(delta: TenantWithOwner, api: ApiClient) -> None:
    api.send("POST", "projects", {"name": "lab", "parent": delta.root.pk}, X_Request_ID="req-7")
    event = api.send("GET", "audit-events?action=project.create").json()["items"][0]
    assert event["actor"]["id"] == delta.owner.pk
    assert event["subject"]["label"] == "lab"
    assert event["request_id"] == "req-7"
    assert api.send("GET", f"audit-events/{event['id']}").json() == event


def test_a_change_is_audited_with_its_previous_value(delta: TenantWithOwner, api: ApiClient) -> None:
    member = delta.membership(delta.user_with_role(Role.VIEWER))
    api.send("PATCH", f"members/{member.pk}", {"role": "member"}, If_Match="*")
    api.send("PATCH", f"service-accounts/{delta.create_service_account().pk}", {"role": "viewer"}, If_Match="*")
    api.send("PATCH", f"projects/{delta.root.pk}", {"name": "New"}, If_Match="*")
    api.send("PATCH", f"tenants/{delta.tenant.pk}", {"name": "Newer"}, If_Match="*")
    found = api.send("GET", f"audit-events?actor={delta.owner.pk}").json()["items"]
    assert {event["actor"]["label"] for event in found} == {delta.owner.email}
    about = api.send("GET", f"audit-events?subject={member.pk}&action=member.role").json()["items"]
    assert about == [event for event in found if event["action"] == "member.role"]
    assert {e["action"]: (e["details"]["before"], e["details"].get("after")) for e in found} == {
        "member.role": ("viewer", "member"),
        "service_account.role": ("member", "viewer"),
        "project.rename": ("Delta", None),  # its new name is the subject's
        "tenant.change": ({"name": "Delta"}, {"name": "Newer"}),
    }


def test_the_audit_log_cannot_be_rewritten(delta: TenantWithOwner) -> None:
    from django.db import DatabaseError, transaction

    with rls.tenant_scope(delta.tenant.pk):
        for change in (
            lambda: AuditEvent.objects.update(action="x"),
            lambda: AuditEvent.objects.all().delete(),
        ):
            with pytest.raises(DatabaseError), transaction.atomic():
                change()


def test_roles_are_listed_with_a_description_and_their_actions(api: ApiClient) -> None:
    roles = {row["role"]: row for row in api.send("GET", "roles").json()["items"]}
    assert "launch" in roles["member"]["description"]
    assert "leases.write" not in roles["viewer"]["actions"]


def test_members_are_listed_with_their_roles(delta: TenantWithOwner, api: ApiClient) -> None:
    delta.user_with_role(Role.VIEWER)
    items = api.send("GET", "members?role=viewer").json()["items"]
    assert [m["role"] for m in items] == ["viewer"]
    assert "password" not in str(items)
    with rls.tenant_scope(delta.tenant.pk):
        assert Member.objects.count() == 2
