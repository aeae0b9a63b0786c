"""Web terminals: who may open one, what ends it, limits, and the audit log."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F
from django.test import Client

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases import terminal_connections
from ports import clock
from tenants.domain.roles import Role
from tenants.models import ApiToken, AuditEvent, Member, Tenant
from tenants.services.rls import tenant_scope
from tenants.services.sessions import SessionStore
from tests.database import OwnDatabase
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease, simulate
from tests.web.http.test_event_stream import Headers, bearer, run
from web.http import terminal as served
from web.http.terminal import LiveConnectionsApp, TerminalApp

PATIENCE_S = 30.0  # for what normally takes no time: a busy machine is not a failure


class Browser:
    """Client of a terminal that types, reads, and waits for its end."""

    def __init__(
        self, lease: str, headers: Headers, *, query: str = "", application: TerminalApp | None = None
    ) -> None:
        self.path, self.headers, self.query = f"/api/v1/terminals/{lease}", headers, query
        self.application = application or TerminalApp()
        self.accepted, self.code, self.reason, self.shown = False, 0, "", b""
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._changed = asyncio.Event()

    async def __aenter__(self) -> "Browser":
        scope = {
            "type": "websocket",
            "path": self.path,
            "query_string": self.query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in self.headers.items()],
        }
        self._sent.put_nowait({"type": "websocket.connect"})
        self._served = asyncio.ensure_future(self.application(scope, self._sent.get, self._receive))
        self._served.add_done_callback(lambda _: self._changed.set())
        return self

    async def __aexit__(self, *how: object) -> None:
        self._sent.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await asyncio.wait_for(self._served, PATIENCE_S)

    async def _receive(self, message: dict[str, Any]) -> None:
        if message["type"] == "websocket.accept":
            self.accepted = True
        elif message["type"] == "websocket.send":
            self.shown += message["bytes"]
        else:
            self.code, self.reason = message.get("code", 1006), message.get("reason", "")
        self._changed.set()

    def type(self, keys: bytes) -> None:
        self._sent.put_nowait({"type": "websocket.receive", "bytes": keys})

    def tell(self, text: str) -> None:
        self._sent.put_nowait({"type": "websocket.receive", "text": text})

    async def until(self, shown: bytes) -> None:
        """Wait until something is on the screen."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while shown not in self.shown and not self._served.done():
                    self._changed.clear()
                    await self._changed.wait()
        assert shown in self.shown, (self.shown, self.code, self.reason)

    async def until_closed(self) -> tuple[int, str]:
        """Wait until the server closes; return the code and the sentence."""
        await asyncio.wait_for(asyncio.shield(self._served), PATIENCE_S)
        return self.code, self.reason


@pytest.fixture(autouse=True)
def _check_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "CHECK_INTERVAL_S", 0.05)


@pytest.fixture
def world(own_database: OwnDatabase) -> Iterator[Simulation]:
    with simulate() as sim:
        create_gpus(1)
        yield sim


@pytest.fixture
def kestrel(world: Simulation) -> TenantContext:
    return create_tenant("Kestrel")


@pytest.fixture
def lease(world: Simulation, kestrel: TenantContext) -> Lease:
    return world.create_lease(kestrel, offering(), name="fold", workload="jupyter", env={"MODE": "fast"})


def cookie_of(owner: TenantContext, role: Role = Role.MEMBER) -> tuple[Headers, str]:
    """Return the headers of a signed-in member's page, and the session's key."""
    client = Client()
    client.force_login(owner.create_member(role))
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    return {"cookie": f"{settings.SESSION_COOKIE_NAME}={key}", "origin": settings.PUBLIC_URL}, key


def events(owner: TenantContext) -> list[AuditEvent]:
    with tenant_scope(owner.tenant.pk):
        found = AuditEvent.objects.filter(tenant_id=owner.tenant.pk, action__startswith="lease.terminal")
        return list(found.order_by("at", "id"))


def closing(lease_id: str, headers: Headers, **how: Any) -> tuple[bool, int, str]:
    """Open a terminal; return whether it was accepted, the code and the text."""
    browser = Browser(lease_id, headers, **how)

    async def open_it() -> None:
        async with browser:
            await browser.until_closed()

    run(open_it())
    return browser.accepted, browser.code, browser.reason


