"""Every form of tenants and operators: refused values stay, the first error has the focus, and danger asks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from django.test import Client, override_settings
from playwright.sync_api import Browser, Page, expect

from broker.models import Cluster, Offering
from tenants.models import User
from tests.browser.form_walk import FoundForm, find_forms, send_wrong_values
from tests.browser.portal import Portal
from tests.browser.test_operations import addresses

pytestmark = pytest.mark.browser
NOT_KEPT = {"value", "kubeconfig", "username"}  # secrets, and what might be one in the wrong field
# Buttons that are disabled: each page says why, or the button wakes once something is typed.
DISABLED = """() => [...document.querySelectorAll('main button:disabled')].map((each) => ({
  text: each.textContent.trim(),
  wakes: each.hasAttribute('data-wakes'),
  said: Boolean(document.querySelector('main .notice, main .field-error')),
}))"""
# What a dangerous control does when pressed: it leads to a page, opens a question, or acts within one.
DANGER = """() => [...document.querySelectorAll('.button-danger, .button-danger-solid')].map((each) => ({
  text: each.textContent.trim().replace(/\\s+/g, ' '),
  asks: each.localName === 'a' || each.type === 'button' || Boolean(each.closest('[popover], dialog, .confirmation')
    || each.form?.querySelector('.button-quiet, [required]')),
}))"""


@pytest.fixture(scope="module")
def operations(portal: Portal) -> Iterator[Portal]:
    """The same portal, with an operator signed in."""
    client = Client()
    operator = User.objects.create_user("clerk@example.org", is_staff=True)
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    with override_settings(OPERATORS_REQUIRE_MFA=False):
        yield replace(portal, cookie=client.cookies["sessionid"].value, complaints=[])


def operators_pages(portal: Portal) -> dict[str, str]:
    """Return the operators' pages, also those with nothing but a form."""
    tenant, invoice, lease = portal.owner.tenant.pk, portal.declined, portal.leases["fold"]
    offering, cluster = Offering.objects.all()[0].pk, Cluster.objects.all()[0].pk
    others = (
        "approvals/", "bank-receipts/", "bank-entries/", "grants/", "commitments/", "discounts/", "disputes/",
        "tokens/", "accounting/", "accounting/settings/", "tenants/new/", "templates/", "templates/new/",
        "clusters/add/", f"clusters/{cluster}/images/", f"clusters/{cluster}/allow-sharing/", "month-reviews/",
        f"tenants/{tenant}/payment-terms/", f"tenants/{tenant}/grants/new/", f"tenants/{tenant}/approval-limits/",
        f"tenants/{tenant}/currency/", f"invoices/{invoice}/write-off/", f"invoices/{invoice}/rebill/",
        f"offerings/{offering}/tenant-prices/", f"offerings/{offering}/retire/", f"leases/{lease}/release/",
        "relocation-plans/", "relocation-plans/propose/", "stripe/",
    )  # fmt: skip
    return addresses(portal) | {other: f"/ops/{other}" for other in others}


def refused_wrongly(page: Page, address: str, form: FoundForm) -> list[str]:
    """Send wrong values to a form; return what is not as it should be."""
    page.goto(address)
    sent, state = send_wrong_values(page, form)
    if not state["refused"]:
        return [f"{form.kind} is not refused"]
    lost = [name for name, text in sent.items() if name not in NOT_KEPT and [name, text] not in state["values"]]
    found = [f"{form.kind} loses {lost}"] if lost else []
    first = state["marked"][0] if state["marked"] else state["focused"]
    if not first or state["focused"] != first:
        found.append(f"{form.kind} focuses {state['focused']!r} instead of {first!r}")
    return found


def walk_forms(portal: Portal, chromium: Browser, pages: Mapping[str, str]) -> tuple[int, list[str]]:
    """Send wrong values to each kind of form once; return how many there are, and what is wrong."""
    seen, wrong = set[object](), list[str]()
    with portal.context(chromium) as context:
        page = context.new_page()
        for address in pages.values():
            page.goto(address)
            for form in find_forms(page):
                if form.kind not in seen:
                    seen.add(form.kind)
                    wrong += refused_wrongly(page, address, form)
    return len(seen), wrong


@pytest.mark.deep  # it walks all pages
def test_every_form_of_tenants_keeps_its_values_and_focuses_the_first_error(portal: Portal, chromium: Browser) -> None:
    count, wrong = walk_forms(portal, chromium, portal.pages)  # some 20 pages are sent, a second each
    assert wrong == []
    assert count >= 18


@pytest.mark.deep  # it walks all pages
def test_every_form_of_operators_keeps_its_values_and_focuses_the_first_error(
    operations: Portal, chromium: Browser
) -> None:
    count, wrong = walk_forms(operations, chromium, operators_pages(operations))  # some 30 forms, a second each
    assert wrong == []
    assert count >= 28


@pytest.mark.deep  # it walks all pages
@pytest.mark.parametrize("whose", ["tenant", "operator"])
def test_no_button_is_disabled_without_a_reason_and_dangerous_ones_ask(
    portal: Portal, operations: Portal, chromium: Browser, whose: str
) -> None:
    visitor, pages = (portal, portal.pages) if whose == "tenant" else (operations, operators_pages(operations))
    silent, rash, woken = [], [], 0
    with visitor.context(chromium) as context:
        page = context.new_page()
        for name, address in pages.items():
            page.goto(address)
            disabled = page.evaluate(DISABLED)
            silent += [(name, each["text"]) for each in disabled if not (each["wakes"] or each["said"])]
            rash += [(name, each["text"]) for each in page.evaluate(DANGER) if not each["asks"]]
            if any(each["wakes"] for each in disabled):
                woken += 1
                page.route("**/launch/quote/", lambda route: None)  # the answer never comes
                page.locator("main form input[type=text]").first.press_sequentially("x")
                expect(page.locator("main button:disabled[data-wakes]")).to_have_count(0)
                page.unroute_all(behavior="ignoreErrors")
    assert silent == []
    assert rash == []
    assert woken == (1 if whose == "tenant" else 0), "the launch page with an error"
