"""Base viewsets of the API: rows of a noun or a tenant, and their ETags."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import cache
from typing import Any, ClassVar, TypeVar
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from rest_framework import viewsets
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from ports import clock
from tenants.models import Project
from tenants.services.authentication import project_for, require
from tenants.services.errors import ProblemError, StaleVersion
from web.http.authentication import TenantRequest
from web.http.filters import DEFAULT_ZONE, QueryFilter, WhitelistFilterBackend
from web.http.query_parameters import DRY_RUN, check_parameters, parse_flag

RowT = TypeVar("RowT", bound=Model)


class IfMatchMissing(ProblemError):
    code, status, title = "if-match-missing", 428, "The version to change is missing"


def validated_body(serializer: type[BaseSerializer[Any]], request: Request, *, partial: bool = False) -> Any:
    """Return the validated request body, or raise its validation errors.

    Times without a time zone are read in the tenant's; all are returned in UTC.
    """
    form = _cached_serializer(serializer, partial)  # type: ignore[arg-type]  # classes are hashable
    tenant = getattr(request, "tenant", None)
    with timezone.override(ZoneInfo(tenant.time_zone) if tenant else DEFAULT_ZONE):
        body = form.run_validation(request.data)
    return in_utc(body)


def in_utc(value: Any) -> Any:
    """Return a validated body with every time in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return {name: in_utc(inner) for name, inner in value.items()}
    return [in_utc(inner) for inner in value] if isinstance(value, list) else value


@cache
def _cached_serializer(serializer: type[BaseSerializer[Any]], partial: bool) -> BaseSerializer[Any]:
    """Return the cached serializer of a class.

    Validating a body does not change it, and creating its fields costs a millisecond.
    """
    return serializer(partial=partial)


OPTIONS = "metadata"  # DRF's name of the action
DESCRIPTION_LINK = '</api/v1/openapi.json>; rel="service-desc"'
PAGE_PARAMETERS = frozenset({"limit", "cursor", "sort"})
NEWEST_FIRST, OLDEST_FIRST = ("-id", "id"), ("id", "-id")


class RowViewSet(viewsets.GenericViewSet[Any]):
    """Collection of rows with filters, search and sorts by whitelist.

    A noun that tenants and operators both list has one subclass of this, from which the views of both derive.
    """

    rows: ClassVar[QuerySet[Any]]  # of all tenants
    filters: ClassVar[dict[str, QueryFilter]] = {}
    sorts: ClassVar[tuple[str, ...]] = NEWEST_FIRST  # the first is the default; never a nullable column
    search_in: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[frozenset[str]] = frozenset()  # further query parameters of its list
    action_parameters: ClassVar[Mapping[str, frozenset[str]]] = {}  # query parameters of its other reading actions
    filter_backends = [WhitelistFilterBackend]
    beside: Mapping[str, Any] = {}  # serializer context that `prepare` reads for the shown rows

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.now = clock.now()
        if self.action == OPTIONS:
            return  # the same for everybody: nobody needs to be known
        super().initial(request, *args, **kwargs)
        if self.action is not None and request.query_params:  # without an action the method does not exist
            check_parameters(request, self.known_parameters)

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """Answer which methods the address has; DRF adds them as `Allow`."""
        return Response(status=204, headers={"Link": DESCRIPTION_LINK})

    @property
    def known_parameters(self) -> frozenset[str]:
        """Return the query parameters that the current action knows."""
        if self.request.method not in SAFE_METHODS or self.action != "list":
            return self.action_parameters.get(self.action, frozenset())
        paginated = PAGE_PARAMETERS if self.paginator else frozenset()
        return self.parameters | self.filters.keys() | paginated | frozenset({"q"} if self.search_in else ())

    @property
    def zone(self) -> ZoneInfo:
        """Return the time zone of moments that are sent without one."""
        return DEFAULT_ZONE

    def get_queryset(self) -> QuerySet[Any]:
        return self.rows.all()

    def prepare(self, rows: list[Any]) -> list[Any]:
        """Read what is shown beside a page of rows, or beside one; nothing by default."""
        return rows

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        return None if page is None else self.prepare(list(page))

    def find_row(self) -> Any:
        """Return the row that the URL names."""
        return super().get_object()

    def get_object(self) -> Any:
        """Return the row that the URL names, with what is shown beside it."""
        (row,) = self.prepare([self.find_row()])
        return row

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **self.beside}

    def read_scope(self) -> AbstractContextManager[None]:
        """Open the scope in which rows are read; a tenant's request has its own."""
        return nullcontext()


