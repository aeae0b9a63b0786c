"""Every address × method × visitor × id, against the one table in matrix.py."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import Client

from tenants.domain.roles import SCOPES, Role
from tenants.models import User
from tenants.services import members, tenants, walls
from tenants.services.actors import SYSTEM
from tests.architecture import routes
from tests.architecture.matrix import ALL, ROWS, THINGS, Row, an_invitation
from tests.tenants import people
from tests.tenants.people import ALL as EVERYTHING
from tests.tenants.people import World, moment

pytestmark = pytest.mark.django_db

BY_TOKEN = ("api", "shared")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SAFE = ("GET", "HEAD", "OPTIONS")
CANARY = b"anzibar"  # in every name of the other tenant
# A visit may note itself here without changing anything that anybody sees.
NOTES = re.compile(
    r"UPDATE \"?(tenants_apitoken|django_session)|(INSERT INTO|DELETE FROM) \"?(django_session|cache)"
)
WRITES = re.compile(r"^\s*(INSERT|UPDATE|DELETE|MERGE|WITH .*(INSERT INTO|UPDATE|DELETE FROM))", re.S)
MASKS = re.compile(rb"[A-Za-z0-9]{64}|nonce-[\w=+/-]+")
MALFORMED = ("x", "%00", "a" * 300, "%F0%9F%92%A9", "..%2F..")


def test_every_address_is_in_the_table_and_nothing_else() -> None:
    found = set(routes.walk())
    assert found - set(ROWS) == set(), "add these to tests/architecture/matrix.py"
    assert set(ROWS) - found == set(), "these are gone: take them out of matrix.py"


class Visitors:
    """Two tenants and everybody who may knock, made once for a whole test."""

    def __init__(self) -> None:
        self.here, self.there = people.make("Delta"), people.make("Zanzibar")
        self.there.person(Role.VIEWER)
        self.staff = User.objects.create_user("operator@example.org", is_staff=True)
        self.tokens = {role.value: self.here.token(role) for role in Role}
        self.tokens["foreign owner"] = self.there.token()
        reads = tuple(sorted(scope for scope in SCOPES if scope.endswith(":read")))
        self.tokens["reading token"] = self.here.token(scopes=reads)
        self.tokens["narrow token"] = self.here.token(scopes=("tokens:read",))
        self._people = {role.value: self.here.person(role) for role in Role if role != Role.OWNER}
        self._people |= {"owner": self.here.owner, "foreign owner": self.there.owner, "staff": self.staff}
        self._leave()
        self._suspend()
        self.sessions = {name: self._session(user) for name, user in self._people.items()}
        self.ids: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        people.close_wall()

    def _leave(self) -> None:
        gone = User.objects.create_user("gone@example.org")
        with walls.as_tenant(self.here.tenant.pk):
            member = members.add(
                tenant=self.here.tenant, user=gone, role=Role.OWNER, project=None, actor=SYSTEM, now=moment()
            )
            world = World(self.here.tenant, self.here.root, gone)
            self.tokens["removed member"] = world.token()
            members.remove(member, grants=EVERYTHING, actor=SYSTEM, now=moment())
        self._people["removed member"] = gone

    def _suspend(self) -> None:
        quiet = people.make("Quiet")
        self.tokens["suspended"] = quiet.token()
        self._people["suspended"] = quiet.owner
        self.quiet = quiet
        with walls.as_tenant(quiet.tenant.pk):
            tenants.suspend(quiet.tenant, actor=SYSTEM, now=moment(), why="test")

    @staticmethod
    def _session(user: User) -> dict[str, str]:
        client = Client()
        client.force_login(user)
        return {name: morsel.value for name, morsel in client.cookies.items()}

    def thing(self, row: Row, route: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the ids that stand in an address: our own, and the other tenant's."""
        if row.thing not in self.ids:
            self.ids[row.thing] = (self._made(row, self.here), self._made(row, self.there))
        assert len(self.ids[row.thing][0]) == routes.places(route), f"{route} has other places than its thing"
        return self.ids[row.thing]

    def _made(self, row: Row, world: World) -> tuple[str, ...]:
        if row.thing == "link":
            with walls.as_tenant(world.tenant.pk):
                return (an_invitation(world)[1],)
        if row.thing in ("key", "keys", "security key"):
            return {"key": ("abc",), "keys": ("1", "abc-def"), "security key": ("4711",)}[row.thing]
        made = THINGS[row.thing](world)
        return (made,) if isinstance(made, str) else made


