"""Prices as operators set them: the next one, what it would have come to last month, and where one is missing."""

from datetime import datetime
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.all_money import PriceSeenOut
from billing.api.amounts import MoneyOut, exact, hourly, money
from billing.models import PriceVersion
from billing.models.prices import PriceModel
from billing.services import gaps, own_prices, prices, repricing, tiers
from billing.services.repricing import Effect, Preview
from billing.services.tiers import Said
from broker.api.serializers import Whole
from broker.models import Offering
from tenants.api.fields import Strict
from tenants.api.operators import AllTenants, whole
from tenants.api.views import shape
from tenants.models import Tenant
from tenants.services import walls
from tenants.services.refusals import Missing


class TierWanted(Strict):
    """From how many hours on, until how many, if that is said, and the price there; all as decimals."""

    from_hours = serializers.CharField(max_length=24)
    until_hours = serializers.CharField(max_length=24, allow_null=True, default=None)
    price = serializers.CharField(max_length=40)


class PriceWanted(Strict):
    """A price of an hour of one, as a decimal such as `3.79`, and from when on it holds; left out: at once.

    `model` says how it asks: `flat`; `graduated` or `volume`, with tiers from so many hours of a month on, the first at
    the price itself; or `package`, with one tier: how many hours it holds, and what all of it costs.

    With `tenant` it is that tenant's own, in its currency, and comes before the list's until it ends; nought is taken
    only where `free` says that it is meant.
    """

    per_hour = serializers.CharField(max_length=40)
    currency = serializers.CharField(max_length=3, default=settings.CURRENCY)
    since = serializers.DateTimeField(allow_null=True, default=None)
    tenant = serializers.CharField(max_length=40, allow_null=True, default=None)
    until = serializers.DateTimeField(allow_null=True, default=None)
    free = serializers.BooleanField(default=False)
    model = serializers.ChoiceField(choices=PriceModel.choices, default=PriceModel.FLAT)
    tiers = TierWanted(many=True, default=list)


class EndWanted(Strict):
    """When a tenant's own price ends; null: at once."""

    at = serializers.DateTimeField(allow_null=True)


class EffectOut(serializers.Serializer[Any]):
    """One tenant's month at another price; `kept` is of both: quotes had fixed it, or it has a price of its own."""

    tenant = serializers.CharField()
    name = serializers.CharField()
    leases = serializers.IntegerField()
    unit_seconds = serializers.IntegerField()
    was = MoneyOut()
    would_be = MoneyOut()
    kept = MoneyOut()


class PreviewOut(serializers.Serializer[Any]):
    """What the last whole month (UTC) was charged, and what it would have been at this price."""

    offering = serializers.CharField()
    per_hour = MoneyOut()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    was = MoneyOut()
    would_be = MoneyOut()
    kept = MoneyOut()
    items = EffectOut(many=True)


class GapOut(serializers.Serializer[Any]):
    """A stretch of use with unit-seconds that no price covers: nothing of its tenant is charged until one does."""

    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    lease = serializers.CharField()
    seq = serializers.IntegerField()
    offering = serializers.CharField()
    offering_label = serializers.CharField(source="label")
    currency = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    unit_seconds = serializers.IntegerField()


@extend_schema_serializer(many=False)
class Gaps(Whole):
    items = GapOut(many=True)


class OpsNextPrices(AllTenants):
    """The price of an offering from some moment on."""

    serializer_class, rows, visit = PriceSeenOut, Offering, "prices"

    @extend_schema(
        request=PriceWanted,
        responses={200: PriceSeenOut},
        description="Let a price hold from a moment on, in UTC unless it names its offset, until the next one that is"
        " scheduled. What has a price and may have been charged or quoted keeps it. Repeating it changes nothing.",
    )
    def update(self, request: Request, pk: str) -> Response:
        """Publish it, or return it where it stands already."""
        offering, wanted = self.get_object(), shape(PriceWanted, request)
        nano, currency = prices.nano_of(wanted["per_hour"]), wanted["currency"]
        since: datetime = wanted["since"] or self.now
        said = [Said(each["from_hours"], each["price"], each["until_hours"]) for each in wanted["tiers"]]
        asked = tiers.read(wanted["model"], nano, said)
        if wanted["tenant"]:
            return self._agree(offering, nano, since, wanted, asked)
        if wanted["until"] or wanted["free"]:
            raise ValidationError({"tenant": "Only a tenant's own price ends, or says that it is free."})
        version = prices.standing(offering, currency=currency, nano_per_hour=nano, since=since, tiers=asked)
        if version is None:
            version = prices.publish(
                offering=offering,
                currency=currency,
                nano_per_hour=nano,
                since=since,
                tiers=asked,
                actor=self.actor,
                now=self.now,
            )
        return Response(PriceSeenOut(PriceVersion.objects.get(pk=version.pk)).data)

    def _agree(
        self, offering: Offering, nano: int, since: datetime, wanted: dict[str, Any], asked: dict[str, Any]
    ) -> Response:
        tenant, until = tenant_or_missing(wanted["tenant"]), wanted["until"]
        with walls.as_staff():
            version = own_prices.standing(
                tenant, offering, nano_per_hour=nano, since=since, until=until, tiers=asked
            )
        if version is None:
            version = own_prices.agree(
                tenant=tenant,
                offering=offering,
                nano_per_hour=nano,
                since=since,
                until=until,
                free=wanted["free"],
                tiers=asked,
                actor=self.actor,
                now=self.now,
            )
        version.tenant_name = tenant.name  # type: ignore[attr-defined]  # as the list annotates it
        return Response(PriceSeenOut(version).data)


