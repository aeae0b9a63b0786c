"""OpenAPI 3.1 description of the API, generated once per process from the views."""

import json
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods
from drf_spectacular.generators import SchemaGenerator

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "What happened, why, and what to do next (RFC 9457).",
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "fix"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string", "description": "Stable, unlike the texts."},
        "request_id": {"type": "string"},
        "retry_after": {"type": "integer", "description": "Seconds."},
        "fix": {"type": "object", "properties": {name: {"type": "string"} for name in ("text", "action", "href")}},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("field", "code", "message")},
            },
        },
    },
}
DESCRIPTION_METHODS = ["GET", "HEAD", "OPTIONS"]
METHODS = ("get", "post", "put", "patch", "delete")


def add_problem_responses(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the problem response to every operation."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for address in result["paths"].values():
        for method in METHODS:
            if method in address:
                address[method].setdefault("responses", {})["default"] = {
                    "description": "A problem; `fix` says what to do next.",
                    "content": content,
                }
    return result


@cache
def openapi_document() -> bytes:
    """Return the whole description as JSON."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    schema = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return json.dumps(schema, ensure_ascii=False, default=str).encode()


@require_http_methods(DESCRIPTION_METHODS)
def serve_openapi(request: HttpRequest) -> HttpResponse:
    """Serve the description without authentication; it contains no tenant's data."""
    if request.method == "OPTIONS":
        return HttpResponse(status=204, headers={"Allow": ", ".join(DESCRIPTION_METHODS)})
    return HttpResponse(openapi_document(), content_type="application/json", headers={"Cache-Control": "max-age=300"})
