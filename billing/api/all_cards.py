"""Every card with what each part of it is used for, by whom and for how much; for operators."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from billing.api.amounts import MoneyOut, hourly
from billing.services import earnings
from broker.domain.states import LeaseState
from broker.models import Gpu, Health, NodeState
from broker.services.fleet import cards
from broker.services.fleet.uses import CHOICES, Card, Use
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants


class HeldOut(serializers.Serializer[Any]):
    """The lease that has a part of a card; the price is that of one slice, null while nothing is charged."""

    lease = serializers.CharField()
    lease_name = serializers.CharField()
    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    profile = serializers.CharField()
    state = serializers.ChoiceField(choices=[each.value for each in LeaseState])
    since = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(allow_null=True)
    per_hour = MoneyOut(allow_null=True)


class PartOut(serializers.Serializer[Any]):
    """Neighbouring units of one use; `held` is null where no lease has them."""

    start = serializers.IntegerField()
    size = serializers.IntegerField()
    use = serializers.ChoiceField(choices=[each.value for each in Use])
    held = HeldOut(allow_null=True)


class CardOut(serializers.Serializer[Any]):
    """A card of the fleet, from its first unit to its last."""

    id = serializers.CharField()
    where = serializers.CharField()
    cluster = serializers.CharField()
    node = serializers.CharField()
    node_state = serializers.ChoiceField(choices=NodeState.choices)
    index = serializers.IntegerField()
    gpu_model = serializers.CharField()
    health = serializers.ChoiceField(choices=Health.choices)
    health_reason = serializers.CharField()
    units = serializers.IntegerField(help_text="Memory slices of the card; parts are counted in them.")
    parts = PartOut(many=True)


def described(card: Card, priced: dict[str, tuple[int, str]]) -> dict[str, Any]:
    """Write a card; `priced` holds (10⁻⁹ units an hour, currency) of active leases."""
    parts = []
    for run in card.runs:
        held = None
        if run.held is not None:
            price = priced.get(run.held.lease)
            held = {
                "lease": run.held.lease,
                "lease_name": run.held.lease_name,
                "tenant": run.held.tenant,
                "tenant_name": run.held.tenant_name,
                "profile": run.held.profile,
                "state": run.held.state.value,
                "since": run.held.since,
                "ends_at": run.held.ends_at,
                "per_hour": hourly(*price) if price else None,
            }
        parts.append({"start": run.start, "size": run.size, "use": run.use.value, "held": held})
    return {
        "id": card.id,
        "where": card.where,
        "cluster": card.cluster,
        "node": card.node,
        "node_state": card.node_state.value,
        "index": card.index,
        "gpu_model": card.model,
        "health": card.health.value,
        "health_reason": card.health_reason,
        "units": card.grid,
        "parts": parts,
    }


@extend_schema(
    parameters=[
        OpenApiParameter("show", str, description="Only cards with this: sold, free, fragmented, out.")
    ]
)
class OpsGpus(AllTenants):
    """Every card with its parts: the rows of the fleet map."""

    serializer_class, rows, visit = CardOut, Gpu, "cards"
    parameters: ClassVar[frozenset[str]] = frozenset({"show"})
    filters = {
        "cluster": Filter("node__cluster_id"),
        "node": Filter("node_id"),
        "gpu_model": Filter("gpu_model_id"),
        "health": Filter("health", choices=tuple(Health.values)),
    }

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found, show = super().filter_queryset(queryset), self.request.query_params.get("show", "")
        if not show:
            return found
        if show not in CHOICES:
            raise ValidationError({"show": f"Is one of {', '.join(CHOICES)}."})
        return found.filter(pk__in=[card.id for card in cards.load() if CHOICES[show](card)])

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset) or []
        return self._written({card.id: card for card in cards.load()}, [gpu.pk for gpu in page])

    def get_object(self) -> Any:
        gpu: Gpu = super().get_object()
        return self._written({card.id: card for card in cards.load(gpu=gpu.pk)}, [gpu.pk])[0]

    def _written(self, known: dict[str, Card], ids: list[str]) -> list[dict[str, Any]]:
        shown = [known[pk] for pk in ids]
        priced = earnings.of_leases([s.lease for card in shown for s in card.slices], now=self.now)
        return [described(card, priced) for card in shown]