@contextmanager
def undone() -> Iterator[list[str]]:
    """Undo whatever a request did, and tell which statements it wrote with."""
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
    """Return a browser without cookies; the one stack of middleware behind it is built once."""
    client = _browser(checks)
    client.cookies.clear()
    return client


class Knock:
    """One request of one visitor, and what came back."""

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
        with undone() as self.written:
            self.answer = client.generic(
                method, path, headers=headers, **(form if method not in SAFE else {})
            )
        self.status, self.content = self.answer.status_code, self.answer.content
        self.login = self.status == 302 and self.answer["Location"].startswith("/sign-in/")

    def expect(self, good: bool, *, why: str) -> None:
        assert good, (
            f"{self.visitor} {self.method} {self.path}: {self.status}, but {why}\n{self.content[:300]!r}"
        )


def let_in(row: Row, visitor: str, method: str) -> bool:
    """Say whether the table lets this visitor in with an id of their own."""
    roles = row.methods[method]
    if visitor in ("owner", "foreign owner"):
        return "owner" in roles
    if visitor == "suspended":
        return "owner" in roles and method in SAFE
    reads = (method in SAFE or not row.stores) and not row.opens
    if visitor == "reading token":
        return "owner" in roles and reads
    if visitor == "narrow token":
        return "owner" in roles and reads and row.noun == "tokens"
    return visitor in roles


@pytest.fixture
def who() -> Visitors:
    settings.OPERATORS_NEED_MFA, before = False, settings.OPERATORS_NEED_MFA
    try:
        yield Visitors()
    finally:
        settings.OPERATORS_NEED_MFA = before


def rows(*kinds: str) -> list[tuple[str, Row]]:
    return [(route, row) for route, row in ROWS.items() if row.kind in kinds]


def judge(knock: Knock, *, seen: bool, allowed: bool) -> None:
    """Hold an answer against the table; `seen` tells whether the id is one of the visitor's own tenant."""
    row, visitor, method = knock.row, knock.visitor, knock.method
    knock.expect(knock.status < 500, why="nothing may break")
    if visitor not in ("foreign owner", "staff"):
        knock.expect(CANARY not in knock.content, why="it shows another tenant's words")
    if visitor in ("anonymous", "removed member"):
        if row.kind in BY_TOKEN:
            knock.expect(knock.status == 401, why="nobody is signed in")
        else:
            knock.expect(knock.status == 302, why="they must sign in, or belong to no tenant")
        knock.expect(not knock.written, why="nothing may be written")
        return
    if not allowed:
        # What others own may not be told from what is not: then 404 comes before 403.
        knock.expect(knock.status in (403, 404), why="the table refuses it")
        knock.expect(not knock.written, why=f"nothing may be written, yet {knock.written[:2]}")
    elif not seen:
        knock.expect(knock.status == 404, why="the id is not theirs")
        knock.expect(not knock.written, why=f"nothing may be written, yet {knock.written[:2]}")
    else:
        knock.expect(knock.status not in (401, 403, 404, 405), why="the table lets it in")
        if method in SAFE and row.kind != "ops" and not row.writes_on_get:
            knock.expect(not knock.written, why=f"reading must not write, yet {knock.written[:2]}")


API_VISITORS = (
    "anonymous",
    "removed member",
    *sorted(ALL),
    "reading token",
    "narrow token",
    "suspended",
    "foreign owner",
)


def test_the_api_lets_in_whom_the_table_says(who: Visitors) -> None:
    for route, row in rows("api"):
        for method in row.methods:
            for visitor in API_VISITORS:
                allowed = visitor in ("anonymous", "removed member") or let_in(row, visitor, method)
                if not row.thing:
                    knock = Knock(who, row, visitor, method, routes.address(route))
                    judge(knock, seen=True, allowed=allowed)
                    continue
                each_id(who, route, row, visitor, method, allowed)


def each_id(who: Visitors, route: str, row: Row, visitor: str, method: str, allowed: bool) -> None:
    """Try our own, the other tenant's, a missing and a malformed id."""
    own, foreign = who.thing(row, route)
    outside = visitor in ("foreign owner", "suspended")
    judge(Knock(who, row, visitor, method, routes.address(route, *own)), seen=not outside, allowed=allowed)
    missing = (own[0].partition("_")[0] + "_" + "0" * 26, *own[1:])
    answers = []
    for ids in (foreign, missing):
        knock = Knock(who, row, visitor, method, routes.address(route, *ids))
        judge(knock, seen=visitor == "foreign owner" and ids == foreign, allowed=allowed)
        body = MASKS.sub(b"", knock.content).replace(ids[0].encode(), b"")
        answers.append((knock.status, body))
    if visitor != "foreign owner":
        assert answers[0] == answers[1], f"{visitor} {method} {route}: foreign and missing differ"
    for wrong in MALFORMED if visitor == "owner" else MALFORMED[:1]:
        knock = Knock(who, row, visitor, method, routes.address(route, wrong, *own[1:]))
        if visitor not in ("anonymous", "removed member"):
            knock.expect(knock.status in (404, 403) and not knock.written, why="the id is malformed")
            knock.expect(knock.status == 404 or not allowed, why="the id is malformed")


