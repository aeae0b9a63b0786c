"""OpenAPI 3.1 description of the API, generated once per process from the views."""

import json
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods
from drf_spectacular.generators import SchemaGenerator

from web.http.query_parameters import DRY_RUN

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "What happened, why, and what to do next (RFC 9457).",
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "fix"],
    "properties": {
        "type": {
            "type": "string",
            "format": "uri-reference",
            "description": "Address of a page that explains it; /problems/ lists all.",
        },
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string", "description": "Stable, unlike the texts."},
        "request_id": {"type": "string"},
        "scopes": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Of `missing-scope`: the scopes that the token lacks.",
        },
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


PROBLEM_CONTENT = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
# Problems of every operation with this parameter.
PROBLEMS_BY_PARAMETER = {
    "If-Match": {
        "412": "The object was changed since you read it: `precondition-failed`.",
        "428": "The header If-Match is missing: `if-match-missing`.",
    },
    "Idempotency-Key": {
        "409": "The same request is in progress (`idempotency-in-flight`), or the state does not allow it.",
        "422": "The key was used for another request: `idempotency-key-reuse`.",
    },
}
LIMIT_HEADERS = {
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
    "RateLimit-Policy": {
        "description": 'Limits, their requests and seconds: `"token";q=6000;w=60`.',
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": 'What remains, and the seconds until it is counted anew: `"token";r=0;t=12`.',
        "schema": {"type": "string"},
    },
}
REPLAYED_HEADER = {
    "description": "`true` in the response to a repeated key: status and body are those of the first response, but for"
    " secrets, which are null.",
    "schema": {"type": "string", "enum": ["true"]},
}
DRY_RUN_HEADER = {
    "description": "`true` if nothing was saved, as `dry_run` asked.",
    "schema": {"type": "string", "enum": ["true"]},
}


def add_problem_responses(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add to every operation its problems, and what repeated requests and dry runs return."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    for address in result["paths"].values():
        for method in METHODS:
            if method in address:
                _complete_responses(address[method])
    return result


def _complete_responses(operation: dict[str, Any]) -> None:
    names = {each["name"] for each in operation.get("parameters", ())}
    responses: dict[str, Any] = operation.setdefault("responses", {})
    successes = [responses[status] for status in sorted(responses) if status.startswith("2")]
    if "Idempotency-Key" in names:
        for each in successes:
            each.setdefault("headers", {})["Idempotency-Replayed"] = REPLAYED_HEADER
    if DRY_RUN in names:
        _add_dry_run(responses, successes[0])
    for parameter in names & PROBLEMS_BY_PARAMETER.keys():
        for status, description in PROBLEMS_BY_PARAMETER[parameter].items():
            responses.setdefault(status, {"description": description, "content": PROBLEM_CONTENT})
    responses["429"] = {
        "description": "The token, tenant or address sent too many requests: `rate-limited`.",
        "headers": LIMIT_HEADERS,
        "content": PROBLEM_CONTENT,
    }
    responses["default"] = {"description": "A problem; `fix` says what to do next.", "content": PROBLEM_CONTENT}


def _add_dry_run(responses: dict[str, Any], success: dict[str, Any]) -> None:
    if "200" not in responses:
        content = {"content": success["content"]} if "content" in success else {}
        responses["200"] = {"description": "With `dry_run`: what would result.", **content}
    responses["200"].setdefault("headers", {})["Dry-Run"] = DRY_RUN_HEADER


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