def test_a_member_types_and_reads_and_the_audit_log_records_it(kestrel: TenantContext, lease: Lease) -> None:
    headers, _ = cookie_of(kestrel)

    async def use() -> None:
        async with Browser(lease.pk, headers, query="columns=100&rows=30") as browser:
            await browser.until(b"nothing is executed")
            browser.type(b"echo $MODE; echo secret-word\r")
            await browser.until(b"\r\nfast\r\nsecret-word\r\n")
            browser.tell(json.dumps({"type": "resize", "columns": 80, "rows": 24}))
            browser.type(b"nvidia-smi -L\r")
            await browser.until(b"MIG 1g.10gb")
            browser.type(b"exit 3\r")
            assert await browser.until_closed() == (1000, "the shell exited with code 3")

    run(use())
    opened, closed = events(kestrel)
    assert (opened.action, opened.subject_id, opened.actor_kind) == ("lease.terminal_open", lease.pk, "user")
    assert (closed.action, closed.actor_id) == ("lease.terminal_close", opened.actor_id)
    assert closed.detail == {"duration_s": 0, "why": "the shell exited with code 3"}
    assert "secret-word" not in f"{opened.detail} {closed.detail}"


def test_a_token_needs_no_origin(kestrel: TenantContext, lease: Lease) -> None:
    headers = bearer(kestrel)

    async def use() -> None:
        async with Browser(lease.pk, headers) as browser:
            browser.type(b"echo hi\r")
            await browser.until(b"\r\nhi\r\n")

    run(use())
    assert [event.detail.get("why") for event in events(kestrel)] == [None, "the browser disconnected"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", f"{settings.PUBLIC_URL}.evil.example", None])
def test_a_foreign_page_is_refused_before_the_handshake(
    origin: str | None, kestrel: TenantContext, lease: Lease
) -> None:
    headers, _ = cookie_of(kestrel)
    del headers["origin"]
    accepted, code, _ = closing(lease.pk, headers if origin is None else {**headers, "origin": origin})
    assert (accepted, code) == (False, 1006)
    assert events(kestrel) == []


def test_another_path_is_refused(kestrel: TenantContext) -> None:
    assert closing("lse_1/../x", bearer(kestrel))[0] is False


def test_nobody_is_let_in_without_a_session_or_with_a_wrong_token(lease: Lease) -> None:
    origin = {"origin": settings.PUBLIC_URL}
    for headers in (
        origin,
        {**origin, "cookie": f"{settings.SESSION_COOKIE_NAME}=wrong"},
        {**origin, "cookie": "\x01=;;;"},
        {"authorization": "Bearer gpb_live_x_y"},
    ):
        assert closing(lease.pk, headers)[1] == 4401


@pytest.mark.parametrize("role", [Role.VIEWER, Role.BILLING])
def test_who_may_only_read_leases_gets_no_terminal(role: Role, kestrel: TenantContext, lease: Lease) -> None:
    headers, _ = cookie_of(kestrel, role)
    _, code, why = closing(lease.pk, headers)
    assert (code, why[:5]) == (4403, "Only ")
    assert closing(lease.pk, bearer(kestrel, scopes=("leases:read",)))[1] == 4403
    assert events(kestrel) == []


def test_another_tenants_lease_looks_missing(world: Simulation, lease: Lease) -> None:
    swift = create_tenant("Swift")
    headers, _ = cookie_of(swift, Role.OWNER)
    assert closing(lease.pk, headers)[1] == closing(lease.pk, bearer(swift))[1] == 4404
    assert closing("lse_0000000000000000000000000a", headers)[1] == 4404


def test_a_member_of_another_project_does_not_see_the_lease(kestrel: TenantContext, lease: Lease) -> None:
    client = Client()
    client.force_login(kestrel.create_member(Role.ADMIN, kestrel.create_project("Elsewhere")))
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    headers = {"cookie": f"{settings.SESSION_COOKIE_NAME}={key}", "origin": settings.PUBLIC_URL}
    assert closing(lease.pk, headers)[1] == 4404


def test_a_queued_lease_has_no_terminal(world: Simulation, kestrel: TenantContext) -> None:
    queued = world.create_lease(kestrel, offering(), LeaseState.QUEUED)
    _, code, why = closing(queued.pk, bearer(kestrel))
    assert code == 4409
    assert "is queued; a terminal needs an active lease" in why


def end_of(browser: Browser, act: Any) -> tuple[int, str]:
    """Return how a terminal ends after something else happened."""

    async def use() -> None:
        async with browser:
            await browser.until(b"$ ")
            await asyncio.to_thread(act)
            await browser.until_closed()

    run(use())
    return browser.code, browser.reason


def test_it_closes_when_the_lease_ends(world: Simulation, kestrel: TenantContext, lease: Lease) -> None:
    code, why = end_of(Browser(lease.pk, bearer(kestrel)), lambda: world.release_lease(lease))
    assert code == 4409
    assert why.startswith("fold is releasing; a terminal needs an active lease.")
    assert events(kestrel)[-1].detail["why"].startswith("fold is releasing")


def test_it_closes_when_the_lease_was_started_again(kestrel: TenantContext, lease: Lease) -> None:
    def start_again() -> None:
        with tenant_scope(lease.tenant_id):
            Lease.objects.filter(pk=lease.pk).update(generation=F("generation") + 1)

    code, why = end_of(Browser(lease.pk, bearer(kestrel)), start_again)
    assert (code, why) == (4409, "fold was started again or moved. Open a new terminal.")


def test_it_closes_when_the_session_ends(kestrel: TenantContext, lease: Lease) -> None:
    headers, key = cookie_of(kestrel)
    assert end_of(Browser(lease.pk, headers), lambda: SessionStore(key).flush())[0] == 4401


def test_it_closes_when_the_token_is_revoked(kestrel: TenantContext, lease: Lease) -> None:
    def revoke() -> None:
        with tenant_scope(lease.tenant_id):
            ApiToken.objects.update(revoked_at=clock.now())

    assert end_of(Browser(lease.pk, bearer(kestrel)), revoke)[0] == 4401


def test_it_closes_when_the_role_no_longer_allows_it(kestrel: TenantContext, lease: Lease) -> None:
    headers, _ = cookie_of(kestrel)

    def degrade() -> None:
        with tenant_scope(lease.tenant_id):
            Member.objects.filter(role=Role.MEMBER).update(role=Role.VIEWER)

    assert end_of(Browser(lease.pk, headers), degrade)[0] == 4403


def test_it_closes_when_the_tenant_is_suspended(kestrel: TenantContext, lease: Lease) -> None:
    def suspend() -> None:
        with tenant_scope(lease.tenant_id):
            Tenant.objects.filter(pk=lease.tenant_id).update(suspended_at=clock.now())

    assert end_of(Browser(lease.pk, bearer(kestrel)), suspend)[0] == 4403


def test_it_stays_open_when_its_user_switches_to_another_tenant(kestrel: TenantContext, lease: Lease) -> None:
    headers, key = cookie_of(kestrel)
    session = SessionStore(key)
    session["tenant"] = create_tenant("Swift").tenant.pk
    session.save()

    async def use() -> None:
        async with Browser(lease.pk, headers) as browser:
            await browser.until(b"$ ")
            await asyncio.sleep(0.3)
            browser.type(b"echo still here\r")
            await browser.until(b"\r\nstill here")

    run(use())


def test_an_unused_terminal_closes(kestrel: TenantContext, lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "IDLE_S", 0.1)
    assert end_of(Browser(lease.pk, bearer(kestrel)), lambda: None)[0] == 4408


def test_a_terminal_closes_after_its_longest_time(
    kestrel: TenantContext, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "MAX_OPEN_S", 0.1)
    code, why = end_of(Browser(lease.pk, bearer(kestrel)), lambda: None)
    assert (code, why[:27]) == (4408, "A terminal is open for at m")


@pytest.mark.parametrize("limit", ["MAX_OF_LEASE", "MAX_OF_TENANT", "MAX_OF_PROCESS"])
def test_too_many_terminals_are_refused_until_one_closes(
    limit: str, kestrel: TenantContext, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, limit, 1)
    application, headers = TerminalApp(), bearer(kestrel)

    async def use() -> None:
        async with Browser(lease.pk, headers, application=application) as first:
            await first.until(b"$ ")
            async with Browser(lease.pk, headers, application=application) as second:
                assert (await second.until_closed())[0] == 4429
        async with Browser(lease.pk, headers, application=application) as third:
            await third.until(b"$ ")

    run(use())


def test_huge_messages_close_it(kestrel: TenantContext, lease: Lease) -> None:
    headers = bearer(kestrel)

    async def use() -> None:
        for say in (lambda b: b.type(b"x" * 70_000), lambda b: b.tell("x" * 2000)):
            async with Browser(lease.pk, headers) as browser:
                await browser.until(b"$ ")
                say(browser)
                assert (await browser.until_closed())[0] == 1009

    run(use())


def test_malformed_sizes_and_hostile_bytes_change_nothing(kestrel: TenantContext, lease: Lease) -> None:
    headers = bearer(kestrel)

    async def use() -> None:
        async with Browser(lease.pk, headers, query="columns=-1&rows=1e9&rows=%ff") as browser:
            for text in (
                "{",
                "[" * 900,
                "null",
                "7",
                '{"type":"resize"}',
                '{"type":"resize","columns":1e99,"rows":[]}',
            ):
                browser.tell(text)
            browser.tell('{"type":"resize","columns":99999,"rows":99999}')
            browser.type(bytes(range(5, 256)) * 4 + b"\x03")
            browser.type(b"\x1b[" * 500 + b"\x03echo alive\r")
            await browser.until(b"\r\nalive\r\n")

    run(use())


def test_the_database_may_be_away_for_a_moment_but_not_for_long(
    kestrel: TenantContext, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    def fail(*arguments: object, **names: object) -> None:
        raise OperationalError("away")

    def go_away() -> None:
        monkeypatch.setattr(served, "authenticate_headers", fail)

    assert end_of(Browser(lease.pk, bearer(kestrel)), go_away)[0] == 4503


def test_a_cluster_that_cannot_be_reached_says_why(
    kestrel: TenantContext, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*arguments: object) -> None:
        raise served.TerminalUnavailable("The cluster did not answer.")

    monkeypatch.setattr(served, "connect_terminal", refuse)
    assert closing(lease.pk, bearer(kestrel))[1:] == (1011, "The cluster did not answer.")
    assert [event.action for event in events(kestrel)] == ["lease.terminal_open", "lease.terminal_close"]


def test_keys_wait_while_nobody_reads(kestrel: TenantContext, lease: Lease) -> None:
    target_facts = terminal_connections.BoxFacts()

    async def flood() -> None:
        from broker.provisioners import simulated_terminal

        terminal = simulated_terminal.SimulatedTerminal(target_facts)
        await terminal.write(b"help\r" * 800)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(terminal.write(b"help\r" * 800), 0.05)
        await terminal.read()
        await terminal.write(b"exit\r")
        await terminal.read()
        assert await terminal.read() == b""
        await terminal.close()

    run(flood())


def test_events_and_terminals_share_a_server() -> None:
    seen: list[str] = []

    def application(name: str) -> Any:
        async def serve(scope: dict[str, Any], receive: Any, send: Any) -> None:
            seen.append(f"{name} {scope['type']}")

        return serve

    async def use() -> None:
        both = LiveConnectionsApp(application("events"), application("terminals"))
        for kind in ("lifespan", "http", "websocket"):
            await both({"type": kind}, None, None)  # type: ignore[arg-type]

    asyncio.run(use())
    assert seen == ["events lifespan", "events http", "terminals websocket"]


def test_a_command_that_sleeps_goes_on_by_itself(world: Simulation, kestrel: TenantContext, lease: Lease) -> None:
    headers = bearer(kestrel)

    async def use() -> None:
        async with Browser(lease.pk, headers) as browser:
            browser.type(b"sleep 0.1; echo awake\r")
            await browser.until(b"sleep 0.1")
            world.clock.at += timedelta(seconds=1)
            await browser.until(b"\r\nawake\r\n")

    run(use())
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_every_close_code_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "web-terminal.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d{4}) \|", text, re.MULTILINE)}
    used = {served.NORMAL, served.GOING_AWAY, served.TOO_LARGE, served.FAILED, served.IDLE_CODE, served.LIMIT_CODE}
    assert documented == used | set(served.REFUSED_CODES.values())
