"""What every viewset of a tenant's collection stands on."""

from functools import cache
from typing import Any, ClassVar, TypeVar

from django.db import transaction
from django.db.models import Model, Q, QuerySet
from rest_framework import viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from ports import clock
from tenants.api.authentication import TenantRequest
from tenants.api.filters import Filter, Whitelist
from tenants.models import Project
from tenants.services.permissions import project_for, require

Row = TypeVar("Row", bound=Model)


def shape(serializer: type[BaseSerializer[Any]], request: Request, *, partial: bool = False) -> Any:
    """Return the body in the shape this serializer describes, or raise what is wrong with it."""
    form = _form(serializer, partial)  # type: ignore[arg-type]  # classes hash, whatever their instances do
    return form.run_validation(request.data)


@cache
def _form(serializer: type[BaseSerializer[Any]], partial: bool) -> BaseSerializer[Any]:
    """Keep one serializer of each kind: checking a body changes nothing in it, and its fields cost a millisecond."""
    return serializer(partial=partial)


def legible(request: Request) -> None:
    """Refuse a NUL anywhere in the query string: no column holds one, so nothing can be found by it."""
    odd = [
        name
        for name, values in request.query_params.lists()
        if any("\x00" in text for text in (name, *values))
    ]
    if odd:
        said = ["Holds a NUL character, which no text here does. Send it without."]
        raise ValidationError({name.replace("\x00", "\N{REPLACEMENT CHARACTER}"): said for name in odd})


class TenantViewSet(viewsets.GenericViewSet[Any]):
    """A collection of the tenant's rows.

    Say which action of `tenants/domain/roles.py` each method needs; a method not named is refused.
    `?dry_run=true` on any write answers what would have been, and undoes it.
    """

    request: TenantRequest
    actions_needed: ClassVar[dict[str, str]] = {}
    filters: ClassVar[dict[str, Filter]] = {}
    sorts: ClassVar[tuple[str, ...]] = ("-id",)  # the first is the default; never a nullable column
    search_in: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[frozenset[str]] = frozenset()  # further query parameters of this view
    asks_only: ClassVar[bool] = False  # its POST changes nothing: a suspended tenant may send it too
    project_field: ClassVar[str | None] = None  # where a row says which project it belongs to
    filter_backends = [Whitelist]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        legible(request)
        self.now = clock.now()

    def visible(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Leave only rows of this tenant and of projects where the visitor has this method's action."""
        rows = rows.filter(tenant=self.request.tenant)
        return self.in_reach(rows, self.project_field) if self.project_field else rows

    def in_reach(self, rows: QuerySet[Row], field: str) -> QuerySet[Row]:
        """Leave only rows of projects where the visitor may *read* this kind of thing."""
        needed = self.actions_needed[self.action]
        reach = self.request.roles.projects(needed.partition(".")[0] + ".read")
        if reach is None:
            return rows
        below = Project.objects.filter(tenant=self.request.tenant, path__overlap=sorted(reach))
        return rows.filter(Q(**{f"{field}__in": below.values("pk")}))

    def allow(self, path: Any = (), *, action: str | None = None) -> None:
        """Refuse unless the visitor has this method's action on the node with this path."""
        if action is None and self.action is None:
            return  # no such method here: DRF answers 405
        require(self.request.roles, action or self.actions_needed[self.action], path)

    def project_for(self, project_id: str, *, action: str | None = None) -> Project:
        """Return a project named in the body, if the visitor may do this method's action there."""
        return project_for(self.request.roles, action or self.actions_needed[self.action], project_id)

    def look_ahead(self, request: Request) -> None:
        """Ask the database for what the body names, before the first answer is waited for; nothing by default."""

    @property
    def dry_run(self) -> bool:
        asked = self.request.query_params.get("dry_run") == "true"
        return asked and self.request.method not in SAFE_METHODS

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        if (
            isinstance(response, Response)
            and response.status_code < 400
            and hasattr(self, "now")
            and self.dry_run
        ):
            transaction.set_rollback(True)
            response.status_code = 200
            response["Dry-Run"] = "true"
        return response
