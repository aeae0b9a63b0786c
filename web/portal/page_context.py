"""Request context of the tenant's pages: visitor, project, time and time zone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, wraps
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from broker.models import Lease
from broker.models.leases import LeaseQuerySet
from ports import clock
from tenants.domain.roles import RoleGrants
from tenants.models import Project, Tenant
from tenants.services.actors import Actor
from tenants.services.authentication import Visitor, require
from tenants.services.errors import InvalidValue, ProblemError
from web.http.errors import refusal_page
from web.portal.authentication import GET, tenant_required
from web.portal.authentication import GET_OR_POST as GET_OR_POST
from web.portal.authentication import POST as POST
from web.portal.authentication import SAFE as SAFE

View = Callable[..., HttpResponse]


class PageRequest(HttpRequest):
    """Request that a tenant's page receives."""

    tenant: Tenant
    project: Project
    projects: list[Project]
    actor: Actor
    roles: RoleGrants
    visitor: Visitor
    now: datetime
    events: str  # URL of the live event stream
    scope: "Scope"


@dataclass(frozen=True)
class Scope:
    """The open project with all below it; the root stands for the whole tenant."""

    tenant: Tenant
    project: Project
    # Values that both page and layout show, read once.
    known: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def whole(self) -> bool:
        return len(self.project.path) == 1

    def projects(self) -> QuerySet[Project]:
        """Return the projects in scope, archived ones too, since their money was spent here."""
        rows = Project.objects.filter(tenant=self.tenant)
        return rows if self.whole else rows.filter(path__contains=[self.project.pk])

    @cached_property
    def ids(self) -> list[str] | None:
        """Return the projects' ids for an SQL statement; None is the whole tenant."""
        return None if self.whole else list(self.projects().values_list("pk", flat=True))

    def leases(self) -> LeaseQuerySet:
        """Return the leases in scope."""
        rows = Lease.objects.filter(tenant=self.tenant)
        return rows if self.whole else rows.filter(project__in=self.projects().values("pk"))


def scope_of(request: Any) -> Scope:
    """Return the scope of a request inside a tenant, the same object each time."""
    if not hasattr(request, "scope"):
        request.scope = Scope(request.tenant, request.project)
    return request.scope  # type: ignore[no-any-return]


def tenant_page(
    action: str = "tenant.read", *, methods: Sequence[str] = GET, changes_nothing: bool = False
) -> Callable[[View], View]:
    """Decorate a page: require an action and set the time, scope and time zone.

    A page that takes forms and changes nothing (`changes_nothing`) works in a suspended tenant too. A refusal
    that the page does not show beside its field becomes the error page and rolls back.
    """

    def wrap(view: View) -> View:
        @tenant_required(action, methods=methods, changes_nothing=changes_nothing)
        @wraps(view)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.project is None:
                return redirect("create-tenant")
            request.now = clock.now()
            request.events = f"{settings.EVENTS_URL}/api/v1/events/stream"
            request.scope = scope_of(request)
            with timezone.override(request.tenant.time_zone):
                try:
                    refuse_nul(request, kwargs)
                    return view(request, *args, **kwargs)
                except ProblemError as refusal:
                    return refusal_page(request, refusal)

        return inside  # type: ignore[return-value]

    return wrap


def refuse_nul(request: HttpRequest, kwargs: dict[str, str]) -> None:
    """Refuse a NUL character anywhere in the request: no column can hold it."""
    sent = [text for form in (request.GET, request.POST) for _, texts in form.lists() for text in texts]
    if any("\x00" in text for text in [*kwargs.values(), *sent]):
        raise InvalidValue("", _("The request contains a NUL character."), fix=_("Remove it and try again."))


def may_in_project(request: PageRequest, action: str) -> bool:
    """Return whether the visitor may do this in the open project."""
    return request.roles.may(action, request.project.path)


def require_in_project(request: PageRequest, action: str, project: Project) -> None:
    """Refuse unless the visitor may do this in that project."""
    require(request.roles, action, project.path)


def public_url(path: str) -> str:
    """Return an absolute URL, as people outside reach it."""
    return settings.PUBLIC_URL.rstrip("/") + path
