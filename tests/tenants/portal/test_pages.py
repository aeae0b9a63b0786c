"""The portal's pages of people and tenants: what they show, what their forms do."""

import re

import pytest
from django.test import Client

from tenants.domain.roles import Role
from tenants.models import ApiToken, Invitation, Member, Project, Quota, ServiceAccount, Tenant
from tenants.services import members, walls
from tenants.services.actors import SYSTEM
from tests.tenants import people as world
from tests.tenants.people import World, close_wall

pytestmark = pytest.mark.django_db


class Browser(Client):
    """Somebody signed in; the wall is closed after each answer, as a transaction's end does."""

    def request(self, **request: object) -> object:  # type: ignore[override]
        try:
            return super().request(**request)
        finally:
            close_wall()


def signed_in(user: object) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def delta() -> World:
    return world.make("Delta")


@pytest.fixture
def owner(delta: World) -> Browser:
    return signed_in(delta.owner)


PAGES = ["/team/", "/tokens/", "/audit/", "/projects/", "/account/", "/start/"]


@pytest.mark.parametrize("page", PAGES)
def test_a_stranger_is_sent_to_sign_in_and_back(page: str) -> None:
    answer = Browser().get(page)
    assert answer.status_code == 302
    assert answer["Location"] == f"/sign-in/?next={page}"


@pytest.mark.parametrize("page", PAGES)
def test_the_owner_sees_every_page(owner: Browser, page: str) -> None:
    answer = owner.get(page)
    assert answer.status_code == 200
    assert "<h1>" in answer.content.decode()


def test_pages_never_show_another_tenants_words(owner: Browser) -> None:
    other = world.make("Zanzibar")
    other.person(Role.MEMBER)
    for page in PAGES:
        assert "anzibar" not in owner.get(page).content.decode()


def test_an_invitation_is_accepted_once(delta: World, owner: Browser) -> None:
    made = owner.post("/team/invitations/", {"email": "New@example.org", "role": "member", "project": ""})
    secret = re.search(r"/join/([0-9a-z]+)/", made.content.decode())[1]
    guest = world.make("Guest").owner
    browser = signed_in(guest)
    seen = browser.get(f"/join/{secret}/").content.decode()
    assert "Join Delta" in seen
    assert "launch, stop and extend leases" in seen
    assert browser.post(f"/join/{secret}/").status_code == 302
    with walls.as_tenant(delta.tenant.pk):
        assert Member.objects.get(user=guest).role == Role.MEMBER
    again = signed_in(world.make("Third").owner)
    assert again.get(f"/join/{secret}/").status_code == 404
    assert again.post(f"/join/{secret}/").status_code == 404
    assert "Delta" in browser.get("/team/").content.decode()


def test_used_unknown_expired_and_revoked_links_look_the_same(delta: World, owner: Browser) -> None:
    secrets = []
    for number in range(3):
        made = owner.post("/team/invitations/", {"email": f"{number}@example.org", "role": "viewer"})
        secrets.append(re.search(r"/join/([0-9a-z]+)/", made.content.decode())[1])
    with walls.as_tenant(delta.tenant.pk):
        rows = list(Invitation.objects.order_by("id"))
        Invitation.objects.filter(pk=rows[0].pk).update(accepted_at=world.moment())
        Invitation.objects.filter(pk=rows[1].pk).update(expires_at=world.moment())
    owner.post(f"/team/invitations/{rows[2].pk}/revoke/")
    stranger = Browser()
    pages = {
        re.sub(rb"req_\w+|/join/\w+", b"", stranger.get(f"/join/{s}/").content) for s in [*secrets, "0" * 40]
    }
    assert len(pages) == 1


def test_a_role_is_changed_and_a_member_removed(delta: World, owner: Browser) -> None:
    user = delta.person(Role.MEMBER)
    text = delta.token(Role.MEMBER)
    member = delta.membership(user)
    owner.post(f"/team/members/{member.pk}/role/", {"role": "viewer"})
    assert delta.membership(user).role == Role.VIEWER
    owner.post(f"/team/members/{member.pk}/remove/")
    assert world.Api(text).ask("GET", "users/me").status_code == 401
    gone = signed_in(user).get("/team/")
    assert gone.status_code == 302
    assert gone["Location"] == "/start/"


def test_the_last_owner_is_told_why_they_cannot_go(delta: World, owner: Browser) -> None:
    member = delta.membership(delta.owner)
    answer = owner.post(f"/team/members/{member.pk}/remove/", follow=True)
    assert "only owner" in answer.content.decode()
    assert delta.membership(delta.owner).pk == member.pk


