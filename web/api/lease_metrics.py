"""API of what a lease's GPUs did."""

from datetime import datetime, timedelta
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from broker.models import Lease
from broker.services.telemetry import lease_metrics
from broker.services.telemetry.lease_metrics import MOST_POINTS, STEPS_S, LeaseMetrics, MetricsPoint, MetricsScope
from web.api.base_views import TenantViewSet, needs
from web.http.query_parameters import MOMENT_DESCRIPTION, parse_moment

USUAL_WINDOW = timedelta(hours=1)


class MetricsPointOut(serializers.Serializer[MetricsPoint]):
    """One step; a value that is null is unknown, not zero."""

    at = serializers.DateTimeField(help_text="Beginning of the step.")
    engine_active = serializers.IntegerField(allow_null=True, help_text="Per mille, mean over the lease's slices.")
    engine_max = serializers.IntegerField(allow_null=True, help_text="Per mille, the most in this step.")
    sm_active = serializers.IntegerField(allow_null=True, help_text="Per mille of the multiprocessors.")
    tensor_active = serializers.IntegerField(allow_null=True, help_text="Per mille of the tensor cores.")
    dram_active = serializers.IntegerField(allow_null=True, help_text="Per mille of the memory's bandwidth.")
    memory_used_mib = serializers.IntegerField(allow_null=True, help_text="MiB of one slice.")
    power_dw = serializers.IntegerField(allow_null=True, help_text="Tenths of a watt of the whole GPU.")
    temperature_c = serializers.IntegerField(allow_null=True, help_text="The highest, of the whole GPU.")
    throttled = serializers.BooleanField(source="is_throttled", help_text="Slowed down by heat or power supply.")


class LeaseMetricsOut(serializers.Serializer[LeaseMetrics]):
    """Points from `since` until `until`, oldest first; a step without values is left out."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    step_s = serializers.IntegerField(help_text="Seconds between two points.")
    measured_on = serializers.ChoiceField(
        choices=[each.value for each in MetricsScope],
        source="scope",
        help_text="`slice`: this lease alone. `gpu`: the whole GPU, which others may use as well.",
    )
    points = MetricsPointOut(many=True)


class LeaseMetricsViewSet(TenantViewSet):
    """Use, power and temperature of a lease's GPUs, live and after its end."""

    serializer_class = LeaseMetricsOut
    rows = Lease.objects.select_related("offering")
    project_field = "project"
    action_parameters = {"retrieve": frozenset({"from", "to", "step"})}
    actions_needed = needs("leases.read", "retrieve")

    @extend_schema(
        parameters=[
            OpenApiParameter("from", datetime, description=f"{MOMENT_DESCRIPTION} Default: an hour before `to`."),
            OpenApiParameter("to", datetime, description="Default: now, or the lease's end."),
            OpenApiParameter("step", int, enum=STEPS_S, description="Seconds; default: by the length of the time."),
        ],
        responses=LeaseMetricsOut,
    )
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return what the lease's GPUs did in a time."""
        lease = self.get_object()
        until = self._moment("to") or min(lease.ended_at or self.now, self.now)
        since = self._moment("from") or until - USUAL_WINDOW
        if since >= until:
            raise ValidationError({"from": "Must be before `to`."})
        return Response(LeaseMetricsOut(self._read(lease, since, until)).data)

    def _read(self, lease: Lease, since: datetime, until: datetime) -> LeaseMetrics:
        text = self.request.query_params.get("step")
        if text is None:
            return lease_metrics.read_lease_metrics(lease, since=since, until=until)
        if text not in map(str, STEPS_S):
            raise ValidationError({"step": f"Must be one of {', '.join(map(str, STEPS_S))} seconds."})
        if (until - since).total_seconds() / int(text) > MOST_POINTS:
            raise ValidationError({"step": f"Must give at most {MOST_POINTS:,} points. Choose a longer step."})
        return lease_metrics.read_lease_metrics(lease, since=since, until=until, step_s=int(text))

    def _moment(self, name: str) -> Any:
        text = self.request.query_params.get(name)
        return None if text is None else parse_moment(name, text, self.zone)
