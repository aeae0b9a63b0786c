"""OpenAPI extensions: credentials, Idempotency-Key, ETags and the action each method needs."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from web.http.query_parameters import DRY_RUN, FLAG_DESCRIPTION


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "web.http.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "`gpb_…`, created on the Tokens page."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "web.http.authentication.PortalAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


def header_parameter(name: str, description: str, *, required: bool) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, required=required, description=description)


ETAG_HEADER = {"description": "Version of the object, for If-Match.", "schema": {"type": "string"}}


class ApiSchema(AutoSchema):
    """OpenAPI schema of our views."""

    def get_override_parameters(self) -> list[Any]:
        found = list(super().get_override_parameters())
        view, action = self.view, getattr(self.view, "action", "")
        method = getattr(view, action or "", None)
        if getattr(method, "needs_key", False):
            words = "A new random value. The same value returns the same response for seven days, but for secrets."
            found.append(header_parameter("Idempotency-Key", words, required=True))
        if action in getattr(view, "changing", ()):
            found.append(
                header_parameter("If-Match", "The ETag you last read; an outdated one is refused.", required=True)
            )
        if self.method not in ("GET", "HEAD") and hasattr(view, "dry_run"):
            words = f"Return the result without saving it. {FLAG_DESCRIPTION}"
            found.append(OpenApiParameter(DRY_RUN, bool, OpenApiParameter.QUERY, description=words))
        return found

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """Return the operation, with the ETag of its responses where they have one."""
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        action = getattr(self.view, "action", "")
        if operation and hasattr(self.view, "changing") and action in ("retrieve", "partial_update"):
            for status, response in operation["responses"].items():
                if status.startswith("2"):
                    response.setdefault("headers", {})["ETag"] = ETAG_HEADER
        return operation

    def get_description(self) -> str:  # type: ignore[override]
        text: str = super().get_description()
        needed = getattr(self.view, "actions_needed", {}).get(getattr(self.view, "action", ""))
        return f"{text}\n\nRequires the action `{needed}`." if needed else text
