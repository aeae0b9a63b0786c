"""Forms keep what was typed, actions ask and lead to their page, and errors keep the menu."""

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import Resolver404, resolve

from billing.models import Budget
from broker.domain.lifecycle.states import LeaseState
from tenants.domain.roles import Role
from tenants.models import ApiToken, Project, Quota, QuotaKind, User
from tenants.services import quotas
from tenants.services.rls import tenant_scope
from tests.architecture import routes
from tests.billing.budgets.budget_setup import create_budget
from tests.simulation import offering
from tests.web.portal.signed_in_user import PortalSession, visible_text
from tests.web.ui.style_page import get_style_page
from web.portal.action_addresses import page_above

pytestmark = pytest.mark.django_db


def kept_form(page: Any) -> dict[str, Any] | None:
    found = re.search(r'<script id="kept-form" type="application/json">(.*?)</script>', page.content.decode())
    return json.loads(found[1]) if found else None


def test_a_refused_form_in_a_drawer_is_handed_back_once_with_its_errors(portal: PortalSession) -> None:
    root = portal.owner.project.pk
    portal.post("/projects/new/", name="docking", project=root)
    answer = portal.post("/projects/new/", name="docking", project=root)
    kept = kept_form(portal.get(answer["Location"]))
    assert kept is not None
    assert kept["action"] == "/projects/new/"
    assert kept["values"] == {"name": ["docking"], "project": [root]}
    assert "" not in kept["errors"], "a button has no name, and is not what is wrong"
    assert kept_form(portal.get("/projects/")) is None
    portal.post("/projects/new/", name="", project=root)
    kept = kept_form(portal.get("/projects/"))
    assert kept is not None
    assert set(kept["errors"]) == {"name"}


def test_a_kept_form_is_forgotten_once_another_succeeds_and_holds_no_secret(portal: PortalSession) -> None:
    root = portal.owner.project.pk
    portal.post("/projects/new/", name="", project=root, value="s3cret", password="s3cret")
    assert "s3cret" not in str(kept_form(portal.get("/projects/")))
    portal.post("/projects/new/", name="", project=root)
    portal.post("/projects/new/", name="docking", project=root)
    assert kept_form(portal.get("/projects/")) is None


def test_budget_token_and_key_are_removed_after_a_question_only(portal: PortalSession) -> None:
    budget = create_budget(portal.owner, 500, portal.sim)
    portal.owner.token(now=portal.sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        token = ApiToken.objects.get()
    assert "Remove the budget of Kestrel? Its monthly limit of €5.00 no longer blocks" in portal.read(
        f"/budgets/{budget.pk}/remove/"
    )
    assert "Revoke test? Clients that use it stop working at once" in portal.read(f"/tokens/{token.pk}/revoke/")
    with tenant_scope(portal.owner.tenant.pk):
        assert Budget.objects.exists()
        assert ApiToken.objects.get().revoked_at is None
    assert f'href="/budgets/{budget.pk}/remove/"' in portal.get("/budgets/").content.decode()
    assert f'href="/tokens/{token.pk}/revoke/"' in portal.get("/tokens/").content.decode()
    portal.post(f"/tokens/{token.pk}/revoke/")
    with tenant_scope(portal.owner.tenant.pk):
        assert ApiToken.objects.get().revoked_at is not None


def test_archiving_a_project_asks_first(portal: PortalSession) -> None:
    child = portal.owner.create_project("docking")
    page = portal.get(f"/projects/{child.pk}/").content.decode()
    assert re.search(r'<button[^>]*type="button" popovertarget="archive"', page)
    assert "Archive docking?" in page


def test_the_quota_form_of_a_project_shows_todays_limit_and_lifts_it(portal: PortalSession) -> None:
    child = portal.owner.create_project("docking")
    with tenant_scope(portal.owner.tenant.pk):
        quotas.set_limit(
            project=Project.objects.get(pk=child.pk),
            kind=QuotaKind.UNITS,
            limit=2500,
            actor=portal.owner.actor,
            now=portal.sim.now,
        )
    page = portal.get(f"/projects/{child.pk}/").content.decode()
    assert re.search(rf'id="l-units-{child.pk}"[^>]*value="2.5"', page)
    answer = portal.post(f"/projects/{child.pk}/quota/", kind="units", limit="")
    assert answer["Location"] == f"/projects/{child.pk}/"
    with tenant_scope(portal.owner.tenant.pk):
        assert not Quota.objects.filter(project=child.pk).exists()


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/projects/prj_1/archive/", "/projects/prj_1/"),
        ("/team/service-accounts/", "/team/"),
        ("/wallet/top-up/", "/wallet/"),
        ("/disputes/dsp_1/withdraw/", "/invoices/"),
        ("/switch-project/", "/"),
        ("/ops/tenants/ten_1/suspend/", "/ops/tenants/ten_1/"),
        ("/ops/offerings/derive/", "/ops/offerings/"),
        ("/ops/notifications/ntf_1/resend/", "/ops/system/"),
    ],
)
def test_reading_an_action_leads_to_its_page(portal: PortalSession, address: str, page: str) -> None:
    assert page_above(address) == page
    answer = portal.get(address)
    assert (answer.status_code, answer["Location"]) == (302, page)


def portal_routes() -> list[str]:
    """Return the routes of the portal's pages and actions; sign-in has its own."""
    return [route for route in routes.walk() if resolve_route(route).__module__.startswith("web.portal.")]


def resolve_route(route: str) -> Any:
    """Return the view of a route, whatever its ids are; of others than the portal's, anything."""
    try:
        return resolve(some_address(route)).func
    except Resolver404:  # an expression of another package
        return open


