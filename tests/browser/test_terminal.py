"""The web terminal in a browser: typing, reading, ending and reconnecting, in both themes and on a phone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import pytest
import uvicorn
from django.conf import settings
from django.test import override_settings
from playwright.sync_api import Browser, Locator, Page, expect

from ports import clock
from tenants.models import AuditEvent
from tenants.services.rls import tenant_scope
from tests.browser.portal import Portal
from tests.web.http.test_event_stream import run
from web.http.event_stream import EventStreamApp
from web.http.terminal import LiveConnectionsApp, TerminalApp

pytestmark = pytest.mark.browser
NOTICE = "Simulated GPU box: commands are imitated, nothing is executed."
VIEWS = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]


@contextmanager
def serve_terminals() -> Iterator[str]:
    """Serve terminals on a free port, as the events process does; return their URL."""
    application = LiveConnectionsApp(EventStreamApp(), TerminalApp())
    server = uvicorn.Server(
        uvicorn.Config(application, host="127.0.0.1", port=0, log_level="warning", ws="websockets-sansio")
    )
    thread = threading.Thread(target=lambda: run(server.serve()))
    thread.start()
    try:
        while not server.started:
            clock.sleep(0.01)
        yield f"ws://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def terminals(portal: Portal) -> Iterator[str]:
    with serve_terminals() as url:
        policy = deepcopy(settings.CONTENT_SECURITY_POLICY)
        policy["DIRECTIVES"]["connect-src"].append(url)
        with override_settings(TERMINALS_URL=url, CONTENT_SECURITY_POLICY=policy):
            yield url


def open_terminal(page: Page, portal: Portal) -> None:
    page.goto(f"/leases/{portal.leases['fold']}/")
    page.get_by_role("link", name="Open terminal").click()
    expect(page.get_by_text("Connected")).to_be_visible()
    expect(screen(page)).to_contain_text(NOTICE[:30])


def screen(page: Page) -> Locator:
    return page.locator(".xterm-rows")


@pytest.mark.parametrize(("width", "theme"), VIEWS)
def test_a_person_types_echo_and_reads_the_answer(
    portal: Portal, terminals: str, chromium: Browser, width: int, theme: str, tmp_path: Path
) -> None:
    viewport = {"width": width, "height": 844}
    with portal.context(chromium, viewport=viewport, color_scheme=theme) as context:
        page = context.new_page()
        open_terminal(page, portal)
        page.keyboard.type("echo hi-$USER\n")
        expect(screen(page)).to_contain_text("hi-gpubroker")
        page.keyboard.type("nvidia-smi -L\n")
        expect(screen(page)).to_contain_text("NVIDIA H100 SXM 80GB")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.screenshot(path=str(tmp_path / f"terminal-{width}-{theme}.png"))
        assert portal.complaints == []


def test_a_shell_that_ends_can_be_opened_again(portal: Portal, terminals: str, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        open_terminal(page, portal)
        expect(page.get_by_role("button", name="Reconnect")).to_be_hidden()
        page.keyboard.type("exit 3\n")
        expect(page.get_by_text("Closed", exact=True)).to_be_visible()
        expect(page.locator("[data-terminal-message]")).to_have_text("The shell exited with code 3.")
        page.get_by_role("button", name="Reconnect").click()
        expect(page.get_by_text("Connected")).to_be_visible()
        page.keyboard.type("echo again\n")
        expect(screen(page)).to_contain_text("again")
        assert portal.complaints == []
    with tenant_scope(portal.owner.tenant.pk):
        found = AuditEvent.objects.filter(action="lease.terminal_close").values_list("detail__why", flat=True)
        assert "the shell exited with code 3" in found


def test_the_keyboard_leaves_the_terminal_with_shift_and_tab(portal: Portal, terminals: str, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        open_terminal(page, portal)
        inside = "document.activeElement.closest('[data-terminal-screen]') !== null"
        assert page.evaluate(inside)
        page.keyboard.press("Tab")
        assert page.evaluate(inside)
        page.keyboard.press("Shift+Tab")
        assert not page.evaluate(inside)


def test_a_lost_connection_is_reported(portal: Portal, terminals: str, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.route_web_socket("**/terminals/*", lambda socket: socket.close(code=1011))
        page.goto(f"/leases/{portal.leases['fold']}/terminal/")
        expect(page.locator("[data-terminal-message]")).to_have_text("The connection was lost.")
        expect(page.get_by_role("button", name="Reconnect")).to_be_visible()
