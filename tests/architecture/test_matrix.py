"""Every address × method × visitor × id, against the one table in matrix.py."""

import re
from collections.abc import Iterator

import pytest
from django.conf import settings

from broker.models import Offering
from tenants.services import rls
from tests.architecture import routes
from tests.architecture.matrix import ALL, ROWS, Row
from tests.architecture.visitors import (
    CANARY,
    MALFORMED,
    MASKS,
    METHODS,
    SAFE,
    VisitorRequest,
    Visitors,
    address_with_own_ids,
    browser,
    judge,
    rolled_back,
    rows,
)
from tests.tenants import tenant_setup
from tests.tiers import by_fifths

pytestmark = pytest.mark.django_db


def test_the_access_table_lists_exactly_the_existing_addresses() -> None:
    found = set(routes.walk())
    assert found - set(ROWS) == set(), "add these to tests/architecture/matrix.py"
    assert set(ROWS) - found == set(), "these are gone: take them out of matrix.py"


def is_allowed(row: Row, visitor: str, method: str) -> bool:
    """Return whether the table allows this visitor with its own id."""
    roles = row.methods[method]
    if visitor in ("owner", "foreign owner"):
        return "owner" in roles
    if visitor == "suspended":
        return "owner" in roles and (method in SAFE or not row.stores)
    reads = (method in SAFE or not row.stores) and not row.opens
    if visitor == "reading token":
        return "owner" in roles and reads
    if visitor == "narrow token":
        return "owner" in roles and reads and row.noun == "tokens"
    return visitor in roles


@pytest.fixture
def who() -> Iterator[Visitors]:
    settings.OPERATORS_REQUIRE_MFA, before = False, settings.OPERATORS_REQUIRE_MFA
    try:
        yield Visitors()
    finally:
        settings.OPERATORS_REQUIRE_MFA = before


API_VISITORS = (
    "anonymous",
    "removed member",
    *sorted(ALL),
    "reading token",
    "narrow token",
    "suspended",
    "foreign owner",
)


@by_fifths
def test_the_api_allows_the_roles_of_the_table(who: Visitors, fifth: int) -> None:
    for route, row in rows("api", fifth=fifth):
        for method in row.methods:
            for visitor in API_VISITORS:
                allowed = visitor in ("anonymous", "removed member") or is_allowed(row, visitor, method)
                if not row.thing:
                    response = VisitorRequest(who, row, visitor, method, routes.address(route))
                    judge(response, seen=True, allowed=allowed)
                    continue
                each_id(who, route, row, visitor, method, allowed)


def each_id(who: Visitors, route: str, row: Row, visitor: str, method: str, allowed: bool) -> None:
    """Try our own, the other tenant's, a missing and a malformed id."""
    own, foreign = who.thing(row, route)
    outside = visitor in ("foreign owner", "suspended")
    judge(VisitorRequest(who, row, visitor, method, routes.address(route, *own)), seen=not outside, allowed=allowed)
    missing = (own[0].partition("_")[0] + "_" + "0" * 26, *own[1:])
    answers = []
    for ids in (foreign, missing):
        response = VisitorRequest(who, row, visitor, method, routes.address(route, *ids))
        judge(response, seen=visitor == "foreign owner" and ids == foreign, allowed=allowed)
        body = MASKS.sub(b"", response.content).replace(ids[0].encode(), b"")
        answers.append((response.status, body))
    if visitor != "foreign owner":
        assert answers[0] == answers[1], f"{visitor} {method} {route}: foreign and missing differ"
    for wrong in MALFORMED if visitor == "owner" else MALFORMED[:1]:
        response = VisitorRequest(who, row, visitor, method, routes.address(route, wrong, *own[1:]))
        if visitor not in ("anonymous", "removed member"):
            response.expect(response.status in (404, 403) and not response.written, why="the id is malformed")
            response.expect(response.status == 404 or not allowed, why="the id is malformed")


def test_shared_resources_are_the_same_for_every_tenant(who: Visitors) -> None:
    for route, row in rows("shared"):
        own, _ = who.thing(row, route)
        for method in row.methods:
            for visitor in API_VISITORS:
                allowed = visitor in ("anonymous", "removed member") or is_allowed(row, visitor, method)
                judge(
                    VisitorRequest(who, row, visitor, method, routes.address(route, *own)), seen=True, allowed=allowed
                )
            for wrong in MALFORMED:
                response = VisitorRequest(who, row, "owner", method, routes.address(route, wrong))
                response.expect(response.status == 404, why="there is no such thing")


