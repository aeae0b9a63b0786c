"""Plans of moves, with every move and every step; for operators."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.moves import PlanState
from broker.models import Move, MoveEntry, MovePlan
from broker.services.leases import evicting
from broker.services.moving import deciding
from tenants.api.etag import Etagged
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls

DECISIONS = {
    PlanState.ACCEPTED.value: deciding.accept,
    PlanState.DECLINED.value: deciding.decline,
    PlanState.CANCELLED.value: deciding.cancel,
}


class MoveOut(serializers.ModelSerializer[Move]):
    """One lease from one place to another."""

    lease = serializers.CharField(source="lease_id")
    lease_name = serializers.CharField(source="lease.name")
    tenant = serializers.CharField(source="tenant_id")
    from_gpu = serializers.CharField(source="from_gpu_id")
    to_gpu = serializers.CharField(source="to_gpu_id")

    class Meta:
        model = Move
        fields = (
            "id",
            "n",
            "lease",
            "lease_name",
            "tenant",
            "profile",
            "size",
            "from_gpu",
            "from_start",
            "to_gpu",
            "to_start",
            "cost_s",
            "gain_milli",
            "state",
            "state_at",
            "why",
            "not_before",
        )


class MoveEntryOut(serializers.ModelSerializer[MoveEntry]):
    actor = serializers.CharField(source="actor_label")

    class Meta:
        model = MoveEntry
        fields = ("seq", "n", "state", "at", "why", "actor")


class MovePlanOut(serializers.ModelSerializer[MovePlan]):
    """What would be won by moving some leases, and at what price; a dry run until it is accepted."""

    cluster = serializers.CharField(source="cluster_id")
    cluster_name = serializers.CharField(source="cluster.name")
    gpu_model = serializers.CharField(source="gpu_model_id")
    room_for = serializers.CharField(
        read_only=True, help_text="The id of the lease of the queue that it makes room for; empty for none."
    )
    moves = MoveOut(many=True)
    entries = serializers.SerializerMethodField()

    class Meta:
        model = MovePlan
        fields = (
            "id",
            "cluster",
            "cluster_name",
            "gpu_model",
            "reason",
            "room_for",
            "cost_s",
            "gain_milli",
            "cards",
            "state",
            "state_at",
            "why",
            "proposed_at",
            "not_before",
            "moves",
            "entries",
        )

    @extend_schema(responses=MoveEntryOut(many=True))
    def get_entries(self, plan: MovePlan) -> Any:
        """Return its steps and those of its moves, first to last."""
        return MoveEntryOut(sorted(plan.entries.all(), key=lambda entry: entry.seq), many=True).data


class PlanChange(Strict):
    """What a plan is to become, and why: for its history and the audit trail."""

    state = serializers.ChoiceField(choices=list(DECISIONS))
    reason = serializers.CharField(max_length=evicting.LONGEST)


class MovePlans(AllTenants, Etagged):
    """Plans that were proposed, are being carried out or are over."""

    serializer_class, rows, visit = MovePlanOut, MovePlan, "plans"
    sorts = ("-id", "id", "proposed_at", "-proposed_at")
    filters = {
        "cluster": Filter("cluster_id"),
        "gpu_model": Filter("gpu_model_id"),
        "state": Filter("state", choices=tuple(state.value for state in PlanState)),
    }

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one with its ETag, which every step of it or of its moves changes."""
        with walls.as_staff():
            return self.tagged(self.get_object())

    @extend_schema(request=PlanChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Accept a proposal or decline it, or call an accepted plan off: it becomes `cancelled` once all is at rest."""
        plan = self.get_object()
        wanted = shape(PlanChange, request)
        why = evicting.reason(wanted["reason"])
        DECISIONS[wanted["state"]](plan, why=why, actor=self.actor, now=self.now)
        with walls.as_staff():
            return self.tagged(self.get_queryset().get(pk=plan.pk))

    def get_queryset(self) -> QuerySet[MovePlan]:
        moves = Prefetch("moves", queryset=Move.objects.select_related("lease").order_by("n"))
        return MovePlan.objects.select_related("cluster").prefetch_related(moves, "entries")
