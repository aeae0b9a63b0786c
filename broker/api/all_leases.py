"""All tenants' leases and the places they hold, for operators: what their pages show, and no more of them."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from broker.api.serializers import REASONS, STATES, ConditionOut, TransitionOut, Whole
from broker.models import Allocation, Lease, Transition
from broker.services.fleet.history import steps_of
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants, whole
from tenants.services import walls


class Named(serializers.Serializer[Any]):
    """Something by its id, and as people call it."""

    id = serializers.CharField(source="pk")
    name = serializers.CharField()


class LeaseSeenOut(serializers.ModelSerializer[Lease]):
    """A lease as operators see it: whose, where it stands and since when; not what runs on it."""

    tenant = Named()
    project = Named()
    offering = serializers.CharField(source="offering_id")
    offering_label = serializers.CharField(source="offering.label")
    region = serializers.CharField(source="offering.region")
    price_class = serializers.CharField(source="offering.price_class")
    conditions = serializers.SerializerMethodField()
    queues_since = serializers.SerializerMethodField()
    requested_by = serializers.CharField(source="requested_by_label")

    class Meta:
        model = Lease
        fields = (
            "id",
            "name",
            "tenant",
            "project",
            "offering",
            "offering_label",
            "region",
            "price_class",
            "quantity",
            "same_node",
            "topology",
            "state",
            "conditions",
            "waits_for",
            "queues_since",
            "requested_by",
            "created_at",
            "active_at",
            "ends_at",
            "ended_at",
            "end_reason",
            "generation",
            "due_at",
        )

    @extend_schema(responses=ConditionOut(many=True))
    def get_conditions(self, lease: Lease) -> list[dict[str, Any]]:
        """Return what is wrong beside its state."""
        return [
            {"type": kind, "status": True, "message": said} for kind, said in sorted(lease.conditions.items())
        ]

    @extend_schema(responses=serializers.DateTimeField(allow_null=True))
    def get_queues_since(self, lease: Lease) -> Any:
        """Return since when it waits in the queue; null where it does not."""
        return lease.queues_since if lease.state == "queued" else None


class StepSeenOut(TransitionOut):
    """One step of a lease; of an operator it tells which one."""

    def get_actor(self, step: Transition) -> dict[str, str]:
        """Tell who."""
        return {"kind": step.actor_kind, "label": step.actor_label}


class StepsSeen(Whole):
    items = StepSeenOut(many=True)


class OpsLeases(AllTenants):
    """Leases of all tenants. The queue is `state=queued&sort=since`, the oldest first."""

    serializer_class, rows, visit = LeaseSeenOut, Lease, "leases"
    sorts = ("-id", "id", "since", "-since")
    search_in = ("name", "id", "tenant__name")
    filters = {
        "state": Filter("state", choices=tuple(STATES)),
        "end_reason": Filter("end_reason", choices=tuple(REASONS)),
        "tenant": Filter("tenant_id"),
        "project": Filter("project_id"),
        "offering": Filter("offering_id"),
    }

    def get_queryset(self) -> QuerySet[Lease]:
        known = Lease.objects.select_related("tenant", "project", "offering")
        return known.annotate(since=Coalesce("waits_since", "created_at"))

    @extend_schema(responses=StepsSeen, filters=False)
    @action(detail=True, pagination_class=None)
    def transitions(self, request: Request, pk: str) -> Response:
        """Return every step of its life, first to last, as metering reads it."""
        with walls.as_staff():
            return whole(StepSeenOut(steps_of(self.get_object()), many=True).data)


class LeaseOnIt(Named):
    """The lease that holds a place."""

    state = serializers.ChoiceField(choices=STATES)
    active_at = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)


class PlaceSeenOut(serializers.ModelSerializer[Allocation]):
    """A place on a card, and whose it is or was."""

    tenant = Named()
    lease = LeaseOnIt()
    gpu = serializers.CharField(source="gpu_id")
    card = serializers.IntegerField(source="gpu.index")
    node = Named(source="gpu.node")
    cluster = Named(source="gpu.node.cluster")
    start = serializers.IntegerField(source="placement.lower", help_text="The first unit of the card it has.")
    size = serializers.SerializerMethodField()

    class Meta:
        model = Allocation
        fields = (
            "id",
            "tenant",
            "lease",
            "generation",
            "cluster",
            "node",
            "gpu",
            "card",
            "profile",
            "isolation",
            "start",
            "size",
            "held_at",
            "released_at",
        )

    def get_size(self, place: Allocation) -> int:
        """Return how many units of the card it has."""
        return int(place.placement.upper - place.placement.lower)


class OpsAllocations(AllTenants):
    """Places on cards that leases of all tenants hold and held, the latest first."""

    serializer_class, rows, visit = PlaceSeenOut, Allocation, "allocations"
    sorts = ("-held_at", "held_at", "-id", "id")
    filters = {
        "held": Filter("released_at__isnull", "flag"),
        "tenant": Filter("tenant_id"),
        "lease": Filter("lease_id"),
        "gpu": Filter("gpu_id"),
        "node": Filter("gpu__node_id"),
        "cluster": Filter("gpu__node__cluster_id"),
    }

    def get_queryset(self) -> QuerySet[Allocation]:
        return Allocation.objects.select_related("tenant", "lease", "gpu__node__cluster")