def test_a_viewer_looks_and_changes_nothing(delta: World) -> None:
    viewer = signed_in(delta.person(Role.VIEWER))
    member = delta.membership(delta.owner)
    assert "Invite somebody" not in viewer.get("/team/").content.decode()
    assert viewer.get("/audit/").status_code == 403
    assert viewer.get("/audit.csv").status_code == 403
    for address in (
        "/team/invitations/",
        f"/team/members/{member.pk}/role/",
        f"/team/members/{member.pk}/remove/",
        "/team/machines/",
        "/projects/new/",
        "/projects/tenant/",
        f"/projects/{delta.root.pk}/name/",
    ):
        body = {"role": "viewer", "name": "x", "email": "a@example.org", "project": delta.root.pk}
        assert viewer.post(address, body).status_code == 403, address


def test_open_invitations_are_shown_to_those_who_lead(delta: World, owner: Browser) -> None:
    owner.post("/team/invitations/", {"email": "new@example.org", "role": "viewer", "project": ""})
    viewer = signed_in(delta.person(Role.VIEWER))
    answers = [who.get("/team/") for who in (owner, viewer)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert ["new@example.org" in answer.content.decode() for answer in answers] == [True, False]


def test_who_leads_a_project_alone_does_not_see_the_tenants_trail(delta: World) -> None:
    lead = signed_in(delta.person(Role.ADMIN, project=delta.child("lab")))
    assert lead.get("/audit/").status_code == lead.get("/audit.csv").status_code == 403


def test_a_token_is_shown_once_and_works(delta: World, owner: Browser) -> None:
    body = {"name": "ci", "scopes": ["projects:read", "tenant:read"], "days": "30", "project": ""}
    made = owner.post("/tokens/", body).content.decode()
    text = re.search(r"gpb_live_[0-9a-z_]{60,}", made)[0]
    assert world.Api(text).ask("GET", "users/me").json()["id"] == delta.owner.pk
    assert text not in owner.get("/tokens/").content.decode()
    with walls.as_tenant(delta.tenant.pk):
        token = ApiToken.objects.get()
    owner.post(f"/tokens/{token.pk}/revoke/")
    assert world.Api(text).ask("GET", "users/me").status_code == 401


def test_tokens_of_others_are_seen_and_ended_by_those_who_lead_only(delta: World, owner: Browser) -> None:
    theirs = delta.token()
    delta.token(Role.VIEWER, scopes=("leases:read",))
    viewer = signed_in(delta.person(Role.VIEWER))
    page = viewer.get("/tokens/").content.decode()
    assert ("test viewer" in page, "test owner" in page) == (True, False)
    with walls.as_tenant(delta.tenant.pk):
        token = ApiToken.objects.get(user=delta.owner)
    assert viewer.post(f"/tokens/{token.pk}/revoke/").status_code == 404
    assert works(theirs)
    page = owner.get("/tokens/").content.decode()
    assert all(told in page for told in ("test viewer", "test owner", "leases:read", token.prefix))
    assert page.count(">never<") == 1, "only one of the two was used"


@pytest.mark.parametrize(
    "change", [{"scopes": []}, {"scopes": ["root"]}, {"days": "9999"}, {"name": ""}, {"name": "a\u202eb"}]
)
def test_a_form_that_cannot_be_says_so(owner: Browser, delta: World, change: dict[str, object]) -> None:
    body = {"name": "ci", "scopes": ["projects:read"], "days": "30", "project": "", **change}
    assert owner.post("/tokens/", body).status_code == 400
    with walls.as_tenant(delta.tenant.pk):
        assert not ApiToken.objects.exists()


def test_a_machine_gets_a_token_and_is_closed(delta: World, owner: Browser) -> None:
    body = {"machine-name": "ci", "machine-role": "member", "machine-project": ""}
    owner.post("/team/machines/", body)
    with walls.as_tenant(delta.tenant.pk):
        machine = ServiceAccount.objects.get()
    token = {"name": "t", "scopes": ["tenant:read"], "days": "7", "project": "", "bearer": machine.pk}
    text = re.search(r"gpb_live_[0-9a-z_]{60,}", owner.post("/tokens/", token).content.decode())[0]
    assert world.Api(text).ask("GET", "users/me").json()["id"] == machine.pk
    owner.post(f"/team/machines/{machine.pk}/close/")
    assert world.Api(text).ask("GET", "users/me").status_code == 401


def machine_token(delta: World, maker: Browser, account: ServiceAccount, name: str) -> str:
    body = {"name": name, "scopes": ["tenant:read"], "days": "7", "project": "", "bearer": account.pk}
    made = maker.post("/tokens/", body).content.decode()
    return re.search(r"gpb_live_[0-9a-z_]{60,}", made)[0]


def works(text: str) -> bool:
    return world.Api(text).ask("GET", "users/me").status_code == 200


def test_who_removes_somebody_is_told_what_goes_on_and_ends_it_with_one_press(
    delta: World, owner: Browser
) -> None:
    admin = delta.person(Role.ADMIN)
    maker = signed_in(admin)
    maker.post("/team/machines/", {"machine-name": "ci", "machine-role": "member", "machine-project": ""})
    with walls.as_tenant(delta.tenant.pk):
        machine = ServiceAccount.objects.get()
    theirs, ours = (machine_token(delta, who, machine, name) for who, name in ((maker, "a"), (owner, "b")))
    address = f"/team/members/{delta.membership(admin).pk}/"
    page = owner.get(address).content.decode()
    assert "1 token of service accounts would go on working" in page
    assert "Remove and revoke 1 token<" in page
    answer = owner.post(f"{address}remove/", {"tokens": "revoke"}, follow=True).content.decode()
    assert f"{admin.email} is no longer a member; their tokens have stopped working." in answer
    assert (works(theirs), works(ours)) == (False, True)
    assert re.search(rf"made by {admin.email}, <b>who has left<", answer)


def test_what_somebody_who_left_made_goes_on_until_it_is_revoked(delta: World, owner: Browser) -> None:
    admin = delta.person(Role.ADMIN)
    machine = delta.machine("ci")
    text = machine_token(delta, signed_in(admin), machine, "nightly")
    answer = owner.post(f"/team/members/{delta.membership(admin).pk}/remove/", follow=True).content.decode()
    assert "1 that they made for service accounts go on: see Tokens." in answer
    assert works(text)
    listed = owner.get("/tokens/").content.decode()
    assert re.search(rf"made by {admin.email}, <b>who has left<", listed)
    assert "made by broker" in owner.get("/team/").content.decode()


def test_who_keeps_another_role_is_not_said_to_have_lost_their_tokens(delta: World, owner: Browser) -> None:
    lab = delta.child("lab")
    user = delta.person(Role.ADMIN)
    with walls.as_tenant(delta.tenant.pk):
        members.add(
            tenant=delta.tenant, user=user, role=Role.VIEWER, project=lab, actor=SYSTEM, now=world.moment()
        )
    machine_token(delta, signed_in(user), delta.machine("ci"), "nightly")
    address = f"/team/members/{delta.membership(user).pk}/"
    assert "would go on working" not in owner.get(address).content.decode()
    answer = owner.post(f"{address}remove/", follow=True).content.decode()
    assert "has one role less here; their tokens go on with the others." in answer


def test_who_looks_on_is_not_told_who_made_what(delta: World) -> None:
    delta.machine("ci")
    viewer = signed_in(delta.person(Role.VIEWER))
    page = viewer.get("/team/").content.decode()
    assert "ci" in page
    assert "made by" not in page


def test_changes_are_asked_for_on_pages_of_their_own(delta: World, owner: Browser) -> None:
    lab = delta.child("lab")
    user, robot = delta.person(Role.MEMBER), delta.machine("ci")
    member, mine = delta.membership(user), delta.membership(delta.owner)
    for listed, link, forms in (
        ("/projects/", f"/projects/{lab.pk}/", ("quota", "name", "archive")),
        ("/team/", f"/team/members/{member.pk}/", ("role", "remove")),
        ("/team/", f"/team/machines/{robot.pk}/close/", ()),
    ):
        assert f'href="{link}"' in owner.get(listed).content.decode()
        page = owner.get(link).content.decode()
        assert all(f'action="{link}{form}/"' in page for form in forms)
    with walls.as_tenant(delta.tenant.pk):
        assert ServiceAccount.objects.get(pk=robot.pk).closed_at is None  # asking closes nothing
    assert "Leave Delta" in owner.get(f"/team/members/{mine.pk}/").content.decode()
    his = signed_in(user)
    assert "/role/" not in his.get(f"/team/members/{member.pk}/").content.decode()
    assert his.get(f"/team/members/{mine.pk}/").status_code == 403
    assert his.get(f"/projects/{lab.pk}/").status_code == 403


def test_who_leads_a_project_is_offered_ceilings_below_it_only(delta: World) -> None:
    lab = delta.child("lab")
    below = delta.child("bench", lab)
    lead = signed_in(delta.person(Role.OWNER, project=lab))
    assert f"/projects/{below.pk}/quota/" in lead.get(f"/projects/{below.pk}/").content.decode()
    assert f"/projects/{lab.pk}/quota/" not in lead.get(f"/projects/{lab.pk}/").content.decode()
    assert lead.post(f"/projects/{lab.pk}/quota/", {"kind": "units", "limit": "2.5"}).status_code == 403
    lead.post(f"/projects/{below.pk}/quota/", {"kind": "units", "limit": "2.5"})
    with walls.as_tenant(delta.tenant.pk):
        set_on = Quota.objects.exclude(project=delta.root).values_list("project_id", flat=True)
        assert list(set_on) == [below.pk]


def test_projects_are_made_renamed_limited_and_archived(delta: World, owner: Browser) -> None:
    owner.post("/projects/new/", {"name": "lab", "project": delta.root.pk})
    with walls.as_tenant(delta.tenant.pk):
        lab = Project.objects.get(name="lab")
    owner.post(f"/projects/{lab.pk}/quota/", {"kind": "units", "limit": "2.5"})
    owner.post(f"/projects/{lab.pk}/name/", {"name": "bench"})
    page = owner.get("/projects/").content.decode()
    assert "bench" in page
    assert "of 2.5<" in page
    with walls.as_tenant(delta.tenant.pk):
        assert Quota.objects.get(project=lab).soft_limit == 2500
    owner.post(f"/projects/{lab.pk}/quota/", {"kind": "storage", "limit": "0.5"})
    with walls.as_tenant(delta.tenant.pk):
        assert not Quota.objects.filter(project=lab, kind="storage").exists(), "half a GiB is not nothing"
    owner.post(f"/projects/{lab.pk}/archive/")
    assert lab.pk not in owner.get("/projects/").content.decode()


def test_the_tenants_own_name_and_zone_are_changed(delta: World, owner: Browser) -> None:
    owner.post("/projects/tenant/", {"name": "Delta 2", "time_zone": "Asia/Tokyo"})
    with walls.as_tenant(delta.tenant.pk):
        assert Tenant.objects.get().time_zone == "Asia/Tokyo"


def test_a_zone_without_a_city_is_refused_with_a_reason(delta: World, owner: Browser) -> None:
    page = owner.post("/projects/tenant/", {"name": "Delta", "time_zone": "CET"}, follow=True)
    assert "CET is the name of no city&#x27;s clock" in page.content.decode()
    with walls.as_tenant(delta.tenant.pk):
        assert Tenant.objects.get().time_zone == "Europe/Berlin"


def test_a_tenant_with_an_old_zone_is_renamed_without_being_moved(delta: World, owner: Browser) -> None:
    with walls.as_tenant(delta.tenant.pk):
        Tenant.objects.update(time_zone="CET")
    assert '<option value="CET" selected>' in owner.get("/projects/").content.decode()
    owner.post("/projects/tenant/", {"name": "Delta 2", "time_zone": "CET"})
    with walls.as_tenant(delta.tenant.pk):
        assert (Tenant.objects.get().name, Tenant.objects.get().time_zone) == ("Delta 2", "CET")


def test_the_switcher_changes_project_and_tenant(delta: World) -> None:
    lab = delta.child("lab")
    other = world.make("Other")
    with walls.as_tenant(other.tenant.pk):
        Member.objects.create(tenant=other.tenant, user=delta.owner, role="viewer", created_at=world.moment())
    browser = signed_in(delta.owner)
    browser.post("/switch/", {"project": lab.pk, "next": "/team/"})
    assert browser.session["project"] == lab.pk
    browser.post("/switch/", {"project": other.tenant.pk})
    assert browser.session["tenant"] == other.tenant.pk
    assert "Other" in browser.get("/projects/").content.decode()
    third = world.make("Third")
    browser.post("/switch/", {"project": third.tenant.pk})
    assert browser.session["tenant"] == other.tenant.pk


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example", "evil"]
)
def test_next_leads_nowhere_else(owner: Browser, delta: World, where: str) -> None:
    answer = owner.post("/switch/", {"project": delta.root.pk, "next": where})
    assert answer["Location"] in ("/", "/projects/")


