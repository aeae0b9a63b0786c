"""OpenAPI extensions: credentials, Idempotency-Key, ETags and the action each method needs."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter


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


class ApiSchema(AutoSchema):
    """OpenAPI schema of our views."""

    def get_override_parameters(self) -> list[Any]:
        found = list(super().get_override_parameters())
        view, action = self.view, getattr(self.view, "action", "")
        method = getattr(view, action or "", None)
        if getattr(method, "needs_key", False):
            words = "A new random value. The same value returns the same response for seven days."
            found.append(header_parameter("Idempotency-Key", words, required=True))
        if action in getattr(view, "changing", ()):
            found.append(
                header_parameter("If-Match", "The ETag you last read; an outdated one is refused.", required=True)
            )
        if self.method not in ("GET", "HEAD") and hasattr(view, "dry_run"):
            words = "Return the result without saving it."
            found.append(OpenApiParameter("dry_run", bool, OpenApiParameter.QUERY, description=words))
        return found

    def get_description(self) -> str:  # type: ignore[override]
        text: str = super().get_description()
        needed = getattr(self.view, "actions_needed", {}).get(getattr(self.view, "action", ""))
        return f"{text}\n\nRequires the action `{needed}`." if needed else text
