"""API requests that pages show as examples go to addresses that exist."""

import re
from pathlib import Path

import pytest
from django.urls import resolve

ROOT = Path(__file__).parents[2]
TENANTS_CALL = re.compile(r"api_examples\.curl_(?:get|list|post|put)\(\s*f?\"/([^\"?]*)")
TEMPLATES_CALL = re.compile(r"\{% curl_(?:get|post) ((?:[\"'][^\"']*[\"'] ?|[\w.]+ )+)")
OPERATORS_CALL = re.compile(r"operator_api_call\(\s*(?:_\(\s*)?f?\"[^\"]*\"\)?,\s*f?\"([^\"?]*)")


def joined_path(parts: str) -> str:
    """Return the path that a template tag builds, with {} for each variable."""
    joined = "".join(part.strip("\"'") if part[0] in "\"'" else "{}" for part in parts.split())
    return joined.strip("/").partition("?")[0]


EXAMPLES = sorted(
    {
        (str(file.relative_to(ROOT)), path)
        for file in (ROOT / "web/portal").rglob("*.py")
        for call in (TENANTS_CALL, OPERATORS_CALL)
        for path in call.findall(file.read_text())
    }
    | {
        (str(file.relative_to(ROOT)), joined_path(parts))
        for file in (ROOT / "templates").rglob("*.html")
        for parts in TEMPLATES_CALL.findall(file.read_text())
    }
)


def test_more_than_60_examples_are_found() -> None:
    assert len(EXAMPLES) > 60


@pytest.mark.parametrize(("file", "path"), EXAMPLES)
def test_the_path_of_an_example_request_exists(file: str, path: str) -> None:
    assert resolve("/api/v1/" + re.sub(r"\{[^}]*\}", "x", path))
