"""What drf-spectacular cannot see by itself: credentials, keys, ETags, and what an action needs."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter


class Bearer(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "tenants.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "`gpb_…`, made on the page Tokens."}


class Session(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "tenants.api.authentication.PortalAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


def header(name: str, description: str, *, required: bool) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, required=required, description=description)


class Described(AutoSchema):
    """The schema of a view of ours."""

    def get_override_parameters(self) -> list[Any]:
        found = list(super().get_override_parameters())
        view, action = self.view, getattr(self.view, "action", "")
        method = getattr(view, action or "", None)
        if getattr(method, "needs_key", False):
            words = "A new random value; the same one again gets the same answer, for seven days."
            found.append(header("Idempotency-Key", words, required=True))
        if action in getattr(view, "changing", ()):
            found.append(header("If-Match", "The ETag that was read; a stale one is refused.", required=True))
        if self.method not in ("GET", "HEAD") and hasattr(view, "dry_run"):
            words = "Answer what would have been, and undo it."
            found.append(OpenApiParameter("dry_run", bool, OpenApiParameter.QUERY, description=words))
        return found

    def get_description(self) -> str:  # type: ignore[override]
        text: str = super().get_description()
        needed = getattr(self.view, "actions_needed", {}).get(getattr(self.view, "action", ""))
        return f"{text}\n\nNeeds the action `{needed}`." if needed else text
