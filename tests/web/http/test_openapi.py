"""The OpenAPI description is valid and complete for every operation."""

import json
from typing import Any

import pytest
from django.test import Client
from openapi_spec_validator import validate

from web.http.openapi import METHODS


@pytest.fixture(scope="module")
def description() -> Any:
    from web.http.openapi import openapi_document

    return json.loads(openapi_document())


def operations(description: Any) -> list[tuple[str, str, Any]]:
    return [
        (method, address, item[method])
        for address, item in description["paths"].items()
        for method in METHODS
        if method in item
    ]


def test_the_description_is_valid_openapi_3_1(description: Any) -> None:
    assert description["openapi"] == "3.1.0"
    validate(description)


def test_every_operation_describes_a_problem_as_default_response(description: Any) -> None:
    for method, address, operation in operations(description):
        content = operation["responses"]["default"]["content"]
        assert list(content) == ["application/problem+json"], (method, address)


def test_patch_operations_require_if_match(description: Any) -> None:
    for address in ("/api/v1/projects/{id}", "/api/v1/members/{id}"):
        names = {p["name"]: p for p in description["paths"][address]["patch"]["parameters"]}
        assert names["If-Match"]["required"]


def test_every_path_starts_with_the_version(description: Any) -> None:
    assert all(address.startswith("/api/v1/") for address in description["paths"])


@pytest.mark.django_db
def test_the_description_is_readable_without_a_token(description: Any) -> None:
    answer = Client().get("/api/v1/openapi.json")
    assert answer.status_code == 200
    assert answer.json() == description