def test_what_all_tenants_share_is_the_same_for_each(who: Visitors) -> None:
    for route, row in rows("shared"):
        own, _ = who.thing(row, route)
        for method in row.methods:
            for visitor in API_VISITORS:
                allowed = visitor in ("anonymous", "removed member") or let_in(row, visitor, method)
                judge(
                    Knock(who, row, visitor, method, routes.address(route, *own)), seen=True, allowed=allowed
                )
            for wrong in MALFORMED:
                knock = Knock(who, row, "owner", method, routes.address(route, wrong))
                knock.expect(knock.status == 404, why="there is no such thing")


def test_the_fleet_is_there_for_operators_only(who: Visitors) -> None:
    for route, row in rows("fleet"):
        path = with_own(who, route, row)
        for visitor in ("anonymous", *sorted(ALL), "foreign owner", "suspended", "removed member", "staff"):
            knock = Knock(who, row, visitor, "GET", path)
            wanted = {"anonymous": 401, "staff": 200}.get(visitor, 404)
            knock.expect(knock.status == wanted and not knock.written, why=f"it should be {wanted}")


PAGE_VISITORS = ("anonymous", "removed member", *sorted(ALL), "suspended", "foreign owner", "staff")


def test_the_portal_lets_in_whom_the_table_says(who: Visitors) -> None:
    for route, row in rows("page"):
        for method in row.methods:
            for visitor in PAGE_VISITORS:
                if visitor == "staff":  # an operator belongs to no tenant
                    visitor_is_nobody = Knock(who, row, "staff", method, with_own(who, route, row))
                    visitor_is_nobody.expect(visitor_is_nobody.status == 302, why="staff belong to no tenant")
                    continue
                allowed = visitor in ("anonymous", "removed member") or let_in(row, visitor, method)
                if row.thing:
                    each_id(who, route, row, visitor, method, allowed)
                else:
                    knock = Knock(who, row, visitor, method, routes.address(route))
                    judge(knock, seen=True, allowed=allowed)


def with_own(who: Visitors, route: str, row: Row) -> str:
    return routes.address(route, *(who.thing(row, route)[0] if row.thing else ()))


def test_operators_pages_exist_for_operators_only(who: Visitors) -> None:
    for route, row in rows("ops"):
        path = with_own(who, route, row)
        for method in row.methods:
            for visitor in ("anonymous", *sorted(ALL), "foreign owner", "suspended", "removed member"):
                knock = Knock(who, row, visitor, method, path)
                if visitor == "anonymous":
                    knock.expect(knock.login, why="they must sign in")
                else:
                    knock.expect(knock.status == 404, why="there is no such page for them")
                knock.expect(not knock.written, why="nothing may be written")
            knock = Knock(who, row, "staff", method, path)
            # An empty form may well be refused, here as everywhere; being let in is what counts.
            good = knock.status < 400 or (method not in SAFE and knock.status in (400, 409))
            knock.expect(good, why="operators are let in")
            audited = [sql for sql in knock.written if "tenants_auditevent" in sql]
            knock.expect(bool(audited), why="every visit of an operator is audited")
            if row.thing:
                missing = path.replace(path.split("_")[-1].split("/")[0], "0" * 26)
                for wrong in (missing, routes.address(route, "x"), routes.address(route, "%00")):
                    Knock(who, row, "staff", method, wrong).expect(
                        Knock(who, row, "staff", method, wrong).status == 404, why="there is no such row"
                    )


def test_operators_without_a_second_factor_are_sent_to_set_one_up(who: Visitors) -> None:
    settings.OPERATORS_NEED_MFA = True
    for route, row in rows("ops"):
        for method in row.methods:
            knock = Knock(who, row, "staff", method, with_own(who, route, row))
            knock.expect(
                knock.status == 302 and "security" in knock.answer["Location"], why="no second factor"
            )


