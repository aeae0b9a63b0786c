"""The header Idempotency-Key: the same request twice has one effect and one answer."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from tenants.services import answers
from tenants.services.answers import Asked, KeyMissing
from tenants.services.refusals import Invalid

View = TypeVar("View", bound=Callable[..., Any])
KEPT_HEADERS = ("Location", "ETag")
LONGEST = 255


def idempotent(*, hide: tuple[str, ...] = ()) -> Callable[[View], View]:
    """Answer a repeated POST with its first answer, and `Idempotency-Replayed: true`.

    Every POST that changes something carries it, and is refused without a key.
    `hide` names fields that are shown only the first time, such as a token's secret.
    """

    def wrap(view: View) -> View:
        @wraps(view)
        def once(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            key = request.headers.get("Idempotency-Key", "")
            if not key:
                raise KeyMissing(
                    "This request changes something, so it must be safe to repeat.",
                    fix="Send Idempotency-Key with a new random value, and the same one when you try again.",
                )
            if self.dry_run:
                return view(self, request, *args, **kwargs)
            asked = _asked(request, key)
            found = answers.look_up(asked)
            self.look_ahead(request)
            if (before := found()) is not None:
                return _again(before)
            response = view(self, request, *args, **kwargs)
            if isinstance(response, Response) and response.status_code < 400:
                return _kept(asked, response, hide, now=self.now)
            return response

        once.needs_key = True  # type: ignore[attr-defined]  # the schema says so too
        return cast(View, once)

    return wrap


def _asked(request: Any, key: str) -> Asked:
    if len(key) > LONGEST or not key.isascii() or not key.isprintable():
        raise Invalid(
            "Idempotency-Key",
            f"A key has at most {LONGEST} printable ASCII characters.",
            fix="Use a random UUID.",
        )
    return Asked(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method=request.method,
        path=request.path[:300],
        key=key,
        digest=answers.digest_of(request.data, request.META.get("QUERY_STRING", "")),
    )


def _again(before: Any) -> HttpResponse:
    response = HttpResponse(before.body, status=before.status, content_type="application/json")
    for name, value in before.headers.items():
        response[name] = value
    response["Idempotency-Replayed"] = "true"
    return response


def _kept(asked: Asked, response: Response, hide: tuple[str, ...], *, now: Any) -> HttpResponse:
    """Store the answer, and give it as it was stored: it is written as JSON only once."""
    body = response.data
    if hide and isinstance(body, dict):
        body = {name: None if name in hide else value for name, value in body.items()}
    text = JSONRenderer().render(body).decode()
    headers = {name: response[name] for name in KEPT_HEADERS if response.has_header(name)}
    answers.keep(asked, status=response.status_code, headers=headers, body=text, now=now)
    if hide:
        return response
    return HttpResponse(text, status=response.status_code, headers=headers, content_type="application/json")