@by_fifths
def test_fleet_addresses_are_accessible_to_operators_only(who: Visitors, fifth: int) -> None:
    for route, row in rows("fleet", fifth=fifth):
        path = address_with_own_ids(who, route, row)
        for method in row.methods:
            for visitor in (
                "anonymous",
                *sorted(ALL),
                "foreign owner",
                "suspended",
                "removed member",
                "staff",
            ):
                response = VisitorRequest(who, row, visitor, method, path)
                # An empty body is refused; being let in is what counts.
                wanted = {"anonymous": 401, "staff": 200 if method in SAFE else 400}.get(visitor, 404)
                wanted = 404 if visitor == "staff" and row.by_token else wanted
                if visitor == "staff" and method in row.bodiless:
                    response.expect(response.status in (200, 201, 202, 204, 409), why="it needs no body")
                    continue
                noted = [sql for sql in response.written if "tenants_auditevent" in sql]
                response.expect(response.status == wanted and response.written == noted, why=f"it should be {wanted}")
                audits = visitor == "staff" and row.writes_on_get
                response.expect(len(noted) == audits, why="a look at tenants' rows is audited once, and nothing else")
            if row.thing:
                own = who.thing(row, route)[0]
                for wrong in (f"{own[0].partition('_')[0]}_{'0' * 26}", "x", "%00"):
                    response = VisitorRequest(who, row, "staff", method, routes.address(route, wrong, *own[1:]))
                    response.expect(response.status == 404, why="there is no such row")


@pytest.mark.deep
def test_fleet_addresses_require_a_second_factor_if_configured(who: Visitors) -> None:
    settings.OPERATORS_REQUIRE_MFA = True
    for route, row in rows("fleet"):
        for method in row.methods:
            response = VisitorRequest(who, row, "staff", method, address_with_own_ids(who, route, row))
            response.expect(response.status == 404 and not response.written, why="no second factor")


PAGE_VISITORS = ("anonymous", "removed member", *sorted(ALL), "suspended", "foreign owner", "staff")


@by_fifths
def test_the_portal_allows_the_roles_of_the_table(who: Visitors, fifth: int) -> None:
    for route, row in rows("page", fifth=fifth):
        for method in row.methods:
            for visitor in PAGE_VISITORS:
                if visitor == "staff":  # an operator belongs to no tenant
                    visitor_is_nobody = VisitorRequest(who, row, "staff", method, address_with_own_ids(who, route, row))
                    visitor_is_nobody.expect(visitor_is_nobody.status == 302, why="staff belong to no tenant")
                    continue
                allowed = visitor in ("anonymous", "removed member") or is_allowed(row, visitor, method)
                if row.thing:
                    each_id(who, route, row, visitor, method, allowed)
                else:
                    response = VisitorRequest(who, row, visitor, method, routes.address(route))
                    judge(response, seen=True, allowed=allowed)


@by_fifths
def test_operators_pages_exist_for_operators_only(who: Visitors, fifth: int) -> None:
    for route, row in rows("ops", fifth=fifth):
        path = address_with_own_ids(who, route, row)
        Offering.objects.filter(gpu_model="H200-141GB").update(state="draft")  # of histories: no real shape
        for method in row.methods:
            for visitor in ("anonymous", *sorted(ALL), "foreign owner", "suspended", "removed member"):
                response = VisitorRequest(who, row, visitor, method, path)
                if visitor == "anonymous":
                    response.expect(response.login, why="they must sign in")
                else:
                    response.expect(response.status == 404, why="there is no such page for them")
                response.expect(not response.written, why="nothing may be written")
            response = VisitorRequest(who, row, "staff", method, path)
            # An empty form may well be refused, here as everywhere; being let in is what counts.
            good = response.status < 400 or (method not in SAFE and response.status in (400, 409))
            response.expect(good, why="operators are let in")
            audited = [sql for sql in response.written if "tenants_auditevent" in sql]
            response.expect(bool(audited), why="every visit of an operator is audited")
            if row.thing:
                missing = path.replace(path.split("_")[-1].split("/")[0], "0" * 26)
                for wrong in (
                    missing,
                    *(routes.address(route, *[odd] * routes.places(route)) for odd in ("x", "%00")),
                ):
                    VisitorRequest(who, row, "staff", method, wrong).expect(
                        VisitorRequest(who, row, "staff", method, wrong).status == 404, why="there is no such row"
                    )


@pytest.mark.deep
def test_operators_without_a_second_factor_are_redirected_to_set_one_up(who: Visitors) -> None:
    settings.OPERATORS_REQUIRE_MFA = True
    for route, row in rows("ops"):
        for method in row.methods:
            response = VisitorRequest(who, row, "staff", method, address_with_own_ids(who, route, row))
            response.expect(
                response.status == 302 and "security" in response.answer["Location"], why="no second factor"
            )


