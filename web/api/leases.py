"""API of leases: request, read, rename, extend, stop, start and release."""

import re
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.lifecycle.states import EndReason, LeaseState, PriceClass
from broker.models import Allocation, Lease, Transition
from broker.services.leases import attempt_records, lease_names, relocation_consent
from broker.services.leases.end_notices import end_terms, notice_records
from broker.services.leases.lease_connections import lease_connections_of
from broker.services.leases.lease_requests import LeaseRequest, queue_lease, send_offering_query
from broker.services.leases.lifecycle import extension, stop_and_start, termination
from broker.services.queue import lease_placement
from broker.services.queue.queue_positions import load_queue_positions
from ports.postgres.sql_statements import batched
from tenants.services import authentication
from web.api.base_views import ETagViewSet, RowViewSet, TenantViewSet, complete_page, needs, validated_body
from web.api.lease_serializers import (
    END_REASONS,
    LEASE_STATES,
    AllocationOut,
    ConnectionOut,
    LeaseAttemptOut,
    LeaseChange,
    LeaseCreate,
    LeaseExtension,
    LeaseNoticeOut,
    LeaseOut,
    TransitionOut,
    page_of,
)
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent
from web.http.query_parameters import TAG

SEQ_CURSOR = re.compile(r"[0-9]{1,9}")
END_TERMS = ("extend_by_s", "extend_limit_s", "notify_on_end")
TRANSITIONS_PER_PAGE = 500  # per response


class LeaseRows(RowViewSet):
    """Leases, as tenants and operators list them."""

    rows = Lease.objects.select_related("offering", "project")
    filters = {
        "state": QueryFilter("state", choices=tuple(LEASE_STATES)),
        "end_reason": QueryFilter("end_reason", choices=tuple(END_REASONS)),
        "project": QueryFilter("project_id"),
        "offering": QueryFilter("offering_id"),
        "array": QueryFilter("array_id"),
    }


