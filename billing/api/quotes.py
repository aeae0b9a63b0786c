"""Quotes: what a lease would cost and whether it could be had. Asked for by POST, and nothing is kept."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, hourly, money
from billing.services import quotes
from billing.services.alternatives import Alternative
from billing.services.quotes import Quote
from broker.api.serializers import LeaseWanted
from broker.services.leases.request import Wanted
from tenants.api.fields import Name
from tenants.api.views import TenantViewSet, shape

UNNAMED = "quote"


class QuoteWanted(LeaseWanted):
    """The body of a lease; a name is not needed yet."""

    name = Name(default=UNNAMED)


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
    """An answer that binds nobody. Seconds are charged, so `at_most` is reached only by the whole duration."""

    offering = serializers.CharField()
    quantity = serializers.IntegerField()
    max_duration_s = serializers.IntegerField()
    feasible = serializers.BooleanField()
    starts = serializers.ChoiceField(choices=list(quotes.STARTS))
    refusal = RefusalOut(allow_null=True)
    price_per_hour = MoneyOut(allow_null=True)
    at_most = MoneyOut(allow_null=True)
    places = PlaceOut(many=True)
    quotas = QuotaLeft(many=True)
    alternatives = AlternativeOut(many=True)
    as_of = serializers.DateTimeField()


class Quotes(TenantViewSet):
    """May I have this, when, at what price?"""

    serializer_class = QuoteOut
    actions_needed = {"create": "offerings.read"}
    asks_only = True

    @extend_schema(
        request=QuoteWanted,
        responses={200: QuoteOut},
        description="Judge a lease as it would be judged now. Nothing is stored and nothing is taken, so no"
        " Idempotency-Key is needed; one that is sent is ignored.",
    )
    def create(self, request: Request) -> Response:
        wanted = shape(QuoteWanted, request)
        project = self.project_for(wanted.pop("project"))
        asked = Wanted(offering_id=wanted.pop("offering"), **wanted)
        found = quotes.quote(asked, project=project, actor=self.request.actor, now=self.now)
        return Response({**_shown(found), "as_of": self.now})


def _shown(quote: Quote) -> dict[str, Any]:
    priced, refusal = quote.price is not None, quote.refusal
    return {
        "offering": quote.offering.pk,
        "quantity": quote.quantity,
        "max_duration_s": quote.duration_s,
        "feasible": quote.feasible,
        "starts": quote.starts,
        "refusal": refusal and {"code": refusal.code, "detail": refusal.detail, "fix": refusal.fix.text},
        "price_per_hour": hourly(quote.nano_per_hour, quote.currency) if priced else None,
        "at_most": money(quote.at_most_minor, quote.currency) if priced else None,
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


def _other(each: Alternative, quote: Quote) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "offering": each.offering.pk,
        "label": each.offering.label,
        "free_now": each.free,
        "price_per_hour": hourly(each.price.nano_per_hour * quote.quantity, quote.currency),
        "at_most": money(each.at_most_minor, quote.currency),
        "difference": money(each.difference_minor, quote.currency),
    }
