"""The frame of the pages: it leads only to where its visitor is let in, and is the same on all of them."""

import re
from typing import Any

import pytest

from tenants.domain.roles import Role
from tenants.models import User
from tenants.services import members, walls
from tenants.services.actors import SYSTEM
from tests.tenants import people
from tests.tenants.people import World, moment
from tests.tenants.portal.test_pages import Browser, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> World:
    return people.make("Delta")


def page_of(browser: Browser, address: str) -> str:
    answer: Any = browser.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def ways(page: str) -> set[str]:
    """Return where the side navigation leads."""
    side = re.search(r'<aside class="side".*?</aside>', page, re.DOTALL)
    assert side
    return set(re.findall(r'<a[^>]* href="(/[^"]*)"', side[0]))


@pytest.mark.parametrize("role", list(Role))
def test_every_way_in_the_navigation_is_open_to_who_sees_it(delta: World, role: Role) -> None:
    browser = signed_in(delta.person(role, project=delta.child("research")))
    found = {way: browser.get(way).status_code for way in ways(page_of(browser, "/team/"))}  # type: ignore[attr-defined]
    assert set(found.values()) == {200}, found


def test_who_leads_the_whole_tenant_is_led_to_its_invoices_and_its_trail(delta: World) -> None:
    assert {"/invoices/", "/audit/"} <= ways(page_of(signed_in(delta.owner), "/team/"))


def test_the_pages_of_an_account_have_the_frame_of_all_others(delta: World) -> None:
    browser = signed_in(delta.owner)
    for address in ("/account/", "/account/security/", "/account/email/", "/account/password/set/"):
        page = page_of(browser, address)
        assert "Burn now" in page, address
        assert delta.root.name in page, address


def test_somebody_without_a_tenant_has_an_account_page_all_the_same() -> None:
    alone = signed_in(User.objects.create_user("alone@example.org"))
    assert "Two-factor and passkeys" in page_of(alone, "/account/security/")


def test_an_operator_of_no_tenant_is_led_to_none(settings: Any) -> None:
    settings.OPERATORS_NEED_MFA = False
    operator = signed_in(User.objects.create_user("operator@example.org", is_staff=True))
    answer: Any = operator.get("/", follow=True)
    assert answer.redirect_chain[-1][0] == "/ops/"
    assert "Tenant pages" not in answer.content.decode()
    assert "/ops/" in ways(page_of(operator, "/account/"))
    operator.post("/start/", {"name": "Own", "time_zone": "UTC"})
    assert "/" in ways(page_of(operator, "/ops/"))


@pytest.mark.parametrize("address", ["/team/", "/account/"])
def test_an_operator_who_joined_a_tenant_since_is_led_to_it(
    settings: Any, delta: World, address: str
) -> None:
    settings.OPERATORS_NEED_MFA = False
    operator = User.objects.create_user("operator@example.org", is_staff=True)
    browser = signed_in(operator)
    assert browser.get("/start/")["Location"] == "/ops/"
    with walls.as_tenant(delta.tenant.pk):
        members.add(
            tenant=delta.tenant, user=operator, role=Role.ADMIN, project=None, actor=SYSTEM, now=moment()
        )
    assert "/tokens/" in ways(page_of(browser, address))
    assert "Tenant pages" in page_of(browser, "/ops/tenants/")
