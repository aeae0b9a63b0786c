"""A correction is picked from rows: a lease, then one of its charged runs."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client, override_settings
from playwright.sync_api import Browser, expect

from tenants.models import User
from tests.browser.portal import Portal

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def operations(portal: Portal) -> Iterator[Portal]:
    """The same portal, with an operator signed in."""
    portal.bill()
    client = Client()
    operator = User.objects.create_user("corrector@example.org", is_staff=True)
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    with override_settings(OPERATORS_REQUIRE_MFA=False):
        yield replace(portal, cookie=client.cookies["sessionid"].value, complaints=[])


@pytest.mark.parametrize("width", [1440, 390])
def test_a_correction_is_picked_from_rows(operations: Portal, chromium: Browser, width: int) -> None:
    with operations.context(chromium, viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.goto("/ops/corrections/")
        page.get_by_role("link", name="Choose a lease").click()
        page.get_by_role("link", name="job-09", exact=True).click()
        page.get_by_role("link", name="Correct charge").click()
        panel = page.get_by_role("region", name="Usage of a lease")
        expect(panel).to_contain_text("job-09")
        expect(panel.locator("#lease-since")).to_have_value("")
        panel.get_by_role("list", name="Charged runs").get_by_role("link").first.click()
        expect(panel.locator("#lease-since")).not_to_have_value("")
        expect(panel.locator("#lease-until")).not_to_have_value("")
        panel.locator("#lease-reason").fill("its GPU was slow")
        panel.get_by_role("button", name="Preview changes").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Usage to refund")
        expect(page.locator("main")).to_contain_text("its GPU was slow")
        expect(page.locator("main a[href^='/ops/leases/lse_']").first).to_be_visible()
    assert operations.complaints == []
