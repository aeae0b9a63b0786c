"""API answers match the schema that describes them."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.architecture import routes
from tests.architecture.visitors import VisitorRequest, Visitors, address_with_own_ids, rows
from web.http.openapi import openapi_document

pytestmark = pytest.mark.django_db


def promised(described: Any, route: str) -> Any:
    """Return the schemas of a GET of this route by content type."""
    paths = {re.sub(r"{\w+}", "{id}", address): item for address, item in described["paths"].items()}
    content = paths["/" + routes.PLACE.sub("{id}", route)]["get"]["responses"]["200"]["content"]
    return {kind: each["schema"] | {"components": described["components"]} for kind, each in content.items()}


@pytest.mark.parametrize(("kind", "visitor"), [("api", "owner"), ("shared", "owner"), ("fleet", "staff")])
@pytest.mark.deep
def test_every_get_response_matches_its_described_schema(settings: Any, kind: str, visitor: str) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    who, described, wrong = Visitors(), json.loads(openapi_document()), {}
    looked = [(route, row) for route, row in rows(kind) if "GET" in row.methods and not row.by_token]
    for route, row in looked:
        response = VisitorRequest(who, row, visitor, "GET", address_with_own_ids(who, route, row))
        response.expect(response.status == 200, why="it shall be looked at")
        schemas = promised(described, route)
        if "application/json" not in schemas:  # a file
            assert list(schemas) == [response.answer["Content-Type"].partition(";")[0]], route
            continue
        validator = Draft202012Validator(schemas["application/json"])
        if errors := [error.message[:200] for error in validator.iter_errors(json.loads(response.content))]:
            wrong[route] = errors
    assert looked
    assert wrong == {}
