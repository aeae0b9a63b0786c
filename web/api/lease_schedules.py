"""API of lease schedules: repeat a lease request at the times of a cron expression."""

from itertools import islice
from typing import Any

from django.db.models import OuterRef, Subquery
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.lifecycle.cron_schedules import MAX_LENGTH, times_after
from broker.models import LeaseSchedule, OverlapPolicy, ScheduledRun
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.schedules import schedule_records
from broker.services.leases.schedules.schedule_records import MAX_NAME
from tenants.domain.time_zones import UTC
from web.api.base_views import ETagViewSet, TenantViewSet, complete_page, needs, validated_body
from web.api.lease_serializers import LeaseCreate, RequesterOut, page_of
from web.api.serializer_fields import NameField, StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

NEXT_TIMES, LATEST_RUNS = 3, 100
CRON_HELP = "Five fields: minute, hour, day, month, day of the week; for example `0 3 * * 1-5`."


class ScheduledLeaseCreate(LeaseCreate):
    """Request body of a lease that is repeated: without name, project, dates and quote."""

    name = None  # type: ignore[assignment]  # DRF's way to omit a field
    project = None  # type: ignore[assignment]
    starts_at = None  # type: ignore[assignment]
    end_date = None  # type: ignore[assignment]
    quote = None  # type: ignore[assignment]


class LeaseScheduleCreate(StrictSerializer):
    """Request body of a schedule."""

    name = NameField(max_length=MAX_NAME)
    project = serializers.CharField(max_length=40)
    cron = serializers.CharField(max_length=MAX_LENGTH, help_text=CRON_HELP)
    time_zone = serializers.CharField(max_length=64, default=UTC, help_text="For example `Europe/Berlin`.")
    overlap = serializers.ChoiceField(
        choices=OverlapPolicy.choices,
        default=OverlapPolicy.SKIP,
        help_text="Whether a time is skipped while the lease of an earlier one is not over.",
    )
    launch = ScheduledLeaseCreate()


class LeaseScheduleChange(StrictSerializer):
    name = NameField(max_length=MAX_NAME, required=False)
    cron = serializers.CharField(max_length=MAX_LENGTH, required=False, help_text=CRON_HELP)
    time_zone = serializers.CharField(max_length=64, required=False)
    overlap = serializers.ChoiceField(choices=OverlapPolicy.choices, required=False)
    paused = serializers.BooleanField(required=False)


class ScheduledRunOut(serializers.ModelSerializer[ScheduledRun]):
    """A due time, and what became of it."""

    lease = serializers.CharField(source="lease_id", allow_null=True)
    created_at = serializers.DateTimeField(source="made_at")

    class Meta:
        model = ScheduledRun
        fields = ("id", "due_at", "result", "lease", "text", "created_at")


class LeaseScheduleOut(serializers.ModelSerializer[LeaseSchedule]):
    """A schedule, the request that it repeats, and its next times."""

    project = serializers.CharField(source="project_id")
    paused = serializers.BooleanField(source="is_paused")
    next_times = serializers.SerializerMethodField()
    requested_by = serializers.SerializerMethodField()
    launch = serializers.SerializerMethodField()
    last_result = serializers.CharField(allow_null=True, help_text="Of its latest due time.")

    class Meta:
        model = LeaseSchedule
        fields = ("id", "name", "project", "cron", "time_zone", "overlap", "paused", "next_times", "last_result",
                  "launch", "requested_by", "created_at", "version")  # fmt: skip

    @extend_schema_field(serializers.ListField(child=serializers.DateTimeField()))
    def get_next_times(self, schedule: LeaseSchedule) -> list[Any]:
        """Return its next due times; none while it is paused."""
        if schedule.next_at is None:
            return []
        later = times_after(schedule.cron, schedule.time_zone, schedule.next_at)
        return [schedule.next_at, *islice(later, NEXT_TIMES - 1)]

    @extend_schema_field(RequesterOut)
    def get_requested_by(self, schedule: LeaseSchedule) -> dict[str, str]:
        """Return who requests the leases."""
        return {"id": schedule.requested_by, "label": schedule.requested_by_label}

    @extend_schema_field(serializers.DictField())
    def get_launch(self, schedule: LeaseSchedule) -> dict[str, Any]:
        """Return the repeated request; of plain variables only the names."""
        known = {key: value for key, value in schedule.request.items() if key not in ("env", "offering_id")}
        return {"offering": schedule.request["offering_id"], "env_names": sorted(schedule.request["env"]), **known}


LATEST_RESULT = Subquery(ScheduledRun.objects.filter(schedule=OuterRef("pk")).order_by("-due_at").values("result")[:1])


class LeaseScheduleViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """Lease requests that are repeated; each due time requests at most one lease.

    The leases are requested by who created the schedule, as long as they may. A schedule created with a token ends
    with it.
    """

    serializer_class = LeaseScheduleOut
    rows = LeaseSchedule.objects.select_related("project").annotate(last_result=LATEST_RESULT)
    project_field = "project"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id")
    filters = {
        "project": QueryFilter("project_id"),
        "below": QueryFilter("project__path", "below"),  # a project and its subtree
    }
    actions_needed = needs("leases.read", "list", "retrieve", "runs") | needs(
        "leases.write", "create", "partial_update", "destroy"
    )

    @extend_schema(request=LeaseScheduleCreate, responses={201: LeaseScheduleOut})
    @idempotent(secret=("launch",))
    def create(self, request_: Request) -> Response:
        """Save a schedule; its first lease is requested when it is due."""
        wanted: dict[str, Any] = validated_body(LeaseScheduleCreate, request_)
        project, lease = self.project_for(wanted.pop("project")), wanted.pop("launch")
        lease_request = LeaseRequest(offering_id=lease.pop("offering"), name=wanted.pop("name"), **lease)
        schedule = schedule_records.create_schedule(lease_request, project=project, **wanted, **self.by)
        return self._answer(schedule, status=201, Location=f"/api/v1/lease-schedules/{schedule.pk}")

    @extend_schema(request=LeaseScheduleChange, responses={200: LeaseScheduleOut})
    def partial_update(self, request_: Request, pk: str) -> Response:
        """Change its name, times or overlap policy, pause it or resume it."""
        schedule = self.get_object()
        self.allow(schedule.project.path)
        wanted = validated_body(LeaseScheduleChange, request_)
        return self._answer(schedule_records.change_schedule(schedule, **wanted, **self.by))

    def destroy(self, request_: Request, pk: str) -> Response:
        """Delete it with the record of its runs; its leases stay."""
        schedule = self.get_object()
        self.allow(schedule.project.path)
        schedule_records.delete_schedule(schedule, **self.by)
        return Response(status=204)

    @extend_schema(responses=page_of(ScheduledRunOut, "ScheduledRunPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def runs(self, request_: Request, pk: str) -> Response:
        """Return its latest 100 due times, newest first."""
        found = ScheduledRun.objects.filter(schedule=self.get_object()).order_by("-due_at")
        return complete_page(ScheduledRunOut(found[:LATEST_RUNS], many=True).data)

    def _answer(self, schedule: LeaseSchedule, *, status: int = 200, **headers: str) -> Response:
        fresh = self.rows.get(pk=schedule.pk)
        return self.tagged(fresh, status=status, **headers)
