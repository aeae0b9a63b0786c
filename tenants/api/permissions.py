"""The one permission class: somebody of this tenant, whose role and token reach the view's action."""

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from tenants.domain.roles import ACTIONS, Grants
from tenants.services.doors import Visitor
from tenants.services.permissions import not_suspended, refuse


class InTenant(BasePermission):
    """Deny unless the view names, in `actions_needed`, an action that the visitor has on some project.

    Which projects is then a matter of `TenantViewSet.visible` (reading) and `allow` (changing).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        visitor = getattr(request, "visitor", None)
        if not isinstance(visitor, Visitor):
            return False
        if request.method not in SAFE_METHODS and not getattr(view, "asks_only", False):
            not_suspended(visitor.tenant)
        needed = needed_by(view)
        if needed is None:
            return True  # no such method here: DRF answers 405
        if not visitor.grants.anywhere(needed):
            refuse(needed, visitor.grants)
        return True


def needed_by(view: Any) -> str | None:
    """Return the action a view's present method asks for, or None when it has no such method."""
    name = getattr(view, "action", None)
    if name is None or name == "metadata":
        return None
    needed: str = view.actions_needed[name]  # a KeyError is a view that forgot to say; tests find it
    if needed not in ACTIONS:
        raise LookupError(f"{type(view).__name__}.{name} needs {needed!r}, which no role has")
    return needed


def may(request: Any, action: str, path: Any = ()) -> bool:
    """Tell whether the visitor of this request may do it there, for answers that say so."""
    roles: Grants = request.roles
    return roles.may(action, path)
