"""Leases: asked for, read, named, extended, stopped and started, released."""

import re
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.api.serializers import (
    REASONS,
    STATES,
    AllocationOut,
    Allocations,
    ConnectionOut,
    Connections,
    Extension,
    LeaseChange,
    LeaseOut,
    LeaseWanted,
    TransitionOut,
    Transitions,
)
from broker.domain.states import EndReason, LeaseState, PriceClass
from broker.models import Allocation, Lease, Transition
from broker.services.connections import connections
from broker.services.leases import allowing, ending, growing, naming, placing, stopping
from broker.services.leases.request import Wanted, enqueue, look_up
from broker.services.leases.standing import positions
from ports.database import batched
from tenants.api.etag import Etagged
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.views import TenantViewSet, shape
from tenants.services import permissions
from tenants.services.permissions import project_for

TAG = re.compile(r"tag\.(.{1,60})", re.DOTALL)
SEQ = re.compile(r"[0-9]{1,9}")
STEPS = 500  # at once


class Leases(Etagged, ListModelMixin, TenantViewSet):
    """The right to a slice of a GPU for a while. `status` is ours to write, everything else yours."""

    serializer_class = LeaseOut
    project_field = "project"
    changing = ("partial_update",)
    sorts = ("-id", "id", "name", "-name", "created_at", "-created_at")
    search_in = ("name", "id", "offering__label")
    filters = {
        "state": Filter("state", choices=tuple(STATES)),
        "end_reason": Filter("end_reason", choices=tuple(REASONS)),
        "project": Filter("project_id"),
        "below": Filter("project__path", "below"),  # a project with all below it
        "offering": Filter("offering_id"),
        "price_class": Filter("offering__price_class", choices=tuple(each.value for each in PriceClass)),
        "created_at__gte": Filter("created_at__gte", "moment"),
        "created_at__lte": Filter("created_at__lte", "moment"),
    }
    parameters = frozenset({"requested_by"})  # `me` is whoever asks
    actions_needed = {
        "list": "leases.read",
        "retrieve": "leases.read",
        "transitions": "leases.read",
        "allocations": "leases.read",
        "connections": "leases.write",  # what opens a lease is for those who may use it
        "create": "leases.write",
        "partial_update": "leases.write",
        "destroy": "leases.write",
        "release": "leases.write",
        "extend": "leases.write",
        "stop": "leases.write",
        "start": "leases.write",
    }

    def get_queryset(self) -> QuerySet[Lease]:
        return self.visible(Lease.objects.select_related("offering", "project"))

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Understand `tag.team=nlp` besides the fixed filters."""
        tags = {name: found[1] for name in self.request.query_params if (found := TAG.fullmatch(name))}
        self.parameters = Leases.parameters | frozenset(tags)  # type: ignore[misc]  # this request's own
        for name, tag in tags.items():
            queryset = queryset.filter(tags__contains={tag: self.request.query_params[name]})
        if who := self.request.query_params.get("requested_by"):
            mine = self.request.actor.id if who == "me" else who
            queryset = queryset.filter(Filter("requested_by").condition("requested_by", mine))
        return super().filter_queryset(queryset)

    def get_serializer_context(self) -> dict[str, Any]:
        told = {"places": getattr(self, "places", {}), "moves": getattr(self, "moves", {})}
        return {**super().get_serializer_context(), **told}

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        self.places = positions([lease for lease in page or () if lease.state == LeaseState.QUEUED])
        self.moves = allowing.open_moves(page or ())
        return page

    def get_object(self) -> Lease:
        lease: Lease = super().get_object()
        self.places = positions([lease] if lease.state == LeaseState.QUEUED else [])
        self.moves = allowing.open_moves([lease])
        return lease

    @extend_schema(request=LeaseWanted, responses={202: LeaseOut})
    @batched
    @idempotent()
    def create(self, request_: Request) -> Response:
        """Ask for a lease. The answer comes before the slice does: follow `status.state`, or the events."""
        wanted = shape(LeaseWanted, request_)
        project_id = wanted.pop("project")
        project_found, found = getattr(self, "ahead", (None, None))
        lease = enqueue(
            Wanted(offering_id=wanted.pop("offering"), **wanted),
            project=project_for(self.request.roles, "leases.write", project_id, found=project_found),
            actor=self.request.actor,
            now=self.now,
            found=found,
        )
        if self.dry_run:
            placing.foresee(lease)
        return self.tagged(lease, status=202, Location=f"/api/v1/leases/{lease.pk}")

    def look_ahead(self, request_: Request) -> None:
        """Ask for project and offering along with the key: three answers for one wait."""
        body = request_.data if self.action == "create" and isinstance(request_.data, dict) else {}
        project_id, offering_id = body.get("project"), body.get("offering")
        if isinstance(project_id, str) and isinstance(offering_id, str):
            self.ahead = (permissions.look_up(project_id), look_up(offering_id))

    @extend_schema(request=LeaseChange)
    def partial_update(self, request_: Request, pk: str) -> Response:
        """Give it another name or other tags, or say whether it may be moved to another card."""
        lease = self.get_object()
        self.allow(lease.project.path)
        wanted = shape(LeaseChange, request_)
        movable = wanted.pop("movable", lease.movable)
        lease = allowing.allow_moves(lease, movable, actor=self.request.actor, now=self.now)
        return self.tagged(naming.rename(lease, actor=self.request.actor, now=self.now, **wanted))

    @extend_schema(responses={202: LeaseOut, 200: LeaseOut})
    def destroy(self, request_: Request, pk: str) -> Response:
        """Release it; a lease that is ending or over stays as it is, so this may be repeated."""
        lease = self.get_object()
        self.allow(lease.project.path)
        if lease.state == LeaseState.RELEASED:
            return self.tagged(lease)
        return self._release(lease)

    @extend_schema(request=None, responses={202: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def release(self, request_: Request, pk: str) -> Response:
        """End it now: nothing after this second is charged."""
        lease = self.get_object()
        self.allow(lease.project.path)
        return self._release(lease)

    @extend_schema(request=None, responses={202: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def stop(self, request_: Request, pk: str) -> Response:
        """Take it off its card and keep its volume: nothing after this second is charged until it is started."""
        lease = self.get_object()
        self.allow(lease.project.path)
        stopping.stop(lease, actor=self.request.actor, now=self.now)
        return self.tagged(lease, status=202)

    @extend_schema(request=None, responses={202: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def start(self, request_: Request, pk: str) -> Response:
        """Queue it again once it is stopped, for what is left of its time, as far as quotas allow."""
        lease = self.get_object()
        self.allow(lease.project.path)
        started = stopping.start(lease, actor=self.request.actor, now=self.now)
        self.places = positions([started])
        return self.tagged(started, status=202)

    @extend_schema(request=Extension, responses={200: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def extend(self, request_: Request, pk: str) -> Response:
        """Let it last longer, as far as quotas allow."""
        lease = self.get_object()
        self.allow(lease.project.path)
        wanted = shape(Extension, request_)
        return self.tagged(
            growing.extend(lease, more_s=wanted["more_s"], actor=self.request.actor, now=self.now)
        )

    @extend_schema(
        responses=Transitions,
        filters=False,
        parameters=[OpenApiParameter("cursor", str, description="Where the page before ended.")],
    )
    @action(detail=True, pagination_class=None)
    def transitions(self, request_: Request, pk: str) -> Response:
        """Return the steps of its life, first to last, 500 at once; what is charged follows from these alone."""
        life = Transition.objects.filter(lease_id=self.get_object().pk)
        cursor = request_.query_params.get("cursor", "")
        if cursor and not SEQ.fullmatch(cursor):
            raise ValidationError({"cursor": "Is not a cursor of this list."})
        steps = list(life.filter(seq__gt=int(cursor or -1)).order_by("seq")[: STEPS + 1])
        more = str(steps[STEPS - 1].seq) if len(steps) > STEPS else None
        items = TransitionOut(steps[:STEPS], many=True).data
        return Response({"items": items, "next_cursor": more, "total_estimate": life.count()})

    @extend_schema(responses=Allocations, filters=False)
    @action(detail=True, pagination_class=None)
    def allocations(self, request_: Request, pk: str) -> Response:
        """Return the places it holds and held, newest first."""
        places = Allocation.objects.filter(lease=self.get_object()).select_related("gpu__node__cluster")
        return _all(AllocationOut(places.order_by("-held_at", "gpu__index"), many=True).data)

    @extend_schema(responses=Connections, filters=False)
    @action(detail=True, pagination_class=None)
    def connections(self, request_: Request, pk: str) -> Response:
        """Return the ways into what runs on it, with what opens them; none before it is active."""
        lease = self.get_object()
        self.allow(lease.project.path)
        return _all(ConnectionOut(connections(lease), many=True).data)

    def _release(self, lease: Lease) -> Response:
        ending.release(lease, reason=EndReason.BY_TENANT, actor=self.request.actor, now=self.now)
        return self.tagged(lease, status=202)


def _all(items: Any) -> Response:
    """Answer a list that is complete, in the shape of a page."""
    return Response({"items": items, "next_cursor": None, "total_estimate": len(items)})