def test_the_audit_page_filters_turns_and_downloads(delta: World, owner: Browser) -> None:
    for number in range(60):
        delta.child(f"=p{number}")
    first = owner.get("/audit/?action=project.create").content.decode()
    older = re.search(r'href="\?(action=project.create&amp;before=aud_\w+)"', first)[1]
    second = owner.get("/audit/?" + older.replace("&amp;", "&")).content.decode()
    assert first.count("<tr>") + second.count("<tr>") == 62  # sixty events and two heads
    text = owner.get("/audit.csv?action=project.create").content.decode()
    assert text.count("\r\n") == 61
    assert ",'=p59," in text


def test_somebody_without_a_tenant_makes_one(delta: World) -> None:
    from tenants.models import User

    user = User.objects.create_user("alone@example.org")
    browser = signed_in(user)
    assert browser.get("/team/")["Location"] == "/start/"
    answer = browser.post("/start/", {"name": "Alone", "time_zone": "Europe/Madrid"})
    assert answer.status_code == 302
    assert "alone@example.org" in browser.get("/team/").content.decode()


def test_a_name_is_changed_on_the_account_page(delta: World, owner: Browser) -> None:
    owner.post("/account/", {"name": "Ada"})
    delta.owner.refresh_from_db()
    assert delta.owner.name == "Ada"
