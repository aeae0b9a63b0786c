"""The description names the statuses, headers and conditions that operations really have."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from tenants.services import rls
from tests.architecture import routes
from tests.architecture.visitors import (
    VisitorRequest,
    Visitors,
    address_with_own_ids,
    browser,
    rolled_back,
    rows,
)
from tests.tenants import tenant_setup
from tests.tiers import by_fifths
from web.http.openapi import openapi_document

pytestmark = pytest.mark.django_db


@pytest.fixture
def who() -> Iterator[Visitors]:
    settings.OPERATORS_REQUIRE_MFA, before = False, settings.OPERATORS_REQUIRE_MFA
    try:
        yield Visitors()
    finally:
        settings.OPERATORS_REQUIRE_MFA = before


@pytest.fixture(scope="module")
def described() -> Any:
    paths = json.loads(openapi_document())["paths"]
    return {re.sub(r"{\w+}", "{id}", address): item for address, item in paths.items()}


def operation(described: Any, route: str, method: str) -> Any:
    return described["/" + routes.PLACE.sub("{id}", route)][method.lower()]


def parameters(described: Any, route: str, method: str) -> set[str]:
    return {each["name"] for each in operation(described, route, method).get("parameters", ())}


@by_fifths
def test_if_match_is_described_exactly_where_it_is_required(who: Visitors, described: Any, fifth: int) -> None:
    for kind, visitor in (("api", "owner"), ("fleet", "staff")):
        for route, row in rows(kind, fifth=fifth):
            for method in {"PATCH", "PUT", "DELETE", "POST"} & set(row.methods):
                client, path = browser(), address_with_own_ids(who, route, row)
                headers = {"Idempotency-Key": "statuses"}
                if kind == "api":
                    headers["Authorization"] = f"Bearer {who.tokens[visitor]}"
                else:
                    client.cookies.load(who.sessions[visitor])
                with rls.tenant_scope(who.here.tenant.pk):
                    body = row.body(who.here) if row.body else {}
                tenant_setup.leave_tenant()
                with rolled_back():
                    answer = client.generic(method, path, json.dumps(body), "application/json", headers=headers)
                needed = "If-Match" in parameters(described, route, method)
                assert (answer.status_code == 428) is needed, (method, route, answer.status_code, answer.content[:200])
                if needed:
                    assert {"412", "428"} <= set(operation(described, route, method)["responses"]), (method, route)


@by_fifths
def test_successful_changes_have_a_described_status(who: Visitors, described: Any, fifth: int) -> None:
    for route, row in rows("api", fifth=fifth):
        for method in {"PATCH", "DELETE", "POST", "PUT"} & set(row.methods):
            with rls.tenant_scope(who.here.tenant.pk):
                body = row.body(who.here) if row.body else {}
            tenant_setup.leave_tenant()
            for query in ("", "?dry_run=true"):
                path = address_with_own_ids(who, route, row) + query
                response = VisitorRequest(who, row, "owner", method, path, body=body)
                if response.status >= 400:
                    continue
                known = operation(described, route, method)["responses"]
                response.expect(str(response.status) in known, why=f"only {sorted(known)} are described")
                found = known[str(response.status)]
                response.expect(bool(response.content) is ("content" in found), why="a body is described or not")
                if query:
                    response.expect(response.status == 200 and "Dry-Run" in found["headers"], why="it is a dry run")


@by_fifths
def test_an_etag_is_described_exactly_where_one_is_sent(who: Visitors, described: Any, fifth: int) -> None:
    for route, row in rows("api", fifth=fifth):
        if "GET" not in row.methods or not row.thing:
            continue
        response = VisitorRequest(who, row, "owner", "GET", address_with_own_ids(who, route, row))
        if "application/json" in response.answer["Content-Type"]:
            headers = operation(described, route, "GET")["responses"]["200"].get("headers", {})
            assert ("ETag" in headers) is response.answer.has_header("ETag"), route


def test_replays_are_described_wherever_a_key_is_needed(described: Any) -> None:
    for address, item in described.items():
        if any(each["name"] == "Idempotency-Key" for each in item.get("post", {}).get("parameters", ())):
            responses = item["post"]["responses"]
            assert {"409", "422"} <= set(responses), address
            assert any("Idempotency-Replayed" in each.get("headers", {}) for each in responses.values()), address


def test_pdf_files_are_described_as_binary(described: Any) -> None:
    found = [address for address in described if address.endswith("/pdf")]
    assert len(found) >= 5
    for address in found:
        content = described[address]["get"]["responses"]["200"]["content"]
        assert content == {"application/pdf": {"schema": {"type": "string", "format": "binary"}}}, address


def test_filters_with_fixed_values_name_them(described: Any) -> None:
    state = next(each for each in described["/api/v1/leases"]["get"]["parameters"] if each["name"] == "state")
    assert {"queued", "active", "released"} <= set(state["schema"]["items"]["enum"])
    assert (state["style"], state["explode"]) == ("form", False)
    archived = next(each for each in described["/api/v1/projects"]["get"]["parameters"] if each["name"] == "archived")
    assert archived["schema"] == {"type": "boolean"}
