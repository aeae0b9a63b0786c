"""Navigation shows only permitted pages, the same everywhere."""

import re
from typing import Any

import pytest
from django.urls import reverse

from tenants.domain.roles import Role
from tenants.models import User
from tenants.services import members, rls
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner, current_time
from tests.web.portal.team.test_team_pages import Browser, signed_in
from web.portal.layout.navigation import OPS_NAV

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def page_of(browser: Browser, address: str) -> str:
    answer: Any = browser.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def navigation_links(page: str) -> set[str]:
    """Return the links of the side navigation."""
    side = re.search(r'<aside class="side-bar".*?</aside>', page, re.DOTALL)
    assert side
    return set(re.findall(r'<a[^>]* href="(/[^"]*)"', side[0]))


@pytest.mark.parametrize("role", list(Role))
def test_every_navigation_link_can_be_opened_by_the_role(delta: TenantWithOwner, role: Role) -> None:
    browser = signed_in(delta.user_with_role(role, project=delta.create_project("research")))
    found = {way: browser.get(way).status_code for way in navigation_links(page_of(browser, "/team/"))}  # type: ignore[attr-defined]
    assert set(found.values()) == {200}, found


def test_tenant_owners_have_links_to_invoices_and_audit_log(delta: TenantWithOwner) -> None:
    assert {"/invoices/", "/audit/"} <= navigation_links(page_of(signed_in(delta.owner), "/team/"))


def test_a_user_with_two_projects_gets_a_project_switcher(delta: TenantWithOwner) -> None:
    research = delta.create_project("research")
    page = page_of(signed_in(delta.owner), "/team/")
    switcher = re.search(r'<form[^>]* action="/switch-project/">.*?</form>', page, re.DOTALL)
    assert switcher
    assert f'value="{research.pk}"' in switcher[0]


def test_the_operator_navigation_links_to_every_operator_page(settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    operator = signed_in(User.objects.create_user("operator@example.org", is_staff=True))
    named = {reverse(name) for _, entries in OPS_NAV for name, _, _ in entries}
    assert named | {"/help/", "/api-reference/"} <= navigation_links(page_of(operator, "/ops/"))
    assert "/ops/tenants/" in named


@pytest.mark.parametrize("address", ["/payment-method/", "/billing-details/", "/commitments/", "/discounts/"])
def test_payment_pages_mark_invoices_as_the_current_navigation_entry(delta: TenantWithOwner, address: str) -> None:
    page = page_of(signed_in(delta.owner), address)
    assert re.search(r'href="/invoices/"[^>]*aria-current="page"', page)


def test_account_pages_have_the_same_layout_as_other_pages(delta: TenantWithOwner) -> None:
    browser = signed_in(delta.owner)
    for address in ("/account/", "/account/security/", "/account/email/", "/account/password/set/"):
        page = page_of(browser, address)
        assert "Spend rate" in page, address
        assert delta.root.name in page, address
        assert page.count('id="messages"') == page.count("<h1>") == 1, address


def test_a_user_without_a_tenant_has_an_account_page() -> None:
    alone = signed_in(User.objects.create_user("alone@example.org"))
    assert "Two-factor and passkeys" in page_of(alone, "/account/security/")


def test_an_operator_without_a_tenant_gets_no_tenant_links(settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    operator = signed_in(User.objects.create_user("operator@example.org", is_staff=True))
    answer: Any = operator.get("/", follow=True)
    assert answer.redirect_chain[-1][0] == "/ops/"
    assert "Tenant pages" not in answer.content.decode()
    assert "/ops/" in navigation_links(page_of(operator, "/account/"))
    operator.post("/create-tenant/", {"organisation": "Own", "country": "DE", "currency": "EUR", "time_zone": "UTC"})
    assert "/" in navigation_links(page_of(operator, "/ops/"))


@pytest.mark.parametrize("address", ["/team/", "/account/"])
def test_an_operator_who_joins_a_tenant_gets_tenant_links(settings: Any, delta: TenantWithOwner, address: str) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    operator = User.objects.create_user("operator@example.org", is_staff=True)
    browser = signed_in(operator)
    assert browser.get("/create-tenant/")["Location"] == "/ops/"
    with rls.tenant_scope(delta.tenant.pk):
        members.add(tenant=delta.tenant, user=operator, role=Role.ADMIN, project=None, actor=SYSTEM, now=current_time())
    assert "/tokens/" in navigation_links(page_of(browser, address))
    assert "Tenant pages" in page_of(browser, "/ops/tenants/")
