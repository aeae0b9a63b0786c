"""Every address × method × project role × id against the access table.

One's own things lie in Alpha. Things of Quagga beside it, of the root above it and of another tenant must all look
as if there were no such thing.
"""

import re
from dataclasses import replace
from typing import Any

import pytest

from tenants.domain.roles import Role
from tenants.services import projects, rls
from tenants.services.actors import SYSTEM
from tests.architecture import routes
from tests.architecture.matrix import PLACED, THINGS, Row, below
from tests.architecture.visitors import (
    CANARY,
    MALFORMED,
    MASKS,
    SAFE,
    VisitorRequest,
    Visitors,
    browser,
    judge,
    rolled_back,
    rows,
)
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner
from tests.tiers import by_fifths

pytestmark = pytest.mark.django_db

ROLES = [role.value for role in Role]
CONFINED = "token confined to Alpha"  # of the tenant's owner
ELSEWHERE = b"uagga"  # in the name of the project beside one's own


class Parts(Visitors):
    """The visitors, and one for every role on project Alpha only."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha, self.quagga = self.here.create_project("Alpha"), self.here.create_project("Quagga")
        self.inside, self.beside = below(self.here, self.alpha), below(self.here, self.quagga)
        for role in Role:
            self.tokens[f"{role} of Alpha"] = self.here.token(role, project=self.alpha)
            user = self.here.user_with_role(role, project=self.alpha)
            self.sessions[f"{role} of Alpha"] = self._session(user)
        self.tokens[CONFINED] = self.here.token(within=self.alpha)
        self.places: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = {}
        tenant_setup.leave_tenant()

    def around(self, row: Row) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """Return the id of an own object, and ids of hidden ones."""
        if row.thing not in self.places:
            if row.thing in PLACED:
                own, beside, above = (self._made(row, w) for w in (self.inside, self.beside, self.here))
                hidden = {"beside": beside, "above": above}
            else:
                own, hidden = self._made(row, self.here), {}
            foreign = self._made(row, self.there)
            missing = (own[0].partition("_")[0] + "_" + "0" * 26, *own[1:])
            self.places[row.thing] = own, {**hidden, "foreign": foreign, "missing": missing}
            tenant_setup.leave_tenant()
        return self.places[row.thing]


@pytest.fixture
def who() -> Parts:
    return Parts()


def held(who: Parts, row: Row) -> list[tuple[str, str]]:
    """Return the visitors of an address with the role that each has on Alpha."""
    people_of = [(f"{role} of Alpha", role) for role in ROLES]
    return [*people_of, (CONFINED, "owner")] if row.kind == "api" else people_of


def send_request(who: Parts, row: Row, visitor: str, method: str, path: str, **more: Any) -> VisitorRequest:
    response = VisitorRequest(who, row, visitor, method, path, **more)
    response.expect(ELSEWHERE not in response.content, why="it names the project beside one's own")
    return response


@by_fifths
@pytest.mark.parametrize("kind", ["api", "page"])
def test_a_project_role_has_exactly_the_access_of_the_table(who: Parts, kind: str, fifth: int) -> None:
    for route, row in rows(kind, fifth=fifth):
        for method in row.methods:
            for visitor, role in held(who, row):
                allowed = role in row.project_only_roles(method)
                if not row.thing:
                    judge(send_request(who, row, visitor, method, routes.address(route)), seen=True, allowed=allowed)
                else:
                    request_each_object(who, route, row, visitor, method, allowed)


def request_each_object(who: Parts, route: str, row: Row, visitor: str, method: str, allowed: bool) -> None:
    """Request an object of the own project, and hidden objects."""
    own, hidden = who.around(row)
    judge(
        send_request(who, row, visitor, method, routes.address(route, *own)),
        seen=True,
        allowed=allowed,
    )
    answers: dict[str, tuple[int, bytes]] = {}
    for place, ids in hidden.items():
        response = send_request(who, row, visitor, method, routes.address(route, *ids))
        judge(response, seen=False, allowed=allowed)
        body = MASKS.sub(b"", response.content).replace(ids[0].encode(), b"")
        answers[place] = response.status, body
    for place, answer in answers.items():
        assert answer == answers["missing"], f"{visitor} {method} {route}: {place} and missing differ"
    if visitor != "owner of Alpha":
        return  # one is enough to tell what becomes of text that is no id
    response = send_request(who, row, visitor, method, routes.address(route, MALFORMED[0], *own[1:]))
    response.expect(response.status in (403, 404) and not response.written, why="the id is malformed")
    response.expect(response.status == answers["missing"][0], why="malformed and missing are alike")


@pytest.mark.deep
def test_shared_resources_are_readable_with_a_project_role(who: Parts) -> None:
    for route, row in rows("shared"):
        own, _ = who.around(row)
        for visitor, _ in held(who, replace(row, kind="api")):
            judge(send_request(who, row, visitor, "GET", routes.address(route, *own)), seen=True, allowed=True)


@by_fifths
def test_operator_addresses_return_404_for_a_project_role(who: Parts, fifth: int) -> None:
    for route, row in rows("ops", "fleet", fifth=fifth):
        path = routes.address(route, *(who.thing(row, route)[0] if row.thing else ()))
        for method in row.methods:
            for role in ROLES:
                response = send_request(who, row, f"{role} of Alpha", method, path)
                response.expect(response.status == 404 and not response.written, why="there is no such page for them")


@pytest.mark.deep
def test_public_and_account_pages_show_no_other_project(who: Parts) -> None:
    for route, row in rows("account", "anybody"):
        for method in row.methods:
            ids = who.thing(row, route)[0] if row.thing else ()
            response = send_request(who, row, "member of Alpha", method, routes.address(route, *ids))
            response.expect(response.status != 500, why="nothing may break")


def valid_body(who: Parts, row: Row, world: TenantWithOwner) -> dict[str, Any]:
    """Return the valid body of an address, with ids of this test."""
    assert row.body is not None
    with rls.tenant_scope(world.tenant.pk):
        found = row.body(world)
    tenant_setup.leave_tenant()
    return found


@pytest.mark.deep
def test_a_valid_body_for_the_own_project_is_accepted_as_the_role_allows(who: Parts) -> None:
    for route, row in rows("api"):
        if row.body is None:
            continue
        good = valid_body(who, row, who.inside)
        path = routes.address(route, *(who.around(row)[0] if row.thing else ()))
        for method in set(row.methods) - {*SAFE, "DELETE"}:
            for visitor, role in held(who, row):
                if visitor == CONFINED and row.noun == "ssh_keys":
                    continue  # an account's keys belong to no project
                response = send_request(who, row, visitor, method, path, body=good)
                allowed = role in row.project_only_roles(method)
                response.expect((response.status < 300) == allowed, why=f"it is {allowed} that this is allowed")
                response.expect(allowed or not response.written, why="nothing may be written")


@pytest.mark.deep
def test_ids_of_other_projects_in_a_body_are_treated_as_missing(who: Parts) -> None:
    for route, row in rows("api"):
        if row.body is None or row.thing or "POST" not in row.methods:
            continue
        places = {name: valid_body(who, row, world) for name, world in
                  {"beside": who.beside, "above": who.here, "foreign": who.there}.items()}  # fmt: skip
        missing = {name: lost(value) for name, value in places["beside"].items()}
        if missing == places["beside"]:
            continue  # it names nothing of a project
        path = routes.address(route)
        for visitor, role in held(who, row):
            allowed = role in row.project_only_roles("POST")
            none = send_request(who, row, visitor, "POST", path, body=missing)
            for place, body in places.items():
                response = send_request(who, row, visitor, "POST", path, body=body)
                response.expect(response.status == (404 if allowed else 403), why=f"{place} is not theirs")
                response.expect(not response.written, why=f"nothing may be written, yet {response.written[:2]}")
                assert response.content == none.content, f"{visitor} {route}: {place} and missing differ"


IN_A_BODY = [
    ("api/v1/leases", "volume", "volume"),
    ("api/v1/quotes", "volume", "volume"),
    ("api/v1/leases", "secrets", "secret"),
    ("api/v1/tokens", "service_account", "service account"),
    ("api/v1/projects", "parent", "project"),
]


@pytest.mark.parametrize(("route", "name", "thing"), IN_A_BODY)
def test_resources_of_other_projects_in_a_valid_body_are_treated_as_missing(
    who: Parts, route: str, name: str, thing: str
) -> None:
    row = dict(rows("api"))[route]
    good = valid_body(who, row, who.inside)
    own, hidden = who.around(replace(row, thing=thing))

    def body(ident: str) -> dict[str, Any]:
        return {**good, name: {"VARIABLE": ident} if name == "secrets" else ident}

    for visitor in ("owner of Alpha", CONFINED):
        fine = send_request(who, row, visitor, "POST", routes.address(route), body=body(own[0]))
        fine.expect(fine.status < 300, why="it is of their project")
        answers = {}
        for place, ids in hidden.items():
            response = send_request(who, row, visitor, "POST", routes.address(route), body=body(ids[0]))
            response.expect(not response.written, why=f"nothing may be written, yet {response.written[:2]}")
            text = response.content.replace(ids[0].encode(), b"")
            answers[place] = response.status, re.sub(rb'"as_of":"[^"]*"', b"", text)
        assert set(answers.values()) == {answers["missing"]}, f"{visitor} {route}: {answers}"


FORMS = [
    ("projects/new/", {"name": "new"}, "project"),
    ("team/invitations/", {"email": "a@example.org", "role": "viewer"}, "project"),
    ("team/service-accounts/", {"machine-name": "new", "machine-role": "viewer"}, "machine-project"),
    ("tokens/", {"name": "new", "scopes": "leases:read", "days": "7"}, "project"),
    ("switch-project/", {}, "project"),
]


@pytest.mark.parametrize(("route", "form", "name"), FORMS)
@pytest.mark.deep
def test_other_projects_in_a_form_are_treated_as_missing(
    who: Parts, route: str, form: dict[str, str], name: str
) -> None:
    row, client = dict(rows("page"))[route], browser()
    places = {"own": who.alpha.pk, "beside": who.quagga.pk, "above": who.here.root.pk}
    places |= {"foreign": who.there.root.pk, "missing": "prj_" + "0" * 26}
    answers, wrote = {}, {}
    for place, project in places.items():
        client.cookies.clear()
        client.cookies.load(who.sessions["owner of Alpha"])
        with rolled_back() as written:
            answer = client.post(routes.address(route), {**form, name: project})
            found = client.get(answer["Location"]) if answer.status_code == 302 else answer
            tenant_setup.leave_tenant()
        assert found.status_code < 500
        assert ELSEWHERE not in found.content
        answers[place] = answer.status_code, MASKS.sub(b"", found.content).replace(project.encode(), b"")
        wrote[place] = len([sql for sql in written if "tenants_auditevent" in sql])
    assert all(answers[place] == answers["missing"] for place in ("beside", "above", "foreign"))
    assert wrote == {**dict.fromkeys(places, 0), "own": route != "switch-project/"}
    assert row.methods["POST"]


def lost(value: Any) -> Any:
    return re.sub(r"^(prj)_\w{26}$", r"\1_" + "0" * 26, value) if isinstance(value, str) else value


def test_a_tenant_wide_invitation_or_service_account_needs_a_tenant_role(who: Parts) -> None:
    for route in ("api/v1/invitations", "api/v1/service-accounts"):
        row = dict(rows("api"))[route]
        body = {**valid_body(who, row, who.inside), "project": None}
        for visitor, _ in held(who, row):
            response = send_request(who, row, visitor, "POST", routes.address(route), body=body)
            response.expect(response.status == 403 and not response.written, why="it is the whole tenant")


def test_every_kind_of_project_record_has_one_inside_and_one_outside(who: Parts) -> None:
    for name in PLACED:
        assert name in THINGS
        inside, beside = (who._made(Row("api", thing=name), w) for w in (who.inside, who.beside))
        assert inside != beside


@by_fifths
def test_no_address_fails_for_a_role_on_an_archived_project(who: Parts, fifth: int) -> None:
    own = {row.thing: who.around(row)[0] for _, row in rows("page", "api") if row.thing in PLACED}
    with rls.tenant_scope(who.here.tenant.pk):
        for child in who.alpha.children.filter(archived_at=None):
            projects.archive(child, actor=SYSTEM, now=tenant_setup.current_time())
        projects.archive(who.alpha, actor=SYSTEM, now=tenant_setup.current_time())
    tenant_setup.leave_tenant()
    for route, row in rows("page", "api", "account", fifth=fifth):
        if row.thing and row.thing not in own:
            continue
        for method in row.methods:
            path = routes.address(route, *own.get(row.thing, ()))
            response = send_request(who, row, "owner of Alpha", method, path)
            response.expect(response.status < 500, why="nothing may break")
            response.expect(CANARY not in response.content, why="it shows another tenant's words")
