"""Every changing POST of the API follows the Idempotency-Key convention."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.domain.operator_scopes import OPERATOR_SCOPES
from tenants.models import User
from tenants.services import operator_tokens
from tenants.services.actors import SYSTEM
from tests.architecture import routes
from tests.architecture.matrix import ROWS
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient
from web.http.openapi import openapi_document

ASKS_ONLY = {"api/v1/quotes"}  # a dry run by its nature: nothing is kept, so nothing can be doubled


def posts(patterns: Any = None, prefix: str = "") -> dict[str, Any]:
    """Return the views of POST requests of the API, by route."""
    found: dict[str, Any] = {}
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            found |= posts(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and route.startswith("api/v1/"):
            actions = getattr(pattern.callback, "actions", None) or {}
            if "post" in actions:
                found[route] = getattr(pattern.callback.cls, actions["post"])  # type: ignore[attr-defined]
    return found


def test_every_post_of_the_access_table_is_found() -> None:
    assert set(posts()) == {
        route for route, row in ROWS.items() if route.startswith("api/v1/") and "POST" in row.methods
    }


def test_every_changing_post_requires_a_key() -> None:
    bare = {route for route, view in posts().items() if not getattr(view, "needs_key", False)}
    assert bare == ASKS_ONLY, "put @idempotent() on these, or say why they change nothing"


def test_posts_without_a_key_store_nothing() -> None:
    assert {route for route in ASKS_ONLY if ROWS[route].stores} == set()


def test_the_api_description_requires_the_key_exactly_where_needed() -> None:
    asks = {
        address
        for address, item in json.loads(openapi_document())["paths"].items()
        for parameter in item.get("post", {}).get("parameters", ())
        if parameter["name"] == "Idempotency-Key" and parameter["required"] and parameter["in"] == "header"
    }
    needed = {"/" + routes.PLACE.sub("{id}", route) for route in posts() if route not in ASKS_ONLY}
    assert asks == needed


def operators_client() -> ApiClient:
    """Return a client with the token of an operator who may change everything."""
    operator, _ = User.objects.get_or_create(email="operator@example.org", defaults={"is_staff": True})
    _, text = operator_tokens.issue_operator_token(
        operator,
        name="keys",
        scopes=OPERATOR_SCOPES,
        expires_at=tenant_setup.current_time() + timedelta(days=1),
        actor=SYSTEM,
        now=tenant_setup.current_time(),
    )
    return ApiClient(text)


@pytest.mark.django_db
def test_a_post_without_a_required_key_is_refused(settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    api = ApiClient(tenant_setup.create_tenant_with_owner("Delta").token())
    for route in set(posts()) - ASKS_ONLY:
        client = operators_client() if ROWS[route].kind == "fleet" else api
        answer: Any = client.send("POST", routes.address(route, "x"), {}, Idempotency_Key="")
        assert (answer.status_code, answer.json()["code"]) == (400, "idempotency-key-missing"), route
