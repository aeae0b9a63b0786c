"""Visitors of the access matrix, and how answers are compared with it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import connection, transaction
from django.test import Client

from tenants.domain.roles import SCOPES, Role
from tenants.models import User
from tenants.services import members, rls, tenants
from tenants.services.actors import SYSTEM
from tests import tiers
from tests.architecture import routes
from tests.architecture.matrix import ROWS, THINGS, Row, an_invitation
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ALL_ROLES as EVERYTHING
from tests.tenants.tenant_setup import TenantWithOwner, current_time

BY_TOKEN = ("api", "shared")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SAFE = ("GET", "HEAD", "OPTIONS")
CANARY = b"anzibar"  # in every name of the other tenant
# A visit may note itself here without changing anything that anybody sees.
NOTES = re.compile(
    r"UPDATE \"?(tenants_apitoken|django_session)|(INSERT INTO|DELETE FROM) \"?(django_session|cache)"
    r"|INSERT INTO \"billing_storeddocument"
)
WRITES = re.compile(r"^(?:\s|--[^\n]*\n)*(INSERT|UPDATE|DELETE|MERGE|WITH .*(INSERT INTO|UPDATE|DELETE FROM))", re.S)
MASKS = re.compile(rb"[A-Za-z0-9]{64}|nonce-[\w=+/-]+|name=\"once\" value=\"\w+\"")
MALFORMED = ("x", "%00", "a" * 300, "%F0%9F%92%A9", "..%2F..")


class Visitors:
    """Two tenants and all kinds of visitors, created once per test."""

    def __init__(self) -> None:
        self.here, self.there = (
            tenant_setup.create_tenant_with_owner("Delta"),
            tenant_setup.create_tenant_with_owner("Zanzibar"),
        )
        self.there.user_with_role(Role.VIEWER)
        self.staff = User.objects.create_user("operator@example.org", is_staff=True)
        self.tokens = {role.value: self.here.token(role) for role in Role}
        self.tokens["foreign owner"] = self.there.token()
        reads = tuple(sorted(scope for scope in SCOPES if scope.endswith(":read")))
        self.tokens["reading token"] = self.here.token(scopes=reads)
        self.tokens["narrow token"] = self.here.token(scopes=("tokens:read",))
        self._people = {role.value: self.here.user_with_role(role) for role in Role if role != Role.OWNER}
        self._people |= {"owner": self.here.owner, "foreign owner": self.there.owner, "staff": self.staff}
        self._leave()
        self._suspend()
        self.sessions = {name: self._session(user) for name, user in self._people.items()}
        self.ids: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        tenant_setup.leave_tenant()

    def _leave(self) -> None:
        gone = User.objects.create_user("gone@example.org")
        with rls.tenant_scope(self.here.tenant.pk):
            member = members.add(
                tenant=self.here.tenant, user=gone, role=Role.OWNER, project=None, actor=SYSTEM, now=current_time()
            )
            world = TenantWithOwner(self.here.tenant, self.here.root, gone)
            self.tokens["removed member"] = world.token()
            members.remove(member, grants=EVERYTHING, actor=SYSTEM, now=current_time())
        self._people["removed member"] = gone

    def _suspend(self) -> None:
        quiet = tenant_setup.create_tenant_with_owner("Quiet")
        self.tokens["suspended"] = quiet.token()
        self._people["suspended"] = quiet.owner
        self.quiet = quiet
        with rls.tenant_scope(quiet.tenant.pk):
            tenants.suspend(quiet.tenant, actor=SYSTEM, now=current_time(), why="test")

    @staticmethod
    def _session(user: User) -> dict[str, str]:
        client = Client()
        client.force_login(user)
        return {name: morsel.value for name, morsel in client.cookies.items()}

    def thing(self, row: Row, route: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the ids for an address: our own and the other tenant's."""
        if row.thing not in self.ids:
            self.ids[row.thing] = (self._made(row, self.here), self._made(row, self.there))
        assert len(self.ids[row.thing][0]) == routes.places(route), f"{route} has other places than its thing"
        return self.ids[row.thing]

    def _made(self, row: Row, world: TenantWithOwner) -> tuple[str, ...]:
        if row.thing == "link":
            with rls.tenant_scope(world.tenant.pk):
                return (an_invitation(world)[1],)
        if row.thing in ("key", "keys", "security key"):
            return {"key": ("abc",), "keys": ("1", "abc-def"), "security key": ("4711",)}[row.thing]
        made = THINGS[row.thing](world)
        return (made,) if isinstance(made, str) else made