class LeaseViewSet(LeaseRows, ETagViewSet, ListModelMixin, TenantViewSet):
    """The right to a GPU slice for some time; everything in `status` is read-only."""

    serializer_class = LeaseOut
    project_field = "project"
    changing = ("partial_update",)
    sorts = ("-id", "id", "name", "-name", "created_at", "-created_at")
    search_in = ("name", "id", "offering__label")
    filters = LeaseRows.filters | {
        "below": QueryFilter("project__path", "below"),  # a project and its subtree
        "price_class": QueryFilter("offering__price_class", choices=tuple(each.value for each in PriceClass)),
        "created_at__gte": QueryFilter("created_at__gte", "moment"),
        "created_at__lte": QueryFilter("created_at__lte", "moment"),
    }
    parameters = frozenset({"requested_by"})  # `me` is the caller
    action_parameters = {"transitions": frozenset({"cursor"})}
    actions_needed = needs(
        "leases.read", "list", "retrieve", "transitions", "allocations", "attempts", "notices"
    ) | needs(
        "leases.write",
        *("create", "partial_update", "destroy", "release", "extend", "stop", "start"),
        "connections",  # credentials are only for those who may use the lease
    )

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Apply filters such as `tag.team=nlp` besides the fixed ones."""
        for name, tag in self._tags().items():
            queryset = queryset.filter(tags__contains={tag: self.request.query_params[name]})
        if who := self.request.query_params.get("requested_by"):
            mine = self.request.actor.id if who == "me" else who
            queryset = queryset.filter(QueryFilter("requested_by").condition("requested_by", mine))
        return super().filter_queryset(queryset)

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        return known | self._tags().keys() if self.action == "list" else known

    def _tags(self) -> dict[str, str]:
        """Return the tag that each parameter such as `tag.team` names."""
        return {name: found[1] for name in self.request.query_params if (found := TAG.fullmatch(name))}

    def prepare(self, rows: list[Any]) -> list[Any]:
        self.beside = {
            "places": load_queue_positions(
                [row for row in rows if row.state == LeaseState.QUEUED and not row.is_scheduled(self.now)]
            ),
            "moves": relocation_consent.announced_relocations(rows),
        }
        return rows

    @extend_schema(request=LeaseCreate, responses={202: LeaseOut})
    @batched
    @idempotent(secret=("env",))
    def create(self, request_: Request) -> Response:
        """Request a lease.

        The response comes before the slice is ready: follow `status.state`, or the events.
        """
        wanted = validated_body(LeaseCreate, request_)
        project_id = wanted.pop("project")
        project_found, found = getattr(self, "ahead", (None, None))
        lease = queue_lease(
            LeaseRequest(offering_id=wanted.pop("offering"), **wanted),
            project=authentication.project_for(self.request.roles, "leases.write", project_id, found=project_found),
            found=found,
            **self.by,
        )
        if self.dry_run:
            lease_placement.predict_placement(lease)
        return self.tagged(lease, status=202, Location=f"/api/v1/leases/{lease.pk}")

    def look_ahead(self, request_: Request) -> None:
        """Query project and offering along with the idempotency key, in one round trip."""
        body = request_.data if self.action == "create" and isinstance(request_.data, dict) else {}
        project_id, offering_id = body.get("project"), body.get("offering")
        if isinstance(project_id, str) and isinstance(offering_id, str):
            self.ahead = (authentication.start_project_lookup(project_id), send_offering_query(offering_id))

    @extend_schema(request=LeaseChange)
    def partial_update(self, request_: Request, pk: str) -> Response:
        """Change its name, tags, terms of its end, or whether it may be relocated."""
        lease, wanted = self.lease_to_change(), validated_body(LeaseChange, request_)
        lease = relocation_consent.set_relocatable(lease, wanted.pop("relocatable", lease.relocatable), **self.by)
        at_end = {name: wanted.pop(name) for name in END_TERMS if name in wanted}
        lease = end_terms.set_end_terms(lease, **at_end, **self.by) if at_end else lease
        return self.tagged(lease_names.rename_lease(lease, **self.by, **wanted))

    @extend_schema(responses={202: LeaseOut, 200: LeaseOut})
    def destroy(self, request_: Request, pk: str) -> Response:
        """Release it.

        A lease that is ending or over stays as it is, so this may be repeated.
        """
        lease = self.lease_to_change()
        return self.tagged(lease) if lease.state == LeaseState.RELEASED else self._release(lease)

    @extend_schema(request=None, responses={202: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def release(self, request_: Request, pk: str) -> Response:
        """End it now; nothing after this second is charged."""
        return self._release(self.lease_to_change())

    @extend_schema(request=None, responses={202: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def stop(self, request_: Request, pk: str) -> Response:
        """Release its GPU and keep its volume; nothing is charged until it is started."""
        lease = self.lease_to_change()
        stop_and_start.stop_lease(lease, **self.by)
        return self.tagged(lease, status=202)

    @extend_schema(request=None, responses={202: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def start(self, request_: Request, pk: str) -> Response:
        """Queue a stopped lease again for its remaining time, as far as quotas allow."""
        started = stop_and_start.start_lease(self.lease_to_change(), **self.by)
        self.beside = {**self.beside, "places": load_queue_positions([started])}
        return self.tagged(started, status=202)

    @extend_schema(request=LeaseExtension, responses={200: LeaseOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def extend(self, request_: Request, pk: str) -> Response:
        """Extend its duration, as far as quotas allow."""
        lease, wanted = self.lease_to_change(), validated_body(LeaseExtension, request_)
        return self.tagged(extension.extend_lease(lease, more_s=wanted["more_s"], **self.by))

    @extend_schema(
        responses=page_of(TransitionOut, "TransitionPage"),
        filters=False,
        parameters=[OpenApiParameter("cursor", str, description="Cursor of the previous page.")],
    )
    @action(detail=True, pagination_class=None)
    def transitions(self, request_: Request, pk: str) -> Response:
        """Return its transitions in order, 500 at a time; charges follow from these alone."""
        life = Transition.objects.filter(lease_id=self.get_object().pk)
        cursor = request_.query_params.get("cursor", "")
        if cursor and not SEQ_CURSOR.fullmatch(cursor):
            raise ValidationError({"cursor": "Is not a cursor of this list."})
        steps = list(life.filter(seq__gt=int(cursor or -1)).order_by("seq")[: TRANSITIONS_PER_PAGE + 1])
        more = str(steps[TRANSITIONS_PER_PAGE - 1].seq) if len(steps) > TRANSITIONS_PER_PAGE else None
        items = TransitionOut(steps[:TRANSITIONS_PER_PAGE], many=True).data
        return Response({"items": items, "next_cursor": more, "total_estimate": life.count()})

    @extend_schema(responses=page_of(AllocationOut, "AllocationPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def allocations(self, request_: Request, pk: str) -> Response:
        """Return its current and past allocations, newest first."""
        places = Allocation.objects.filter(lease=self.get_object()).select_related("gpu__node__cluster")
        return complete_page(AllocationOut(places.order_by("-held_at", "gpu__index"), many=True).data)

    @extend_schema(responses=page_of(LeaseAttemptOut, "LeaseAttemptPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def attempts(self, request_: Request, pk: str) -> Response:
        """Return the runs of its batch command that are over, oldest first."""
        return complete_page(LeaseAttemptOut(attempt_records.attempts_of(self.get_object()), many=True).data)

    @extend_schema(responses=page_of(LeaseNoticeOut, "LeaseNoticePage"), filters=False)
    @action(detail=True, pagination_class=None)
    def notices(self, request_: Request, pk: str) -> Response:
        """Return the notices about its end, newest first."""
        return complete_page(LeaseNoticeOut(notice_records.notices_of(self.get_object()), many=True).data)

    @extend_schema(responses=page_of(ConnectionOut, "ConnectionPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def connections(self, request_: Request, pk: str) -> Response:
        """Return how to connect to its workload, with credentials; none before it is active."""
        lease = self.lease_to_change()
        return complete_page(ConnectionOut(lease_connections_of(lease), many=True).data)

    def lease_to_change(self) -> Lease:
        """Return the lease, if the visitor has this method's action on its project."""
        lease: Lease = self.get_object()
        self.allow(lease.project.path)
        return lease

    def _release(self, lease: Lease) -> Response:
        termination.release_lease(lease, reason=EndReason.BY_TENANT, **self.by)
        return self.tagged(lease, status=202)