class OpsEnds(AllTenants):
    """The end of a tenant's own price."""

    serializer_class, rows, visit = PriceSeenOut, PriceVersion, "prices"

    @extend_schema(
        request=EndWanted,
        responses={200: PriceSeenOut},
        description="Let a tenant's own price end at a moment that is still to come; from then on the list's holds.",
    )
    def update(self, request: Request, pk: str) -> Response:
        """End it."""
        with walls.as_staff():
            version = own_prices.find(pk)
        at = shape(EndWanted, request)["at"] or self.now
        return Response(PriceSeenOut(own_prices.end(version, at=at, actor=self.actor, now=self.now)).data)


class OpsPreviews(AllTenants):
    """Last month at another price."""

    serializer_class, rows, visit = PreviewOut, Offering, "prices"
    pagination_class, filter_backends = None, []

    @extend_schema(
        operation_id="ops_offerings_preview",
        responses=PreviewOut,
        parameters=[
            OpenApiParameter("per_hour", str, description="A decimal such as 3.79; else the present price."),
            OpenApiParameter("currency", str, description="Else the installation's own."),
            OpenApiParameter("tenant", str, description="As this tenant's own price, in its currency."),
            OpenApiParameter("model", str, description="graduated, volume or package; else flat."),
            OpenApiParameter(
                "tiers", str, description="Such as `100 2.50;500 2.00`: from how many hours which price."
            ),
        ],
    )
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Charge last month's real use of an offering at this price. Nothing is written."""
        asked = request.query_params
        if odd := set(asked) - {"per_hour", "currency", "tenant", "model", "tiers"}:
            raise ValidationError({name: "No such parameter here." for name in odd})
        currency, text = asked.get("currency", settings.CURRENCY), asked.get("per_hour", "")
        tenant = tenant_or_missing(asked["tenant"]) if asked.get("tenant") else None
        with walls.as_staff():
            offering: Offering = self.get_object()
            whose, currency = (tenant.pk, tenant.currency) if tenant else ("", currency)
            held = prices.at(self.now, currency=currency, offerings=[offering.pk], tenant=whose)
            present = held[offering.pk].nano_per_hour if offering.pk in held else 0
            nano = prices.nano_of(text) if text else present
            said = tiers.lines(asked.get("tiers", "").replace(";", "\n"))
            found = repricing.preview(
                offering,
                currency=currency,
                nano_per_hour=nano,
                now=self.now,
                tenant=whose or None,
                tiers=tiers.read(asked.get("model", "flat"), nano, said),
            )
        return Response(_shown(found))


class OpsGaps(AllTenants):
    """Use without a price."""

    serializer_class, visit, pagination_class, filter_backends = GapOut, "prices", None, []

    @extend_schema(operation_id="ops_price_gaps_list", responses=Gaps)
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return what cannot be charged yet, of all tenants."""
        with walls.as_staff():
            return whole(GapOut(gaps.unpriced(now=self.now), many=True).data)


def tenant_or_missing(pk: str) -> Tenant:
    with walls.as_staff():
        tenant = Tenant.objects.filter(pk=pk).first()
    if tenant is None:
        raise Missing(f"There is no tenant {pk!r}.", fix="Look its id up on one of its leases or invoices.")
    return tenant


def _shown(found: Preview) -> dict[str, Any]:
    return {
        "offering": found.offering.pk,
        "per_hour": hourly(found.nano_per_hour, found.currency),
        "since": found.month.start,
        "until": found.month.end,
        "was": money(found.was_minor, found.currency),
        "would_be": money(found.would_be_minor, found.currency),
        "kept": money(found.kept_minor, found.currency),
        "items": [_effect(effect, found.currency) for effect in found.effects],
    }


def _effect(effect: Effect, currency: str) -> dict[str, Any]:
    return {
        "tenant": effect.tenant,
        "name": effect.name,
        "leases": effect.leases,
        "unit_seconds": effect.unit_seconds,
        "was": exact(effect.was, currency),
        "would_be": exact(effect.would_be, currency),
        "kept": exact(effect.kept, currency),
    }