class TenantViewSet(RowViewSet):
    """Collection of the tenant's rows.

    `actions_needed` names the action of `tenants/domain/roles.py` each method needs; a method not named there is
    refused. `?dry_run=true` on any write returns what would result, and rolls it back.
    """

    request: TenantRequest
    actions_needed: ClassVar[dict[str, str]] = {}
    changes_nothing: ClassVar[bool] = False  # its POST changes nothing: a suspended tenant may send it too
    project_field: ClassVar[str | None] = None  # field with the row's project
    dry_run: bool = False  # whether the request asks for its result only

    def get_queryset(self) -> QuerySet[Any]:
        return self.visible(self.rows.all())

    @property
    def by(self) -> dict[str, Any]:
        """Return who acts and when, as services take it."""
        return {"actor": self.request.actor, "now": self.now}

    def visible(self, rows: QuerySet[RowT]) -> QuerySet[RowT]:
        """Restrict rows to this tenant and to projects where the visitor has the action."""
        rows = rows.filter(tenant=self.request.tenant)
        return self.in_reach(rows, self.project_field) if self.project_field else rows

    def in_reach(self, rows: QuerySet[RowT], field: str) -> QuerySet[RowT]:
        """Restrict rows to projects where the visitor may *read* this kind of row."""
        needed = self.actions_needed[self.action]
        reach = self.request.roles.projects(needed.partition(".")[0] + ".read")
        if reach is None:
            return rows
        below = Project.objects.filter(tenant=self.request.tenant, path__overlap=sorted(reach))
        return rows.filter(Q(**{f"{field}__in": below.values("pk")}))

    def allow(self, path: Any = (), *, action: str | None = None) -> None:
        """Raise NotAllowed unless the visitor has this method's action on the node."""
        if action is None and self.action in (None, OPTIONS):
            return  # no such method here: DRF answers 405; or one that anybody may use
        require(self.request.roles, action or self.actions_needed[self.action], path)

    def project_for(self, project_id: str, *, action: str | None = None) -> Project:
        """Return a project named in the body, if the visitor has the action there."""
        return project_for(self.request.roles, action or self.actions_needed[self.action], project_id)

    def look_ahead(self, request: Request) -> None:
        """Query what the body names before the first result is awaited; nothing by default."""

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        return known if self.request.method in SAFE_METHODS else known | {DRY_RUN}

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.request.tenant.time_zone)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        text = request.query_params.get(DRY_RUN) if request.method not in SAFE_METHODS else None
        self.dry_run = text is not None and parse_flag(DRY_RUN, text)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(response, Response) and response.status_code < 400 and hasattr(self, "now") and self.dry_run:
            transaction.set_rollback(True)
            response.status_code = 200
            response["Dry-Run"] = "true"
        return response


class WholeTenantViewSet(TenantViewSet):
    """Collection of data that belongs to the whole tenant, not to a project."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.allow()


def needs(action: str, *methods: str) -> dict[str, str]:
    """Return the action that each of these methods needs."""
    return dict.fromkeys(methods, action)


def complete_page(items: Any) -> Response:
    """Return a response of a complete list, in the format of a page."""
    return Response({"items": items, "next_cursor": None, "total_estimate": len(items)})


def etag_of(row: Any) -> str:
    """Return the ETag of a row that has a `version`."""
    return f'"{row.version}"'


class ETagViewSet(viewsets.GenericViewSet[Any]):
    """Viewset of rows with a `version`: PATCH and DELETE need If-Match."""

    changing: ClassVar[tuple[str, ...]] = ("partial_update", "destroy")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Lock the row to change before its version is compared, so that concurrent changes serialise."""
        rows = super().filter_queryset(queryset)
        return rows.select_for_update(of=("self",)) if self.action in self.changing else rows

    def get_object(self) -> Any:
        """Return the row; for a change, check that If-Match names its version."""
        row = super().get_object()
        if self.action in self.changing:
            self.match(self.request, row)
        return row

    @staticmethod
    def match(request: Request, row: Any) -> None:
        """Raise unless If-Match names the row's current version."""
        wanted = request.headers.get("If-Match")
        if not wanted:
            raise IfMatchMissing(
                "Changes need the header If-Match with the ETag you last read.",
                fix=f"Get the object and send If-Match: {etag_of(row)}.",
            )
        if wanted.strip() != "*" and etag_of(row) not in [part.strip() for part in wanted.split(",")]:
            raise StaleVersion(
                f"You sent If-Match: {wanted[:60]}, but the current ETag is {etag_of(row)}.",
                fix="Get the object again, check what changed, and send your change with the new ETag.",
            )

    def tagged(self, row: Any, *, status: int = 200, **headers: str) -> Response:
        """Return a response of the row with its ETag."""
        body = self.get_serializer(row).data
        return Response(body, status=status, headers={"ETag": etag_of(row), **headers})

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one."""
        return self.tagged(self.get_object())
