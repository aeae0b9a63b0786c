"""Quotes: what a lease would cost and whether it could be had. The answer carries the promise of its price."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, hourly, money
from billing.models import Quote
from billing.services import quotes
from billing.services.alternatives import Alternative
from billing.services.quotes import Answer
from broker.api.serializers import LeaseWanted
from broker.services.leases.request import Wanted
from tenants.api.fields import Name
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet, shape

UNNAMED = "quote"


class QuoteWanted(LeaseWanted):
    """The body of a lease; a name is not needed yet."""

    name = Name(default=UNNAMED)
    quote = None  # type: ignore[assignment]  # DRF's way to leave a field out: a quote cites none


class PlaceOut(serializers.Serializer[Any]):
    """Where one unit would lie: memory slices [start, start + size) of a card."""

    cluster = serializers.CharField()
    node = serializers.CharField()
    card = serializers.IntegerField()
    start = serializers.IntegerField()
    size = serializers.IntegerField()


class QuotaLeft(serializers.Serializer[Any]):
    """The tightest quota of a kind on the project's path, before this lease."""

    kind = serializers.CharField()
    limit = serializers.IntegerField()
    used = serializers.IntegerField()
    free = serializers.IntegerField()


class RefusalOut(serializers.Serializer[Any]):
    """What would stand in the way."""

    code = serializers.CharField()
    detail = serializers.CharField()
    fix = serializers.CharField()


class AlternativeOut(serializers.Serializer[Any]):
    """Another offering that could start now; the difference is negative when it is cheaper."""

    kind = serializers.ChoiceField(choices=["spot", "cheaper", "faster"])
    offering = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF's own is set per instance
    free_now = serializers.IntegerField()
    price_per_hour = MoneyOut()
    at_most = MoneyOut()
    difference = MoneyOut()


class QuoteOut(serializers.Serializer[Any]):
    """What it would cost, and the promise that it will. Seconds are charged: `at_most` takes the whole duration.

    `quote` is to be sent with `POST /leases`, as it is, before `expires_at`: once, and for the same offering and
    quantity for at most that long. The lease is then charged at this price to its end, and carries the `id`. Room is
    not promised.
    """

    id = serializers.CharField(allow_null=True)
    quote = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)

    offering = serializers.CharField()
    quantity = serializers.IntegerField()
    max_duration_s = serializers.IntegerField()
    feasible = serializers.BooleanField()
    starts = serializers.ChoiceField(choices=list(quotes.STARTS))
    refusal = RefusalOut(allow_null=True)
    price_per_hour = MoneyOut(allow_null=True)
    at_most = MoneyOut(allow_null=True, help_text="Rounded up: what has to be there.")
    total_cap = MoneyOut(allow_null=True, help_text="Rounded as the line of an invoice is.")
    places = PlaceOut(many=True)
    quotas = QuotaLeft(many=True)
    alternatives = AlternativeOut(many=True)
    as_of = serializers.DateTimeField()


class CitedOut(serializers.ModelSerializer[Quote]):
    """A quote that a lease cites: every second of that lease costs this."""

    lease = serializers.CharField(source="lease_id")
    project = serializers.CharField(source="project_id")
    offering = serializers.CharField(source="offering_id")
    price_version = serializers.CharField(source="price_version_id")
    price_per_hour = serializers.SerializerMethodField()
    at_most = serializers.SerializerMethodField()
    total_cap = serializers.SerializerMethodField()

    class Meta:
        model = Quote
        fields = (
            "id",
            "lease",
            "project",
            "offering",
            "price_version",
            "price_per_hour",
            "quantity",
            "max_duration_s",
            "at_most",
            "total_cap",
            "made_at",
            "expires_at",
            "cited_at",
        )

    @extend_schema(responses=MoneyOut)
    def get_price_per_hour(self, quote: Quote) -> dict[str, str]:
        """Return what all units together cost."""
        return hourly(quote.nano_per_hour * quote.quantity, quote.currency)

    @extend_schema(responses=MoneyOut)
    def get_at_most(self, quote: Quote) -> dict[str, str]:
        return money(quote.hold_minor, quote.currency)

    @extend_schema(responses=MoneyOut)
    def get_total_cap(self, quote: Quote) -> dict[str, str]:
        return money(quote.cap_minor, quote.currency)


class Quotes(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """May I have this, when, at what price? Those are kept that a lease cites."""

    serializer_class = CitedOut
    project_field = "project_id"
    sorts = ("-id", "id")
    filters = {
        "lease": Filter("lease_id"),
        "project": Filter("project_id"),
        "offering": Filter("offering_id"),
    }
    actions_needed = {"list": "offerings.read", "retrieve": "offerings.read", "create": "offerings.read"}
    asks_only = True

    def get_queryset(self) -> QuerySet[Quote]:
        return self.visible(Quote.objects.all())

    @extend_schema(
        request=QuoteWanted,
        responses={200: QuoteOut},
        description="Judge a lease as it would be judged now, and promise the price of this moment to whoever cites the"
        " quote in time. Nothing is stored and nothing is taken, so no Idempotency-Key is needed; one that is sent is"
        " ignored.",
    )
    def create(self, request: Request) -> Response:
        wanted = shape(QuoteWanted, request)
        project = self.project_for(wanted.pop("project"))
        asked = Wanted(offering_id=wanted.pop("offering"), **wanted)
        found = quotes.quote(asked, project=project, actor=self.request.actor, now=self.now)
        return Response({**_shown(found), "as_of": self.now})


def _shown(quote: Answer) -> dict[str, Any]:
    priced, refusal, offer = quote.price is not None, quote.refusal, quote.offer
    return {
        "id": offer and offer.id,
        "quote": offer and offer.sealed,
        "expires_at": offer and offer.expires_at,
        "offering": quote.offering.pk,
        "quantity": quote.quantity,
        "max_duration_s": quote.duration_s,
        "feasible": quote.feasible,
        "starts": quote.starts,
        "refusal": refusal and {"code": refusal.code, "detail": refusal.detail, "fix": refusal.fix.text},
        "price_per_hour": hourly(quote.nano_per_hour, quote.currency) if priced else None,
        "at_most": money(quote.at_most_minor, quote.currency) if priced else None,
        "total_cap": money(offer.cap_minor, quote.currency) if offer else None,
        "places": [
            {
                "cluster": place.card.cluster,
                "node": place.card.node_name,
                "card": place.card.index,
                "start": place.seat.placement.start,
                "size": place.seat.placement.size,
            }
            for place in quote.places
        ],
        "quotas": [
            {"kind": room.kind, "limit": room.limit, "used": room.used, "free": room.free}
            for room in quote.room
        ],
        "alternatives": [_other(each, quote) for each in quote.alternatives],
    }


def _other(each: Alternative, quote: Answer) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "offering": each.offering.pk,
        "label": each.offering.label,
        "free_now": each.free,
        "price_per_hour": hourly(each.price.nano_per_hour * quote.quantity, quote.currency),
        "at_most": money(each.at_most_minor, quote.currency),
        "difference": money(each.difference_minor, quote.currency),
    }
