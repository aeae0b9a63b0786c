"""The Idempotency-Key header: a repeated request has one effect and one response."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.http import HttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from tenants.services import idempotency
from tenants.services.errors import InvalidValue
from tenants.services.idempotency import IdempotencyKeyMissing, KeyedRequest

ViewMethod = TypeVar("ViewMethod", bound=Callable[..., Any])
STORED_HEADERS = ("Location", "ETag")
MAX_KEY_LENGTH = 255


def idempotent(
    *, hide: tuple[str, ...] = (), blank: tuple[str, ...] = (), secret: tuple[str, ...] = ()
) -> Callable[[ViewMethod], ViewMethod]:
    """Return the first response for a repeated POST, with `Idempotency-Replayed: true`.

    Every POST that changes something has this decorator, and is refused without a key.
    `hide` names fields that are shown only the first time, such as a token's secret, and `blank` maps of which only
    the names are shown again. `secret` names fields of
    the request that nobody may guess from the stored digest of its body.
    """

    def wrap(view: ViewMethod) -> ViewMethod:
        @wraps(view)
        def once(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            key = request.headers.get("Idempotency-Key", "")
            if not key:
                raise IdempotencyKeyMissing(
                    "Requests that change data need an idempotency key, so that they can be repeated safely.",
                    fix="Send Idempotency-Key with a new random value. Use the same value when you retry.",
                )
            if getattr(self, "dry_run", False):
                return view(self, request, *args, **kwargs)
            tenant = getattr(request, "tenant", None)
            keyed = _keyed_request(request, key, secret, tenant.pk if tenant else "", self.by["actor"].id)
            found = idempotency.start_lookup(keyed)
            if tenant:
                self.look_ahead(request)
            if (before := found()) is not None:
                return _replayed_response(before)
            response = view(self, request, *args, **kwargs)
            if isinstance(response, Response) and response.status_code < 400:
                return _stored_response(keyed, response, hide, blank, now=self.now)
            return response

        once.needs_key = True  # type: ignore[attr-defined]  # read by the OpenAPI schema
        return cast(ViewMethod, once)

    return wrap


def _keyed_request(request: Any, key: str, secret: tuple[str, ...], tenant_id: str, bearer: str) -> KeyedRequest:
    if len(key) > MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise InvalidValue(
            "Idempotency-Key",
            f"A key must have 1 to {MAX_KEY_LENGTH} printable ASCII characters.",
            fix="Use a random UUID.",
        )
    body = idempotency.blind_fields(request.data, secret)
    return KeyedRequest(
        tenant_id=tenant_id,
        bearer=bearer,
        method=request.method,
        path=request.path[:300],
        key=key,
        digest=idempotency.request_digest(body, request.META.get("QUERY_STRING", "")),
    )


def _replayed_response(before: Any) -> HttpResponse:
    response = HttpResponse(before.body, status=before.status, content_type="application/json")
    for name, value in before.headers.items():
        response[name] = value
    response["Idempotency-Replayed"] = "true"
    return response


def _stored_response(
    keyed: KeyedRequest, response: Response, hide: tuple[str, ...], blank: tuple[str, ...], *, now: Any
) -> HttpResponse:
    """Store the response and return it as stored.

    It is thus rendered as JSON only once.
    """
    body = response.data
    if hide and isinstance(body, dict):
        body = {name: None if name in hide else value for name, value in body.items()}
    if blank and isinstance(body, dict):
        body = {name: dict.fromkeys(value, "") if name in blank else value for name, value in body.items()}
    text = JSONRenderer().render(body).decode()
    headers = {name: response[name] for name in STORED_HEADERS if response.has_header(name)}
    idempotency.store_record(keyed, status=response.status_code, headers=headers, body=text, now=now)
    if hide or blank:
        return response
    return HttpResponse(text, status=response.status_code, headers=headers, content_type="application/json")
