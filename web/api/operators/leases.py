"""Operators' API of all tenants' leases and allocations.

It shows what the operators' pages show, and no more.
"""

from typing import Any

from django.db.models.functions import Coalesce
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Correction
from billing.services.invoicing.corrections import correction_proposals
from broker.models import Allocation, Lease, Transition
from broker.services.leases.lifecycle import eviction
from broker.services.reports.inventory_history import transitions_of
from web.api.base_views import complete_page
from web.api.lease_serializers import LEASE_STATES, ConditionOut, TransitionActorOut, TransitionOut, page_of
from web.api.leases import LeaseRows
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, NamedOut, OperatorAct, ReasonIn
from web.api.operators.corrections import CorrectionOut, LeaseCorrectionCreate, OperatorCorrectionViewSet
from web.http.filters import QueryFilter


class OperatorLeaseOut(serializers.ModelSerializer[Lease]):
    """A lease as operators see it: tenant, state and dates, not its workload."""

    tenant = NamedOut()
    project = NamedOut()
    offering = serializers.CharField(source="offering_id")
    offering_label = serializers.CharField(source="offering.label")
    region = serializers.CharField(source="offering.region")
    price_class = serializers.CharField(source="offering.price_class")
    conditions = serializers.SerializerMethodField()
    queued_since = serializers.SerializerMethodField()

    class Meta:
        model = Lease
        fields = ("id", "name", "tenant", "project", "offering", "offering_label", "region", "price_class",
                  "quantity", "same_node", "topology", "state", "conditions", "pending_reason", "queued_since",
                  "requested_by_label", "created_at", "active_at", "ends_at", "ended_at", "end_reason", "generation",
                  "due_at")  # fmt: skip

    @extend_schema_field(ConditionOut(many=True))
    def get_conditions(self, lease: Lease) -> list[dict[str, Any]]:
        """Return its conditions, beside its state."""
        return [
            {"type": kind, "status": True, "message": message} for kind, message in sorted(lease.conditions.items())
        ]

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_queued_since(self, lease: Lease) -> Any:
        """Return since when it has been queued; null if it is not queued."""
        return lease.queues_since if lease.state == "queued" else None


class OperatorTransitionOut(TransitionOut):
    """A transition of a lease, naming the operator who caused it, if one did."""

    @extend_schema_field(TransitionActorOut)
    def get_actor(self, step: Transition) -> dict[str, str]:
        """Return the actor."""
        return {"kind": step.actor_kind, "label": step.actor_label}


class OperatorLeaseViewSet(LeaseRows, CrossTenantViewSet):
    """Leases of all tenants; the queue is `state=queued&sort=queued_since`, oldest first."""

    area = "leases"
    serializer_class, audit_action = OperatorLeaseOut, "leases"
    rows = LeaseRows.rows.select_related("tenant").annotate(queued_since=Coalesce("requeued_at", "created_at"))
    sorts = ("-id", "id", "queued_since", "-queued_since")
    search_in = ("name", "id", "tenant__name")
    filters = TENANT_FILTER | LeaseRows.filters

    @extend_schema(responses=page_of(OperatorTransitionOut, "OperatorTransitionPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def transitions(self, request: Request, pk: str) -> Response:
        """Return every transition of the lease, in order, as metering reads it."""
        with self.read_scope():
            return complete_page(OperatorTransitionOut(transitions_of(self.get_object()), many=True).data)

    @OperatorAct(ReasonIn, audit_action="lease.release")
    def release(self, lease: Lease, body: dict[str, Any]) -> Lease:
        """End a lease of any tenant, who sees the reason; it is charged until now."""
        return eviction.evict_lease(lease.pk, why=body["reason"], **self.by)

    @OperatorAct(
        LeaseCorrectionCreate,
        answer=CorrectionOut,
        rows=OperatorCorrectionViewSet.rows,
        audit_action="corrections",
        creates=True,
    )
    def correction(self, lease: Lease, body: dict[str, Any]) -> Correction:
        """Propose to charge or not to charge seconds of a lease; returns the diff."""
        why = body.pop("reason")
        return correction_proposals.propose_lease_correction(lease, **body, why=why, **self.by)


class AllocationLeaseOut(NamedOut):
    """The lease of an allocation."""

    state = serializers.ChoiceField(choices=LEASE_STATES)
    active_at = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)


class OperatorAllocationOut(serializers.ModelSerializer[Allocation]):
    """An allocation on a GPU, and its tenant."""

    tenant = NamedOut()
    lease = AllocationLeaseOut()
    gpu = serializers.CharField(source="gpu_id")
    gpu_index = serializers.IntegerField(source="gpu.index")
    node = NamedOut(source="gpu.node")
    cluster = NamedOut(source="gpu.node.cluster")
    start = serializers.IntegerField(source="placement.lower", help_text="First unit on the GPU.")
    size = serializers.SerializerMethodField()

    class Meta:
        model = Allocation
        fields = ("id", "tenant", "lease", "generation", "cluster", "node", "gpu", "gpu_index", "profile", "isolation",
                  "start", "size", "held_at", "released_at")  # fmt: skip

    def get_size(self, place: Allocation) -> int:
        """Return its size in memory slices."""
        return int(place.placement.upper - place.placement.lower)


class OperatorAllocationViewSet(CrossTenantViewSet):
    """Current and past allocations of all tenants, latest first."""

    area = "leases"
    serializer_class, audit_action = OperatorAllocationOut, "allocations"
    rows = Allocation.objects.select_related("tenant", "lease", "gpu__node__cluster")
    sorts = ("-held_at", "held_at", "-id", "id")
    filters = TENANT_FILTER | {
        "held": QueryFilter("released_at__isnull", "flag"),
        "lease": QueryFilter("lease_id"),
        "gpu": QueryFilter("gpu_id"),
        "node": QueryFilter("gpu__node_id"),
        "cluster": QueryFilter("gpu__node__cluster_id"),
    }