@contextmanager
def rolled_back() -> Iterator[list[str]]:
    """Roll back a request, and return its writing statements."""
    written: list[str] = []

    def listen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if WRITES.match(sql) and not NOTES.search(sql):
            written.append(sql)
        return execute(sql, params, many, context)

    with transaction.atomic():
        with connection.execute_wrapper(listen):
            yield written
        transaction.set_rollback(True)


@cache
def _browser(checks: bool) -> Client:
    return Client(enforce_csrf_checks=checks, raise_request_exception=False)


def browser(*, checks: bool = False) -> Client:
    """Return a client without cookies, with shared middleware."""
    client = _browser(checks)
    client.cookies.clear()
    return client


class VisitorRequest:
    """One request of one visitor with its response."""

    def __init__(self, who: Visitors, row: Row, visitor: str, method: str, path: str, **more: Any) -> None:
        self.row, self.visitor, self.method, self.path = row, visitor, method, path
        client = browser()
        headers = {"X-Request-ID": "matrix", "If-Match": "*", "Idempotency-Key": "matrix"}
        bearer = row.kind in BY_TOKEN and visitor in who.tokens
        if bearer:
            headers["Authorization"] = f"Bearer {who.tokens[visitor]}"
        elif visitor in who.sessions:
            client.cookies.load(who.sessions[visitor])
        body = more.get("body")
        if row.kind in BY_TOKEN:
            form: dict[str, Any] = {"data": json.dumps(body or {}), "content_type": "application/json"}
        else:
            form = {"data": ""}
        with rolled_back() as self.written:
            self.answer = client.generic(method, path, headers=headers, **(form if method not in SAFE else {}))
        self.status, self.content = self.answer.status_code, self.answer.content
        self.login = self.status == 302 and self.answer["Location"].startswith("/sign-in/")
        if self.status >= 400 and path.startswith("/api/"):
            self.expect(self.advises(), why="a problem of the API says what to do next")

    def advises(self) -> bool:
        """Return whether the response is a problem with a fix."""
        is_problem = self.answer["Content-Type"] == "application/problem+json"
        return is_problem and bool(json.loads(self.content)["fix"]["text"])

    def expect(self, good: bool, *, why: str) -> None:
        assert good, f"{self.visitor} {self.method} {self.path}: {self.status}, but {why}\n{self.content[:300]!r}"


def rows(*kinds: str, fifth: int | None = None) -> list[tuple[str, Row]]:
    """Return the rows of these kinds, or one fifth of them."""
    found = [(route, row) for route, row in ROWS.items() if row.kind in kinds]
    return found if fifth is None else tiers.take_fifth(found, fifth)


def judge(response: VisitorRequest, *, seen: bool, allowed: bool) -> None:
    """Compare an answer with the table; `seen` means the visitor's own tenant."""
    row, visitor, method = response.row, response.visitor, response.method
    response.expect(response.status < 500, why="nothing may break")
    if visitor not in ("foreign owner", "staff"):
        response.expect(CANARY not in response.content, why="it shows another tenant's words")
    if visitor in ("anonymous", "removed member"):
        if row.kind in BY_TOKEN:
            response.expect(response.status == 401, why="nobody is signed in")
        else:
            response.expect(response.status == 302, why="they must sign in, or belong to no tenant")
        response.expect(not response.written, why="nothing may be written")
        return
    if not allowed:
        # What others own may not be told from what is not: then 404 comes before 403.
        response.expect(response.status in (403, 404), why="the table refuses it")
        response.expect(not response.written, why=f"nothing may be written, yet {response.written[:2]}")
    elif not seen:
        response.expect(response.status == 404, why="the id is not theirs")
        response.expect(not response.written, why=f"nothing may be written, yet {response.written[:2]}")
    else:
        response.expect(response.status not in (401, 403, 404, 405), why="the table lets it in")
        if method in SAFE and row.kind != "ops" and not row.writes_on_get:
            response.expect(not response.written, why=f"reading must not write, yet {response.written[:2]}")
        check_audit_log(response)


def check_audit_log(response: VisitorRequest) -> None:
    """Check that every change is in the audit log with its actor."""
    changed = [sql for sql in response.written if "tenants_idempotencyrecord" not in sql]
    if response.method not in SAFE and response.status < 400 and changed:
        trail = [sql for sql in changed if "tenants_auditevent" in sql]
        response.expect(bool(trail), why=f"the audit trail is silent about {changed[:2]}")


def address_with_own_ids(who: Visitors, route: str, row: Row) -> str:
    return routes.address(route, *(who.thing(row, route)[0] if row.thing else ()))
