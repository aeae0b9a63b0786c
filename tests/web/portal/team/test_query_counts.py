"""Team pages need the same number of queries for any number of rows."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tenants.domain.roles import Role
from tenants.models import Invitation, Member, Project, QuotaKind, User
from tenants.services import invitations, members, quotas, rls, tokens
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner, current_time
from tests.web.portal.team.test_team_pages import signed_in
from web.portal import forms

pytestmark = pytest.mark.django_db
PAGES = ("/team/", "/tokens/", "/audit/", "/projects/", "/account/")
API = ("projects", "members", "tokens", "quotas", "quota-usage", "audit-events", "service-accounts")
MOST_ON_A_PAGE = 20


def grow(world: TenantWithOwner, rounds: int) -> None:
    for number in range(rounds):
        user = User.objects.create_user(f"m{number}-{rounds}-{world.tenant.pk}@example.org")
        project = world.create_project(f"p{number}-{rounds}")
        world.create_service_account(f"robot {number}-{rounds}")
        with rls.tenant_scope(world.tenant.pk):
            members.add(
                tenant=world.tenant,
                user=user,
                role=Role.MEMBER,
                project=project,
                actor=SYSTEM,
                now=current_time(),
            )
            quotas.set_limit(project=project, kind=QuotaKind.UNITS, limit=1, actor=SYSTEM, now=current_time())
            tokens.issue(
                tenant=world.tenant,
                name="t",
                scopes=["leases:read"],
                expires_at=current_time() + tokens.MAX_LIFETIME,
                actor=SYSTEM,
                now=current_time(),
                user_id=user.pk,
                project=project,
            )


def count_queries(visit: object, address: str) -> int:
    visit(address)  # what is looked up once per process is not counted
    with CaptureQueriesContext(connection) as seen:
        assert visit(address).status_code == 200
    return len(seen)


@pytest.mark.deep
def test_the_number_of_queries_is_the_same_with_many_rows() -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    browser, api = signed_in(delta.owner), tenant_setup.ApiClient(delta.token())

    def counts() -> dict[str, int]:
        pages = {page: count_queries(browser.get, page) for page in PAGES}
        return pages | {name: count_queries(lambda a: api.send("GET", a), name) for name in API}

    grow(delta, 2)
    few = counts()
    grow(delta, 10)
    assert counts() == few
    assert max(few.values()) <= MOST_ON_A_PAGE, few


@pytest.mark.deep
def test_no_page_with_many_rows_is_larger_than_100_kb() -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    browser = signed_in(delta.owner)
    grow(delta, 90)
    with rls.tenant_scope(delta.tenant.pk):
        for number in range(50):
            asked_in = {"tenant": delta.tenant, "project": None, "grants": tenant_setup.ALL_ROLES, "actor": SYSTEM}
            email = f"somebody.with.a.name-{number}@department.example.org"
            invitations.invite(email=email, role=Role.MEMBER, now=current_time(), **asked_in)
        one = Member.objects.latest("pk").pk
    addresses = (
        *PAGES,
        "/team/?from=38&invitations=38&machines=38",
        f"/projects/{delta.root.pk}/",
        f"/team/members/{one}/",
    )
    large = {address: len(browser.get(address).content) for address in addresses}
    assert {address: size for address, size in large.items() if size > 100_000} == {}


def test_many_projects_are_entered_by_name_instead_of_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_LISTED_PROJECTS", 3)
    delta = tenant_setup.create_tenant_with_owner("Delta")
    browser = signed_in(delta.owner)
    labs = [delta.create_project("Protein lab")]
    labs += [delta.create_project("twin", parent) for parent in (delta.root, labs[0])]
    for page in ("/team/", "/tokens/"):
        html = browser.get(page).content.decode()
        assert html.count('<option value="Protein lab">') == 1
        assert html.count('<option value="twin">') == 1
        assert labs[0].pk not in re.sub(r"(?s)<details class=.menu.*?</details>", "", html)

    def invited(project: str) -> str:
        body = {"email": f"{len(project)}@example.org", "role": "viewer", "project": project}
        return browser.post("/team/invitations/", body, follow=True).content.decode()

    assert "2 projects have this name. Enter the id of one." in invited("Twin")
    assert "This project does not exist." in invited("elsewhere")
    for said in ("protein LAB", labs[1].pk, ""):
        assert "Send this link to" in invited(said)
    with rls.tenant_scope(delta.tenant.pk):
        where = list(Invitation.objects.order_by("id").values_list("project", flat=True))
    assert where == [labs[0].pk, labs[1].pk, None]


@pytest.mark.deep
def test_every_member_and_project_is_reachable_by_pagination() -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    browser = signed_in(delta.owner)
    grow(delta, 90)
    with rls.tenant_scope(delta.tenant.pk):
        emails = set(User.objects.filter(memberships__tenant=delta.tenant).values_list("email", flat=True))
        names = set(Project.objects.values_list("pk", flat=True))
    seen = "".join(
        browser.get(f"{page}?from={n}").content.decode() for n in range(0, 100, 20) for page in ("/team/", "/projects/")
    )
    assert len(emails) == len(names) == 91
    assert [email for email in emails if email not in seen] == []
    assert [pk for pk in names if f'/projects/{pk}/"' not in seen] == []
    assert "91 members, 90 service accounts" in seen
    first = browser.get("/team/").content.decode()
    assert re.findall(r'href="(\?[^"]*)">(?:Next|Previous)', first) == ["?from=38", "?machines=38"]
    for odd in ("-1", "x", "9" * 20, "91", "%00"):
        shown = browser.get(f"/team/?from={odd}&machines={odd}").content
        assert len(re.findall(rb"Change\s*<", shown)) == 38


def test_the_operators_tenant_list_needs_the_same_number_of_queries_with_many_tenants() -> None:
    staff = User.objects.create_user("operator@example.org", is_staff=True)
    browser = signed_in(staff)
    for number in range(3):
        tenant_setup.create_tenant_with_owner(f"Few {number}")
    from django.conf import settings

    before, settings.OPERATORS_REQUIRE_MFA = settings.OPERATORS_REQUIRE_MFA, False
    try:
        few = count_queries(browser.get, "/ops/tenants/")
        for number in range(12):
            tenant_setup.create_tenant_with_owner(f"Many {number}")
        assert count_queries(browser.get, "/ops/tenants/") == few
    finally:
        settings.OPERATORS_REQUIRE_MFA = before
