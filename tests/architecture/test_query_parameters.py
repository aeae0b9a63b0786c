"""Every operation of the API takes exactly the query parameters that its description names."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from tests.architecture import routes
from tests.architecture.visitors import VisitorRequest, Visitors, address_with_own_ids, rows
from tests.tiers import by_fifths
from web.http.openapi import openapi_document

pytestmark = pytest.mark.django_db

KINDS = (("api", "owner"), ("shared", "owner"), ("fleet", "staff"))


@pytest.fixture
def who() -> Iterator[Visitors]:
    settings.OPERATORS_REQUIRE_MFA, before = False, settings.OPERATORS_REQUIRE_MFA
    try:
        yield Visitors()
    finally:
        settings.OPERATORS_REQUIRE_MFA = before


def described_parameters(described: Any, route: str, method: str) -> set[str]:
    paths = {re.sub(r"{\w+}", "{id}", address): item for address, item in described["paths"].items()}
    operation = paths["/" + routes.PLACE.sub("{id}", route)][method.lower()]
    return {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}


@by_fifths
def test_an_unknown_parameter_is_refused_and_the_known_ones_are_described(who: Visitors, fifth: int) -> None:
    described = json.loads(openapi_document())
    for kind, visitor in KINDS:
        for route, row in rows(kind, fifth=fifth):
            for method in row.methods:
                path = address_with_own_ids(who, route, row)
                response = VisitorRequest(who, row, visitor, method, path + "?of_a_typing_error=1")
                response.expect(response.status == 400, why="no such parameter is described")
                response.expect(not response.written, why="nothing may be written")
                known = json.loads(response.content)["detail"].partition("Known: ")[2].rstrip(".").split(", ")
                assert set(known) - {"none"} == described_parameters(described, route, method), (method, route)


@by_fifths
def test_a_dry_run_of_unclear_spelling_is_refused_everywhere(who: Visitors, fifth: int) -> None:
    for kind, visitor in KINDS:
        for route, row in rows(kind, fifth=fifth):
            for method in set(row.methods) - {"GET"}:
                path = address_with_own_ids(who, route, row)
                response = VisitorRequest(who, row, visitor, method, path + "?dry_run=ture")
                response.expect(response.status == 400 and b"dry_run" in response.content, why="it is no flag")
                response.expect(not response.written, why="nothing may be written")


@by_fifths
def test_operators_operations_refuse_a_dry_run_that_they_do_not_have(who: Visitors, fifth: int) -> None:
    for route, row in rows("fleet", fifth=fifth):
        for method in set(row.methods) - {"GET"}:
            path = address_with_own_ids(who, route, row)
            response = VisitorRequest(who, row, "staff", method, path + "?dry_run=true")
            response.expect(response.status == 400 and b"no dry run" in response.content, why="it would be real")
            response.expect(not response.written, why="nothing may be written")
