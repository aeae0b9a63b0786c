"""API of quotes: feasibility, start and price of a lease, with the price fixed."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Quote
from billing.services.quotes import quote_answers
from billing.services.quotes.alternatives import OfferingAlternative
from billing.services.quotes.quote_answers import QuoteAnswer
from broker.services.leases.lease_requests import LeaseRequest
from web.api.amounts import AmountField, MoneyOut, PriceOut, hourly_price_out, money_out
from web.api.base_views import TenantViewSet, needs, validated_body
from web.api.lease_serializers import LeaseCreate
from web.api.offerings import SpotConditionsOut, spot_conditions_out
from web.api.serializer_fields import NameField
from web.http.filters import QueryFilter

DEFAULT_NAME = "quote"


class QuoteRequestBody(LeaseCreate):
    """Request body of a lease; a name is optional."""

    name = NameField(default=DEFAULT_NAME)
    quote = None  # type: ignore[assignment]  # DRF's way to omit a field: a quote cites no quote


class QuotedPlacementOut(serializers.Serializer[Any]):
    """Place of one unit: memory slices [start, start + size) of a GPU."""

    cluster = serializers.CharField()
    node = serializers.CharField()
    gpu_index = serializers.IntegerField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()


class QuotaLeftOut(serializers.Serializer[Any]):
    """The tightest quota of a kind on the project's path, before this lease."""

    kind = serializers.CharField()
    limit = serializers.IntegerField()
    used = serializers.IntegerField()
    remaining = serializers.IntegerField()


class RefusalOut(serializers.Serializer[Any]):
    """Why the lease would be refused."""

    code = serializers.CharField()
    detail = serializers.CharField()
    fix = serializers.CharField()


class AlternativeOut(serializers.Serializer[Any]):
    """Another offering that could start now; a negative difference means cheaper."""

    kind = serializers.ChoiceField(choices=["spot", "cheaper", "faster"])
    offering = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF sets its own `label` per instance
    free_now = serializers.IntegerField()
    total_price_per_hour = PriceOut()
    hold = MoneyOut()
    difference = MoneyOut()


class QuoteOut(serializers.Serializer[Any]):
    """Cost of a lease, and a promise of that price; `hold` covers the whole duration.

    Seconds are charged. Send `quote` unchanged with `POST /leases` before `expires_at`: once, for the same offering
    and quantity, for at most that long. The lease is then charged at this price to its end, and carries the `id`.
    Capacity is not promised.
    """

    id = serializers.CharField(allow_null=True)
    quote = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)

    offering = serializers.CharField()
    quantity = serializers.IntegerField()
    cpu_milli = serializers.IntegerField(help_text="Of each slice.")
    host_memory_mib = serializers.IntegerField(help_text="Of each slice.")
    scratch_mib = serializers.IntegerField(help_text="Of each slice.")
    max_duration_s = serializers.IntegerField()
    spot = SpotConditionsOut(allow_null=True)
    feasible = serializers.BooleanField()
    starts = serializers.ChoiceField(choices=list(quote_answers.STARTS))
    starts_after_notice_s = serializers.IntegerField(
        allow_null=True,
        help_text="Seconds after which it starts at the latest because spot leases get notice for it; null where none"
        " would.",
    )
    refusal = RefusalOut(allow_null=True)
    total_price_per_hour = PriceOut(allow_null=True, help_text="Of all units together.")
    hold = MoneyOut(allow_null=True, help_text="What is set aside, or must be available: rounded up.")
    max_cost = MoneyOut(allow_null=True, help_text="The most it may cost, before tax: rounded like an invoice line.")
    placements = QuotedPlacementOut(many=True)
    quotas = QuotaLeftOut(many=True)
    alternatives = AlternativeOut(many=True)
    as_of = serializers.DateTimeField()