def test_account_pages_need_somebody_signed_in(who: Visitors) -> None:
    for route, row in rows("account"):
        path = with_own(who, route, row)
        for method in row.methods:
            knock = Knock(who, row, "anonymous", method, path)
            knock.expect(knock.status in (302, 401, 404), why="they must sign in")
            for visitor in ("viewer", "removed member", "staff", "suspended"):
                knock = Knock(who, row, visitor, method, path)
                knock.expect(knock.status < 500 and knock.status != 405, why="an account page is theirs")
                knock.expect(CANARY not in knock.content, why="it shows another tenant's words")


def test_open_pages_break_for_nobody(who: Visitors) -> None:
    for route, row in rows("anybody"):
        for method in row.methods:
            for visitor in ("anonymous", "viewer", "staff", "removed member"):
                knock = Knock(who, row, visitor, method, with_own(who, route, row))
                why = "it is open to anybody"
                knock.expect(knock.status not in (401, 403, 405) and knock.status != 500, why=why)
                if row.thing != "link":
                    knock.expect(CANARY not in knock.content, why="it shows another tenant's words")


def test_methods_that_are_not_in_the_table_are_refused(who: Visitors) -> None:
    for route, row in rows("api", "page", "ops", "shared", "fleet"):
        path = with_own(who, route, row)
        for method in set(METHODS) - set(row.methods):
            knock = Knock(who, row, "staff" if row.kind in ("ops", "fleet") else "owner", method, path)
            knock.expect(knock.status == 405, why="the table does not know this method")
            knock.expect(not knock.written or row.kind == "ops", why="nothing may be written")


def test_the_staff_session_is_nobody_to_the_api(who: Visitors) -> None:
    for route, row in rows("api"):
        for method in row.methods:
            knock = Knock(who, row, "staff", method, with_own(who, route, row))
            knock.expect(knock.status == 403, why="an operator belongs to no tenant")


def test_ids_of_another_tenant_in_a_body_are_as_good_as_none(who: Visitors) -> None:
    for route, row in rows("api"):
        if row.body is None or row.thing:
            continue
        for method in ("POST",):
            with walls.as_tenant(who.there.tenant.pk):
                foreign = row.body(who.there)
            people.close_wall()
            missing = {
                name: re.sub(r"^(\w{3})_\w{26}$", r"\1_" + "0" * 26, value)
                if isinstance(value, str)
                else value
                for name, value in foreign.items()
            }
            if foreign == missing:
                continue
            path = routes.address(route)
            knocks = [Knock(who, row, "owner", method, path, body=body) for body in (foreign, missing)]
            for knock in knocks:
                knock.expect(knock.status in (400, 404), why="the id in the body is not theirs")
                knock.expect(not knock.written, why="nothing may be written")
            assert knocks[0].content == knocks[1].content, f"{method} {route}: foreign and missing differ"


FORBIDDEN_FIELDS = {
    "tenant_id": "ten_x",
    "tenant": "ten_x",
    "is_staff": True,
    "version": 1,
    "used": 0,
    "id": "x",
}


def test_fields_nobody_may_set_are_refused(who: Visitors) -> None:
    for route, row in rows("api"):
        if row.body is None:
            continue
        method = "PATCH" if "PATCH" in row.methods else "POST"
        with walls.as_tenant(who.here.tenant.pk):
            good = row.body(who.here)
        people.close_wall()
        path = with_own(who, route, row)
        fine = Knock(who, row, "owner", method, path, body=good)
        fine.expect(fine.status < 300, why="the body in the table is a good one")
        for name, value in FORBIDDEN_FIELDS.items():
            knock = Knock(who, row, "owner", method, path, body={**good, name: value})
            knock.expect(knock.status == 400, why=f"nobody may set {name}")


def test_a_session_changes_nothing_without_the_forms_secret(who: Visitors) -> None:
    for route, row in rows("api", "page", "ops", "account"):
        path = with_own(who, route, row)
        for method in set(row.methods) - set(SAFE):
            client = browser(checks=True)
            client.cookies.load(who.sessions["staff" if row.kind in ("ops", "fleet") else "owner"])
            with undone() as written:
                answer = client.generic(method, path, "{}", content_type="application/json")
            assert answer.status_code == 403, (method, path, answer.status_code)
            kept = [sql for sql in written if row.kind == "ops" and "tenants_auditevent" in sql]
            assert written == kept, (method, path)
            assert len(kept) == (row.kind == "ops"), "a refused operator leaves a note, and nobody else does"
