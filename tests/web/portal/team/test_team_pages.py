"""Team and tenant pages: contents and forms."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from tenants.domain.roles import Role
from tenants.models import ApiToken, Invitation, Member, Project, Quota, ServiceAccount, Tenant
from tenants.services import members, rls
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner, leave_tenant

pytestmark = pytest.mark.django_db


class Browser(Client):
    """A signed-in client; each response resets the tenant scope."""

    def request(self, **request: object) -> object:  # type: ignore[override]
        try:
            return super().request(**request)
        finally:
            leave_tenant()


def signed_in(user: object) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


@pytest.fixture
def owner(delta: TenantWithOwner) -> Browser:
    return signed_in(delta.owner)


PAGES = ["/team/", "/tokens/", "/audit/", "/projects/", "/account/", "/create-tenant/"]


@pytest.mark.parametrize("page", PAGES)
def test_an_anonymous_visitor_is_redirected_to_sign_in_and_back(page: str) -> None:
    answer = Browser().get(page)
    assert answer.status_code == 302
    assert answer["Location"] == f"/sign-in/?next={page}"


@pytest.mark.parametrize("page", PAGES)
def test_the_owner_sees_every_page(owner: Browser, page: str) -> None:
    answer = owner.get(page)
    assert answer.status_code == 200
    assert "<h1>" in answer.content.decode()


def test_pages_never_show_data_of_another_tenant(owner: Browser) -> None:
    other = tenant_setup.create_tenant_with_owner("Zanzibar")
    other.user_with_role(Role.MEMBER)
    for page in PAGES:
        assert "anzibar" not in owner.get(page).content.decode()


def test_an_invitation_to_a_privileged_role_says_whom_it_is_for(delta: TenantWithOwner, owner: Browser) -> None:
    made = owner.post("/team/invitations/", {"email": "new@example.org", "role": "admin", "project": ""})
    assert "Only an account with this verified address can accept it." in made.content.decode()
    secret = re.search(r"/join/([0-9a-z]+)/", made.content.decode())[1]
    browser = signed_in(tenant_setup.create_tenant_with_owner("Guest").owner)
    seen = browser.get(f"/join/{secret}/").content.decode()
    assert "new@example.org" in seen
    assert "You are signed in as" in seen
    assert "Join as" not in seen
    refused = browser.post(f"/join/{secret}/")
    assert refused.status_code == 403
    assert "is given only to new@example.org" in refused.content.decode()
    made = owner.post("/team/invitations/", {"email": "new@example.org", "role": "member", "project": ""})
    assert "Whoever opens it first can accept it." in made.content.decode()


def test_an_invitation_is_accepted_once(delta: TenantWithOwner, owner: Browser) -> None:
    made = owner.post("/team/invitations/", {"email": "New@example.org", "role": "member", "project": ""})
    secret = re.search(r"/join/([0-9a-z]+)/", made.content.decode())[1]
    guest = tenant_setup.create_tenant_with_owner("Guest").owner
    browser = signed_in(guest)
    seen = browser.get(f"/join/{secret}/").content.decode()
    assert "Join Delta" in seen
    assert "launch, stop and extend leases" in seen
    assert browser.post(f"/join/{secret}/").status_code == 302
    with rls.tenant_scope(delta.tenant.pk):
        assert Member.objects.get(user=guest).role == Role.MEMBER
    again = signed_in(tenant_setup.create_tenant_with_owner("Third").owner)
    assert again.get(f"/join/{secret}/").status_code == 404
    assert again.post(f"/join/{secret}/").status_code == 404
    assert "Delta" in browser.get("/team/").content.decode()


def test_used_unknown_expired_and_revoked_links_get_the_same_page(delta: TenantWithOwner, owner: Browser) -> None:
    secrets = []
    for number in range(3):
        made = owner.post("/team/invitations/", {"email": f"{number}@example.org", "role": "viewer"})
        secrets.append(re.search(r"/join/([0-9a-z]+)/", made.content.decode())[1])
    with rls.tenant_scope(delta.tenant.pk):
        rows = list(Invitation.objects.order_by("id"))
        Invitation.objects.filter(pk=rows[0].pk).update(accepted_at=tenant_setup.current_time())
        Invitation.objects.filter(pk=rows[1].pk).update(expires_at=tenant_setup.current_time())
    owner.post(f"/team/invitations/{rows[2].pk}/revoke/")
    anonymous = Browser()
    pages = {re.sub(rb"req_\w+|/join/\w+", b"", anonymous.get(f"/join/{s}/").content) for s in [*secrets, "0" * 40]}
    assert len(pages) == 1


def test_a_role_is_changed_and_a_member_removed(delta: TenantWithOwner, owner: Browser) -> None:
    user = delta.user_with_role(Role.MEMBER)
    text = delta.token(Role.MEMBER)
    member = delta.membership(user)
    owner.post(f"/team/members/{member.pk}/role/", {"role": "viewer"})
    assert delta.membership(user).role == Role.VIEWER
    owner.post(f"/team/members/{member.pk}/remove/")
    assert tenant_setup.ApiClient(text).send("GET", "users/me").status_code == 401
    gone = signed_in(user).get("/team/")
    assert gone.status_code == 302
    assert gone["Location"] == "/create-tenant/"


def test_the_last_owner_cannot_be_removed_and_sees_the_reason(delta: TenantWithOwner, owner: Browser) -> None:
    member = delta.membership(delta.owner)
    answer = owner.post(f"/team/members/{member.pk}/remove/", follow=True)
    assert "only owner" in answer.content.decode()
    assert delta.membership(delta.owner).pk == member.pk


def test_a_viewer_can_read_but_not_change_the_team(delta: TenantWithOwner) -> None:
    viewer = signed_in(delta.user_with_role(Role.VIEWER))
    member = delta.membership(delta.owner)
    assert "Invite member" not in viewer.get("/team/").content.decode()
    assert viewer.get("/audit/").status_code == 403
    assert viewer.get("/audit.csv").status_code == 403
    for address in (
        "/team/invitations/",
        f"/team/members/{member.pk}/role/",
        f"/team/members/{member.pk}/remove/",
        "/team/service-accounts/",
        "/projects/new/",
        "/projects/tenant/",
        f"/projects/{delta.root.pk}/name/",
    ):
        body = {"role": "viewer", "name": "x", "email": "a@example.org", "project": delta.root.pk}
        assert viewer.post(address, body).status_code == 403, address


def test_open_invitations_are_shown_only_to_members_who_can_invite(delta: TenantWithOwner, owner: Browser) -> None:
    owner.post("/team/invitations/", {"email": "new@example.org", "role": "viewer", "project": ""})
    viewer = signed_in(delta.user_with_role(Role.VIEWER))
    answers = [who.get("/team/") for who in (owner, viewer)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert ["new@example.org" in answer.content.decode() for answer in answers] == [True, False]


def test_an_owner_of_one_project_does_not_see_the_tenants_audit_log(delta: TenantWithOwner) -> None:
    lead = signed_in(delta.user_with_role(Role.ADMIN, project=delta.create_project("lab")))
    assert lead.get("/audit/").status_code == lead.get("/audit.csv").status_code == 403


def test_a_token_is_shown_once_and_works(delta: TenantWithOwner, owner: Browser) -> None:
    body = {"name": "ci", "scopes": ["projects:read", "tenant:read"], "days": "30", "project": ""}
    made = owner.post("/tokens/", body).content.decode()
    text = re.search(r"gpb_live_[0-9a-z_]{60,}", made)[0]
    assert tenant_setup.ApiClient(text).send("GET", "users/me").json()["id"] == delta.owner.pk
    assert text not in owner.get("/tokens/").content.decode()
    with rls.tenant_scope(delta.tenant.pk):
        token = ApiToken.objects.get()
    owner.post(f"/tokens/{token.pk}/revoke/")
    assert tenant_setup.ApiClient(text).send("GET", "users/me").status_code == 401


def test_a_token_shows_the_one_it_was_created_with(delta: TenantWithOwner, owner: Browser) -> None:
    ends = (tenant_setup.current_time() + timedelta(hours=1)).isoformat()
    wanted = {"name": "child", "scopes": ["leases:read"], "expires_at": ends}
    assert tenant_setup.ApiClient(delta.token()).send("POST", "tokens", wanted).status_code == 201
    page = " ".join(owner.get("/tokens/").content.decode().split())
    assert "created with test owner; ends with it" in page
    assert page.count("created with") == 1


def test_owners_see_and_revoke_the_tokens_of_others_and_viewers_do_not(delta: TenantWithOwner, owner: Browser) -> None:
    theirs = delta.token()
    delta.token(Role.VIEWER, scopes=("leases:read",))
    viewer = signed_in(delta.user_with_role(Role.VIEWER))
    page = viewer.get("/tokens/").content.decode()
    assert ("test viewer" in page, "test owner" in page) == (True, False)
    with rls.tenant_scope(delta.tenant.pk):
        token = ApiToken.objects.get(user=delta.owner)
    assert viewer.post(f"/tokens/{token.pk}/revoke/").status_code == 404
    assert works(theirs)
    page = owner.get("/tokens/").content.decode()
    assert all(found in page for found in ("test viewer", "test owner", "leases:read", token.prefix))
    assert page.count(">never<") == 1, "only one of the two was used"


@pytest.mark.parametrize(
    "change", [{"scopes": []}, {"scopes": ["root"]}, {"days": "9999"}, {"name": ""}, {"name": "a\u202eb"}]
)
def test_an_invalid_form_shows_its_errors(owner: Browser, delta: TenantWithOwner, change: dict[str, object]) -> None:
    body = {"name": "ci", "scopes": ["projects:read"], "days": "30", "project": "", **change}
    assert owner.post("/tokens/", body).status_code == 400
    with rls.tenant_scope(delta.tenant.pk):
        assert not ApiToken.objects.exists()


def test_a_service_account_gets_a_token_and_is_closed(delta: TenantWithOwner, owner: Browser) -> None:
    body = {"machine-name": "ci", "machine-role": "member", "machine-project": ""}
    owner.post("/team/service-accounts/", body)
    with rls.tenant_scope(delta.tenant.pk):
        machine = ServiceAccount.objects.get()
    token = {"name": "t", "scopes": ["tenant:read"], "days": "7", "project": "", "bearer": machine.pk}
    text = re.search(r"gpb_live_[0-9a-z_]{60,}", owner.post("/tokens/", token).content.decode())[0]
    assert tenant_setup.ApiClient(text).send("GET", "users/me").json()["id"] == machine.pk
    owner.post(f"/team/service-accounts/{machine.pk}/close/")
    assert tenant_setup.ApiClient(text).send("GET", "users/me").status_code == 401


def service_account_token(delta: TenantWithOwner, maker: Browser, account: ServiceAccount, name: str) -> str:
    body = {"name": name, "scopes": ["tenant:read"], "days": "7", "project": "", "bearer": account.pk}
    made = maker.post("/tokens/", body).content.decode()
    return re.search(r"gpb_live_[0-9a-z_]{60,}", made)[0]


def works(text: str) -> bool:
    return tenant_setup.ApiClient(text).send("GET", "users/me").status_code == 200


def test_removing_a_member_offers_to_revoke_their_service_account_tokens(
    delta: TenantWithOwner, owner: Browser
) -> None:
    admin = delta.user_with_role(Role.ADMIN)
    maker = signed_in(admin)
    maker.post("/team/service-accounts/", {"machine-name": "ci", "machine-role": "member", "machine-project": ""})
    with rls.tenant_scope(delta.tenant.pk):
        machine = ServiceAccount.objects.get()
    theirs, ours = (service_account_token(delta, who, machine, name) for who, name in ((maker, "a"), (owner, "b")))
    address = f"/team/members/{delta.membership(admin).pk}/"
    page = owner.get(address).content.decode()
    assert "1 token of service accounts would keep working" in page
    assert re.search(r"Remove\s+and revoke 1 token\s*<", page)
    answer = owner.post(f"{address}remove/", {"tokens": "revoke"}, follow=True).content.decode()
    assert f"{admin.email} is no longer a member; their tokens have stopped working." in answer
    assert (works(theirs), works(ours)) == (False, True)
    assert re.search(rf"created by {admin.email}, <b>no longer a member<", answer)


def test_service_account_tokens_of_a_removed_member_work_until_revoked(delta: TenantWithOwner, owner: Browser) -> None:
    admin = delta.user_with_role(Role.ADMIN)
    machine = delta.create_service_account("ci")
    text = service_account_token(delta, signed_in(admin), machine, "nightly")
    answer = owner.post(f"/team/members/{delta.membership(admin).pk}/remove/", follow=True).content.decode()
    assert "1 that they created for service accounts keep working: see Tokens." in answer
    assert works(text)
    listed = owner.get("/tokens/").content.decode()
    assert re.search(rf"created by {admin.email}, <b>no longer a member<", listed)
    assert "created by broker" in owner.get("/team/").content.decode()


def test_a_member_who_keeps_another_role_keeps_their_tokens(delta: TenantWithOwner, owner: Browser) -> None:
    lab = delta.create_project("lab")
    user = delta.user_with_role(Role.ADMIN)
    with rls.tenant_scope(delta.tenant.pk):
        members.add(
            tenant=delta.tenant, user=user, role=Role.VIEWER, project=lab, actor=SYSTEM, now=tenant_setup.current_time()
        )
    service_account_token(delta, signed_in(user), delta.create_service_account("ci"), "nightly")
    address = f"/team/members/{delta.membership(user).pk}/"
    assert "would keep working" not in owner.get(address).content.decode()
    answer = owner.post(f"{address}remove/", follow=True).content.decode()
    assert "lost this role; their tokens keep working with their other roles." in answer


def test_a_viewer_does_not_see_who_created_service_accounts(delta: TenantWithOwner) -> None:
    delta.create_service_account("ci")
    viewer = signed_in(delta.user_with_role(Role.VIEWER))
    page = viewer.get("/team/").content.decode()
    assert "ci" in page
    assert "created by" not in page


def test_changes_have_separate_form_pages(delta: TenantWithOwner, owner: Browser) -> None:
    lab = delta.create_project("lab")
    user, robot = delta.user_with_role(Role.MEMBER), delta.create_service_account("ci")
    member, mine = delta.membership(user), delta.membership(delta.owner)
    for listed, link, forms in (
        ("/projects/", f"/projects/{lab.pk}/", ("quota", "name", "archive")),
        ("/team/", f"/team/members/{member.pk}/", ("role", "remove")),
        ("/team/", f"/team/service-accounts/{robot.pk}/close/", ()),
    ):
        assert f'href="{link}"' in owner.get(listed).content.decode()
        page = owner.get(link).content.decode()
        assert all(f'action="{link}{form}/"' in page for form in forms)
    with rls.tenant_scope(delta.tenant.pk):
        assert ServiceAccount.objects.get(pk=robot.pk).closed_at is None  # asking closes nothing
    assert "Leave Delta" in owner.get(f"/team/members/{mine.pk}/").content.decode()
    his = signed_in(user)
    assert "/role/" not in his.get(f"/team/members/{member.pk}/").content.decode()
    assert his.get(f"/team/members/{mine.pk}/").status_code == 403
    assert his.get(f"/projects/{lab.pk}/").status_code == 403


def test_a_project_owner_can_set_quotas_only_below_the_project(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    below = delta.create_project("bench", lab)
    lead = signed_in(delta.user_with_role(Role.OWNER, project=lab))
    assert f"/projects/{below.pk}/quota/" in lead.get(f"/projects/{below.pk}/").content.decode()
    assert f"/projects/{lab.pk}/quota/" not in lead.get(f"/projects/{lab.pk}/").content.decode()
    assert lead.post(f"/projects/{lab.pk}/quota/", {"kind": "units", "limit": "2.5"}).status_code == 403
    lead.post(f"/projects/{below.pk}/quota/", {"kind": "units", "limit": "2.5"})
    with rls.tenant_scope(delta.tenant.pk):
        set_on = Quota.objects.exclude(project=delta.root).values_list("project_id", flat=True)
        assert list(set_on) == [below.pk]


def test_projects_are_created_renamed_given_quotas_and_archived(delta: TenantWithOwner, owner: Browser) -> None:
    owner.post("/projects/new/", {"name": "lab", "project": delta.root.pk})
    with rls.tenant_scope(delta.tenant.pk):
        lab = Project.objects.get(name="lab")
    owner.post(f"/projects/{lab.pk}/quota/", {"kind": "units", "limit": "2.5"})
    owner.post(f"/projects/{lab.pk}/name/", {"name": "bench"})
    page = owner.get("/projects/").content.decode()
    assert "bench" in page
    assert re.search(r"of 2\.5\s*<", page)
    with rls.tenant_scope(delta.tenant.pk):
        assert Quota.objects.get(project=lab).soft_limit == 2500
    owner.post(f"/projects/{lab.pk}/quota/", {"kind": "storage", "limit": "0.5"})
    with rls.tenant_scope(delta.tenant.pk):
        assert not Quota.objects.filter(project=lab, kind="storage").exists(), "half a GiB is not nothing"
    owner.post(f"/projects/{lab.pk}/archive/")
    page = owner.get("/projects/").content.decode()
    assert f"/projects/{lab.pk}/unarchive/" in page
    assert f'href="/projects/{lab.pk}/"' not in page
    owner.post(f"/projects/{lab.pk}/unarchive/")
    assert f'href="/projects/{lab.pk}/"' in owner.get("/projects/").content.decode()


def test_tenant_name_and_time_zone_are_changed(delta: TenantWithOwner, owner: Browser) -> None:
    owner.post("/projects/tenant/", {"name": "Delta 2", "time_zone": "Asia/Tokyo"})
    with rls.tenant_scope(delta.tenant.pk):
        assert Tenant.objects.get().time_zone == "Asia/Tokyo"


def test_a_time_zone_without_a_city_is_refused_with_a_reason(delta: TenantWithOwner, owner: Browser) -> None:
    page = owner.post("/projects/tenant/", {"name": "Delta", "time_zone": "CET"}, follow=True)
    assert "CET is not a region&#x27;s time zone" in page.content.decode()
    with rls.tenant_scope(delta.tenant.pk):
        assert Tenant.objects.get().time_zone == "Europe/Berlin"


def test_renaming_a_tenant_keeps_its_legacy_time_zone(delta: TenantWithOwner, owner: Browser) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        Tenant.objects.update(time_zone="CET")
    assert '<option value="CET" selected>' in owner.get("/projects/").content.decode()
    owner.post("/projects/tenant/", {"name": "Delta 2", "time_zone": "CET"})
    with rls.tenant_scope(delta.tenant.pk):
        assert (Tenant.objects.get().name, Tenant.objects.get().time_zone) == ("Delta 2", "CET")


def test_the_switcher_changes_project_and_tenant(delta: TenantWithOwner) -> None:
    lab = delta.create_project("lab")
    other = tenant_setup.create_tenant_with_owner("Other")
    with rls.tenant_scope(other.tenant.pk):
        Member.objects.create(
            tenant=other.tenant, user=delta.owner, role="viewer", created_at=tenant_setup.current_time()
        )
    browser = signed_in(delta.owner)
    browser.post("/switch-project/", {"project": lab.pk, "next": "/team/"})
    assert browser.session["project"] == lab.pk
    browser.post("/switch-project/", {"project": other.tenant.pk})
    assert browser.session["tenant"] == other.tenant.pk
    assert "Other" in browser.get("/projects/").content.decode()
    third = tenant_setup.create_tenant_with_owner("Third")
    browser.post("/switch-project/", {"project": third.tenant.pk})
    assert browser.session["tenant"] == other.tenant.pk


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example", "evil"]
)
def test_next_parameter_never_redirects_to_another_site(owner: Browser, delta: TenantWithOwner, where: str) -> None:
    answer = owner.post("/switch-project/", {"project": delta.root.pk, "next": where})
    assert answer["Location"] in ("/", "/projects/")


def test_the_audit_page_filters_paginates_and_downloads(delta: TenantWithOwner, owner: Browser) -> None:
    for number in range(60):
        delta.create_project(f"=p{number}")
    first = owner.get("/audit/?action=project.create").content.decode()
    older = re.search(r'href="\?(action=project.create&amp;before=aud_\w+)"', first)[1]
    second = owner.get("/audit/?" + older.replace("&amp;", "&")).content.decode()
    assert first.count("<tr>") + second.count("<tr>") == 62  # sixty events and two heads
    text = owner.get("/audit.csv?action=project.create").content.decode()
    assert text.count("\r\n") == 61
    assert ",'=p59," in text


def test_a_user_without_a_tenant_is_redirected_to_create_one(delta: TenantWithOwner) -> None:
    from tenants.models import User

    user = User.objects.create_user("alone@example.org")
    browser = signed_in(user)
    assert browser.get("/team/")["Location"] == "/create-tenant/"
    answer = browser.post(
        "/create-tenant/", {"organisation": "Alone", "country": "ES", "currency": "EUR", "time_zone": "Europe/Madrid"}
    )
    assert answer.status_code == 302
    assert "alone@example.org" in browser.get("/team/").content.decode()


def test_a_name_is_changed_on_the_account_page(delta: TenantWithOwner, owner: Browser) -> None:
    owner.post("/account/", {"name": "Ada"})
    delta.owner.refresh_from_db()
    assert delta.owner.name == "Ada"


def test_each_label_of_the_projects_page_belongs_to_its_own_field(owner: Browser) -> None:
    page = owner.get("/projects/").content.decode()
    fields = re.findall(r'<label for="([^"]*)">Name</label>\s*<input[^>]* id="([^"]*)"', page)
    assert len(fields) == len(set(fields)) == 2
    assert all(label == field for label, field in fields)