def some_address(route: str) -> str:
    """Return an address of a route with ids that nothing has."""
    return routes.address(route, *("999999999" if "int:" in each else "xxx_0" for each in routes.PLACE.findall(route)))


def test_every_action_that_is_read_leads_to_a_page(portal: PortalSession, settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    actions, wrong = 0, []
    for route in portal_routes():
        address = some_address(route)
        answer: Any = (operator if address.startswith("/ops/") else portal.client).get(address)
        is_action = "GET" not in getattr(resolve_route(route), "methods", ("GET",))
        actions += is_action
        page = answer["Location"].partition("?")[0] if answer.status_code == 302 else ""
        leads = page and "GET" in getattr(resolve(page).func, "methods", ("GET",))
        if answer.status_code == 405 or (is_action and not leads):
            wrong.append((address, answer.status_code, page))
    assert wrong == []
    assert actions > 20


def test_what_does_not_exist_keeps_the_menu_on_every_page(portal: PortalSession, settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    asked, bare = 0, []
    for route in portal_routes():
        view = resolve_route(route)
        if not routes.places(route) or "GET" not in getattr(view, "methods", ()):
            continue
        address = some_address(route)
        ops = address.startswith("/ops/")
        answer: Any = (operator if ops else portal.client).get(address)
        asked += 1
        menu = 'href="/ops/queue/"' if ops else 'href="/budgets/"'
        if answer.status_code != 404 or menu not in answer.content.decode():
            bare.append((address, answer.status_code))
    assert bare == []
    assert asked > 60


def test_errors_keep_the_menu_of_whoever_is_signed_in(portal: PortalSession, settings: Any) -> None:
    for address in ("/nowhere/", "/leases/lse_0/"):
        answer = portal.get(address)
        assert answer.status_code == 404
        assert 'href="/budgets/"' in answer.content.decode(), address
        assert "Kestrel" in visible_text(answer)
    refused = portal.sign_in_as(Role.VIEWER).get("/wallet/")
    assert refused.status_code == 403
    assert 'href="/leases/"' in refused.content.decode()
    assert 'href="/budgets/"' not in Client().get("/nowhere/").content.decode()
    settings.OPERATORS_REQUIRE_MFA = False
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    for address in ("/ops/tenants/ten_0/", "/ops/nowhere/", "/ops/stripe/differences/x/acknowledge/"):
        lost = operator.get(address)
        assert lost.status_code == 404, address
        assert 'href="/ops/queue/"' in lost.content.decode(), address


def test_the_top_bar_of_an_error_states_the_same_as_that_of_a_page(portal: PortalSession, settings: Any) -> None:
    portal.sim.create_lease(portal.owner, offering("3g.40gb"), name="fold")
    portal.sim.run(60)
    settings.OPERATORS_REQUIRE_MFA = False
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    figures = re.compile(r"Sold now ([\d.]+ %) Revenue (€[\d.]+/h)")
    shown = figures.search(visible_text(operator.get("/ops/tenants/")))
    lost = figures.search(visible_text(operator.get("/ops/tenants/ten_0/")))
    assert shown
    assert lost
    assert shown.groups() == lost.groups()
    assert shown[2] == "€3.00/h"


def test_a_released_lease_offers_no_acts(portal: PortalSession, settings: Any) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), LeaseState.RELEASED, name="over")
    page = portal.get(f"/leases/{lease.pk}/").content.decode()
    acts = re.findall(r"/leases/\w+/(extend|release|stop|start|end-terms|allow-relocation)/", page)
    assert acts == []
    for act in ("extend", "release", "end-terms"):
        answer = portal.get(f"/leases/{lease.pk}/{act}/")
        assert (answer.status_code, answer["Location"]) == (302, f"/leases/{lease.pk}/")
    assert "over has ended; launch a new lease instead." in portal.read(f"/leases/{lease.pk}/")
    for listed in ("/leases/?state=all", "/?whose=all"):
        assert not re.search(rf"/leases/{lease.pk}/(extend|release|stop|start)/", portal.get(listed).content.decode())
    settings.OPERATORS_REQUIRE_MFA = False
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    for address in (f"/ops/leases/{lease.pk}/", "/ops/leases/?state=all"):
        assert f"/ops/leases/{lease.pk}/release/" not in operator.get(address).content.decode(), address


def test_the_style_page_is_for_operators_in_development(portal: PortalSession, settings: Any) -> None:
    assert get_style_page().status_code == 200
    settings.STYLE_GUIDE = True
    assert portal.get("/styleguide/").status_code == 404
    assert "Style guide" not in portal.read("/")
    settings.STYLE_GUIDE, settings.OPERATORS_REQUIRE_MFA = False, False
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    assert operator.get("/styleguide/").status_code == 404
    assert "Style guide" not in visible_text(operator.get("/ops/"))
    settings.STYLE_GUIDE = True
    assert "Style guide" in visible_text(operator.get("/ops/"))


def test_help_and_api_reference_are_in_the_menu(portal: PortalSession, settings: Any) -> None:
    menu = portal.get("/").content.decode()
    assert 'href="/help/"' in menu
    assert 'href="/api-reference/"' in menu
    reference = portal.read("/api-reference/")
    assert "POST /api/v1/leases" in reference
    assert "/api/v1/ops/" not in reference
    assert len(portal.get("/api-reference/").content) < 100_000
    settings.OPERATORS_REQUIRE_MFA = False
    operator = Client()
    operator.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    shown = operator.get("/api-reference/")
    assert "GET /api/v1/ops/tenants" in visible_text(shown)
    assert len(shown.content) < 100_000