@by_fifths
def test_account_pages_require_sign_in(who: Visitors, fifth: int) -> None:
    for route, row in rows("account", fifth=fifth):
        path = address_with_own_ids(who, route, row)
        for method in row.methods:
            response = VisitorRequest(who, row, "anonymous", method, path)
            response.expect(response.status in (302, 401, 404), why="they must sign in")
            for visitor in ("viewer", "removed member", "staff", "suspended"):
                response = VisitorRequest(who, row, visitor, method, path)
                response.expect(response.status < 500 and response.status != 405, why="an account page is theirs")
                response.expect(CANARY not in response.content, why="it shows another tenant's words")


@pytest.mark.deep
def test_public_pages_are_accessible_to_every_visitor(who: Visitors) -> None:
    for route, row in rows("anybody"):
        for method in row.methods:
            for visitor in ("anonymous", "viewer", "staff", "removed member"):
                response = VisitorRequest(who, row, visitor, method, address_with_own_ids(who, route, row))
                why = "it is open to anybody"
                response.expect(response.status not in (401, 403, 405) and response.status != 500, why=why)
                if row.thing != "link":
                    response.expect(CANARY not in response.content, why="it shows another tenant's words")


@by_fifths
def test_methods_missing_from_the_access_table_are_refused(who: Visitors, fifth: int) -> None:
    for route, row in rows("api", "page", "ops", "shared", "fleet", fifth=fifth):
        path = address_with_own_ids(who, route, row)
        for method in set(METHODS) - set(row.methods):
            response = VisitorRequest(who, row, "staff" if row.kind in ("ops", "fleet") else "owner", method, path)
            if method == "GET" and row.kind in ("page", "ops"):  # an action, whose page is above it
                response.expect(response.status == 302 and not response.login, why="an action leads to its page")
                response.expect(path.startswith(response.answer["Location"]) or row.thing, why="it is its own page")
            else:
                response.expect(response.status == 405, why="the table does not know this method")
            response.expect(not response.written or row.kind == "ops", why="nothing may be written")


@pytest.mark.deep
def test_the_tenant_api_refuses_an_operators_session(who: Visitors) -> None:
    for route, row in rows("api"):
        for method in row.methods:
            response = VisitorRequest(who, row, "staff", method, address_with_own_ids(who, route, row))
            response.expect(response.status == 403, why="an operator belongs to no tenant")


def test_ids_of_another_tenant_in_a_body_are_treated_as_missing(who: Visitors) -> None:
    for route, row in rows("api"):
        if row.body is None or row.thing:
            continue
        for method in ("POST",):
            with rls.tenant_scope(who.there.tenant.pk):
                foreign = row.body(who.there)
            tenant_setup.leave_tenant()
            missing = {
                name: re.sub(r"^(\w{3})_\w{26}$", r"\1_" + "0" * 26, value) if isinstance(value, str) else value
                for name, value in foreign.items()
            }
            if foreign == missing:
                continue
            path = routes.address(route)
            responses = [VisitorRequest(who, row, "owner", method, path, body=body) for body in (foreign, missing)]
            for response in responses:
                response.expect(response.status in (400, 404), why="the id in the body is not theirs")
                response.expect(not response.written, why="nothing may be written")
            assert responses[0].content == responses[1].content, f"{method} {route}: foreign and missing differ"


FORBIDDEN_FIELDS = {
    "tenant_id": "ten_x",
    "tenant": "ten_x",
    "is_staff": True,
    "version": 1,
    "used": 0,
    "id": "x",
}


def test_read_only_fields_in_a_body_are_refused(who: Visitors) -> None:
    for route, row in rows("api"):
        if row.body is None:
            continue
        method = "PATCH" if "PATCH" in row.methods else "POST"
        with rls.tenant_scope(who.here.tenant.pk):
            good = row.body(who.here)
        tenant_setup.leave_tenant()
        path = address_with_own_ids(who, route, row)
        fine = VisitorRequest(who, row, "owner", method, path, body=good)
        fine.expect(fine.status < 300, why="the body in the table is a good one")
        for name, value in FORBIDDEN_FIELDS.items():
            response = VisitorRequest(who, row, "owner", method, path, body={**good, name: value})
            response.expect(response.status == 400, why=f"nobody may set {name}")


@pytest.mark.deep
def test_a_session_without_a_csrf_token_changes_nothing(who: Visitors) -> None:
    for route, row in rows("api", "page", "ops", "fleet", "account"):
        path = address_with_own_ids(who, route, row)
        for method in set(row.methods) - set(SAFE):
            client = browser(checks=True)
            client.cookies.load(who.sessions["staff" if row.kind in ("ops", "fleet") else "owner"])
            with rolled_back() as written:
                answer = client.generic(method, path, "{}", content_type="application/json")
            assert answer.status_code == 403, (method, path, answer.status_code)
            kept = [sql for sql in written if row.kind == "ops" and "tenants_auditevent" in sql]
            assert written == kept, (method, path)
            assert len(kept) == (row.kind == "ops"), "a refused operator leaves a note, and nobody else does"
