"""What every page of the portal stands on: who looks, at which project, when, and in which time zone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, wraps
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from broker.models import Lease
from broker.models.leases import LeaseQuerySet
from ports import clock
from tenants.domain.roles import Grants
from tenants.models import Project, Tenant
from tenants.portal.doors import in_tenant
from tenants.services.actors import Actor
from tenants.services.doors import Visitor
from tenants.services.permissions import require
from tenants.services.refusals import Invalid, Refused

View = Callable[..., HttpResponse]


class PageRequest(HttpRequest):
    """What a page of the portal gets."""

    tenant: Tenant
    project: Project
    projects: list[Project]
    actor: Actor
    roles: Grants
    visitor: Visitor
    now: datetime
    events: str  # where the live stream is
    scope: "Scope"


@dataclass(frozen=True)
class Scope:
    """The project that is open with all below it; the root stands for the whole tenant."""

    tenant: Tenant
    project: Project
    # What page and frame both show is asked for once.
    known: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def whole(self) -> bool:
        return len(self.project.path) == 1

    def projects(self) -> QuerySet[Project]:
        """Return the projects in it, archived ones too: their money was spent here."""
        rows = Project.objects.for_tenant(self.tenant)
        return rows if self.whole else rows.filter(path__contains=[self.project.pk])

    @cached_property
    def ids(self) -> list[str] | None:
        """The projects' ids for a statement, read once; None is the whole tenant."""
        return None if self.whole else list(self.projects().values_list("pk", flat=True))

    def leases(self) -> LeaseQuerySet:
        """Return the leases in it."""
        rows = Lease.objects.for_tenant(self.tenant)
        return rows if self.whole else rows.filter(project__in=self.projects().values("pk"))


def scope_of(request: Any) -> Scope:
    """Return the scope of a request that has entered a tenant, the same one each time."""
    if not hasattr(request, "scope"):
        request.scope = Scope(request.tenant, request.project)
    return request.scope  # type: ignore[no-any-return]


def page(action: str = "tenant.read", *, asks_only: bool = False) -> Callable[[View], View]:
    """Let a page be seen by whoever has this action, in the tenant's time zone and at one moment.

    A page that takes forms and changes nothing (`asks_only`) is there for a suspended tenant too.
    A refusal that the page does not show beside its field becomes the error page, and undoes the request.
    """

    def wrap(view: View) -> View:
        @in_tenant(action, asks_only=asks_only)
        @wraps(view)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.project is None:
                return redirect("no-tenant")
            request.now = clock.now()
            request.events = f"{settings.EVENTS_URL}/api/v1/events"
            request.scope = scope_of(request)
            with timezone.override(request.tenant.time_zone):
                try:
                    legible(request, kwargs)
                    return view(request, *args, **kwargs)
                except Refused as refusal:
                    return refused(request, refusal)

        return inside  # type: ignore[return-value]

    return wrap


def legible(request: HttpRequest, kwargs: dict[str, str]) -> None:
    """Refuse text that no column can hold, wherever it stands in the request."""
    sent = [text for form in (request.GET, request.POST) for _, texts in form.lists() for text in texts]
    if any("\x00" in text for text in [*kwargs.values(), *sent]):
        raise Invalid("", "The request holds a NUL character.", fix="Send it without.")


def refused(request: HttpRequest, refusal: Refused) -> HttpResponse:
    """Answer with the error page that says what, why and what next."""
    told = {
        "status": refusal.status,
        "title": refusal.title,
        "detail": refusal.detail,
        "fix": refusal.fix.text,
        "request_id": getattr(request, "id", ""),
    }
    return render(request, "errors/page.html", told, status=refusal.status)


def may(request: PageRequest, action: str) -> bool:
    """Tell whether the visitor may do this in the project that is open."""
    return request.roles.may(action, request.project.path)


def must(request: PageRequest, action: str, project: Project) -> None:
    """Refuse unless the visitor may do this in that project."""
    require(request.roles, action, project.path)


def public(path: str) -> str:
    """Return an address as it stands in a call: absolute, as people outside reach it."""
    return settings.PUBLIC_URL.rstrip("/") + path