class CitedQuoteOut(serializers.ModelSerializer[Quote]):
    """A quote that a lease cites: every second of that lease costs this."""

    lease = serializers.CharField(source="lease_id")
    project = serializers.CharField(source="project_id")
    offering = serializers.CharField(source="offering_id")
    price_version = serializers.CharField(source="price_version_id")
    total_price_per_hour = serializers.SerializerMethodField()
    hold = AmountField("hold_minor")
    max_cost = AmountField("cap_minor")

    created_at = serializers.DateTimeField(source="made_at")

    class Meta:
        model = Quote
        fields = ("id", "lease", "project", "offering", "price_version", "total_price_per_hour", "quantity",
                  "max_duration_s", "hold", "max_cost", "created_at", "expires_at", "cited_at")  # fmt: skip

    @extend_schema_field(PriceOut)
    def get_total_price_per_hour(self, quote: Quote) -> dict[str, str]:
        """Return the price of all units together."""
        return hourly_price_out(quote.nano_per_hour * quote.quantity, quote.currency)


class QuoteViewSet(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Quotes; only those that a lease cites are stored."""

    serializer_class = CitedQuoteOut
    project_field = "project_id"
    rows = Quote.objects.all()
    filters = {
        "lease": QueryFilter("lease_id"),
        "project": QueryFilter("project_id"),
        "offering": QueryFilter("offering_id"),
    }
    actions_needed = needs("offerings.read", "list", "retrieve", "create")
    changes_nothing = True

    @extend_schema(
        request=QuoteRequestBody,
        responses={200: QuoteOut},
        description="Return price, feasibility and estimated start of a lease now. A lease that cites the quote before"
        " it expires gets this price. Nothing is stored or reserved, so no Idempotency-Key is needed; if sent, it is"
        " ignored.",
    )
    def create(self, request: Request) -> Response:
        wanted = validated_body(QuoteRequestBody, request)
        project = self.project_for(wanted.pop("project"))
        lease_request = LeaseRequest(offering_id=wanted.pop("offering"), **wanted)
        found = quote_answers.answer_quote(lease_request, project=project, **self.by)
        return Response({**_quote_body(found), "as_of": self.now})


def _quote_body(quote: QuoteAnswer) -> dict[str, Any]:
    priced, refusal, offer = quote.price is not None, quote.refusal, quote.offer
    return {
        "id": offer and offer.id,
        "quote": offer and offer.sealed,
        "expires_at": offer and offer.expires_at,
        "offering": quote.offering.pk,
        "quantity": quote.quantity,
        "cpu_milli": quote.offering.cpu_milli,
        "host_memory_mib": quote.offering.host_memory_mib,
        "scratch_mib": quote.offering.scratch_mib,
        "max_duration_s": quote.duration_s,
        "spot": spot_conditions_out(quote.spot),
        "feasible": quote.feasible,
        "starts": quote.starts,
        "starts_after_notice_s": quote.starts_after_notice_s,
        "refusal": refusal and {"code": refusal.code, "detail": refusal.detail, "fix": refusal.fix.text},
        "total_price_per_hour": hourly_price_out(quote.nano_per_hour, quote.currency) if priced else None,
        "hold": money_out(quote.at_most_minor, quote.currency) if priced else None,
        "max_cost": money_out(min(offer.cap_minor, quote.at_most_minor), quote.currency) if offer else None,
        "placements": [
            {
                "cluster": place.gpu.cluster,
                "node": place.gpu.node_name,
                "gpu_index": place.gpu.index,
                "start": place.slot.placement.start,
                "size": place.slot.placement.size,
            }
            for place in quote.places
        ],
        "quotas": [
            {"kind": room.kind, "limit": room.limit, "used": room.used, "remaining": room.free} for room in quote.room
        ],
        "alternatives": [_alternative_row(each, quote) for each in quote.alternatives],
    }


def _alternative_row(each: OfferingAlternative, quote: QuoteAnswer) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "offering": each.offering.pk,
        "label": each.offering.label,
        "free_now": each.free,
        "total_price_per_hour": hourly_price_out(each.price.nano_per_hour * quote.quantity, quote.currency),
        "hold": money_out(each.at_most_minor, quote.currency),
        "difference": money_out(each.difference_minor, quote.currency),
    }
