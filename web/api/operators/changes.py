"""POST and PATCH of operators: keys of requests, and answers read with staff access."""

import hashlib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.db.models import Model
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.services.errors import InvalidValue
from tenants.services.idempotency import IdempotencyKeyMissing
from web.api.operators.base_views import CrossTenantViewSet

ViewMethod = TypeVar("ViewMethod", bound=Callable[..., Any])


class ChangingViewSet(CrossTenantViewSet):
    """Collection of all tenants' rows that operators add to and change."""

    request_key: str = ""  # of the POST in progress, as services take it

    def changed(self, row: Model, *, status: int = 200) -> Response:
        """Return a response of a row after its change."""
        with self.read_scope():
            shown = self.get_queryset().get(pk=row.pk)
            return Response(self.get_serializer(self.prepare([shown])[0]).data, status=status)

    def row_to_change(self) -> Any:
        """Return the row that the URL names, read with staff access."""
        with self.read_scope():
            return self.find_row()


def keyed(view: ViewMethod) -> ViewMethod:
    """Require an Idempotency-Key, with which the service does the same only once."""

    @wraps(view)
    def once(self: Any, request: Request, *args: Any, **kwargs: Any) -> Any:
        key = request.headers.get("Idempotency-Key", "")
        if not key:
            raise IdempotencyKeyMissing(
                "Requests that change data need an idempotency key, so that they can be repeated safely.",
                fix="Send Idempotency-Key with a new random value. Use the same value when you retry.",
            )
        self.request_key = f"api {hashlib.sha256(f'{request.user.pk} {key}'.encode()).hexdigest()[:40]}"
        return view(self, request, *args, **kwargs)

    once.needs_key = True  # type: ignore[attr-defined]  # read by the OpenAPI schema
    return cast(ViewMethod, once)


def require_field(body: dict[str, Any], name: str, *, fix: str) -> Any:
    """Return a field that a change needs, or raise InvalidValue."""
    if not body.get(name):
        raise InvalidValue(name, "The field is required for this change.", fix=fix)
    return body[name]
