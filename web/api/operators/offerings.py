"""Operators' API of offerings: their prices, with a preview, and their tax category."""

from typing import Any

from django.conf import settings
from django.db.models import Count, Q
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import OfferingTaxCategory, PriceVersion, TaxCategory
from billing.models.prices import PriceModel
from billing.services.catalogue import price_list, price_tiers, tenant_prices
from billing.services.catalogue.price_tiers import TierInput
from billing.services.reports import price_impact
from billing.services.reports.price_impact import PricePreview, TenantPriceEffect
from billing.services.tax import tax_rates
from broker.domain.geometry.host_resources import HostResources
from broker.models import Cluster, Offering, OfferingState
from broker.services.inventory import gpu_catalogue, offering_admin
from broker.services.inventory.offering_admin import MAX_AMOUNT, MAX_NOTICE_S, MAX_RUNTIME_S
from broker.services.queue import open_capacity
from broker.services.volumes import volume_metering
from tenants.services.errors import InvalidValue
from web.api.amounts import MoneyOut, PriceOut, hourly_price_out, money_out, running_total_out
from web.api.offerings import OFFERING_FIELDS, RESOURCE_TEXTS, OfferingRows
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct, require_field, tenant_or_missing
from web.api.operators.price_versions import OperatorPriceVersionOut, OperatorPriceVersionViewSet
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class ScheduledPriceOut(serializers.Serializer[Any]):
    """A price and the moment it takes effect."""

    price_per_hour = PriceOut()
    since = serializers.DateTimeField()


class OperatorOfferingOut(serializers.ModelSerializer[Offering]):
    """An offering as operators see it, in the installation's currency."""

    gpu_model = serializers.CharField(source="gpu_model_id")
    free_now = serializers.SerializerMethodField()
    live_lease_count = serializers.IntegerField(source="live")
    price_now = serializers.SerializerMethodField()
    price_next = serializers.SerializerMethodField()
    tax_category = serializers.SerializerMethodField()

    class Meta:
        model = Offering
        fields = (
            *OFFERING_FIELDS,
            "spot_notice_s",
            "spot_min_runtime_s",
            "state",
            "free_now",
            "live_lease_count",
            "price_now",
            "price_next",
            "tax_category",
        )
        extra_kwargs = RESOURCE_TEXTS

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_free_now(self, offering: Offering) -> Any:
        """Return how many could start now, counted separately; null if not on sale."""
        return self.context["free"].get(offering.pk)

    @extend_schema_field(ScheduledPriceOut(allow_null=True))
    def get_price_now(self, offering: Offering) -> Any:
        """Return its list price; null if it has none and cannot be leased."""
        return self._price("now", offering)

    @extend_schema_field(ScheduledPriceOut(allow_null=True))
    def get_price_next(self, offering: Offering) -> Any:
        """Return the next scheduled price."""
        return self._price("next", offering)

    @extend_schema_field(serializers.ChoiceField(choices=TaxCategory.choices))
    def get_tax_category(self, offering: Offering) -> Any:
        """Return the category its tax rate follows from."""
        return self.context["tax"].get(offering.pk, TaxCategory.STANDARD)

    def _price(self, when: str, offering: Offering) -> Any:
        found = self.context[when].get(offering.pk)
        return found and {"price_per_hour": hourly_price_out(found.nano_per_hour, found.currency), "since": found.since}


class TierIn(StrictSerializer):
    """Price from a number of hours on, optionally up to another; all decimals."""

    from_hours = serializers.CharField(max_length=24)
    until_hours = serializers.CharField(max_length=24, allow_null=True, default=None)
    price_per_hour = serializers.CharField(max_length=40, required=False, help_text="Not of a package.")
    package_price = serializers.CharField(
        max_length=40, required=False, help_text="Of a package: the price of all its hours."
    )


class PriceCreate(StrictSerializer):
    """A price per hour and unit, as a decimal such as `3.79`, and its start.

    Without `since` it takes effect at once. `model` says how it is applied: `flat`; `graduated` or `volume`, with
    tiers from a number of hours of a month on, the first at the price itself; or `package`, with one tier: the
    number of hours it contains, and the price of all of them.

    With `tenant` it is that tenant's own, in its currency, and takes precedence over the list price until it ends;
    zero is accepted only with `free`.
    """

    price_per_hour = serializers.CharField(max_length=40)
    currency = serializers.CharField(max_length=3, default=settings.CURRENCY)
    since = serializers.DateTimeField(allow_null=True, default=None)
    tenant = serializers.CharField(max_length=40, allow_null=True, default=None)
    until = serializers.DateTimeField(allow_null=True, default=None)
    free = serializers.BooleanField(default=False)
    model = serializers.ChoiceField(choices=PriceModel.choices, default=PriceModel.FLAT)
    tiers = TierIn(many=True, default=list)


class PriceImpactOut(serializers.Serializer[Any]):
    """Month of one tenant at another price.

    `kept` is part of both: fixed by quotes or by a tenant-specific price.
    """

    tenant = serializers.CharField()
    name = serializers.CharField()
    lease_count = serializers.IntegerField()
    unit_seconds = serializers.IntegerField()
    was = MoneyOut()
    would_be = MoneyOut()
    kept = MoneyOut()


class PricePreviewOut(serializers.Serializer[Any]):
    """Charges of the last whole month (UTC), as they were and at this price."""

    offering = serializers.CharField()
    price_per_hour = PriceOut()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    was = MoneyOut()
    would_be = MoneyOut()
    kept = MoneyOut()
    items = PriceImpactOut(many=True)


class OfferingResourcesIn(StrictSerializer):
    """What one slice brings of its node."""

    cpu_milli = serializers.IntegerField(min_value=1, max_value=MAX_AMOUNT, help_text="Thousandths of a CPU.")
    host_memory_mib = serializers.IntegerField(min_value=1, max_value=MAX_AMOUNT)
    scratch_mib = serializers.IntegerField(min_value=1, max_value=MAX_AMOUNT)


class SpotTermsIn(StrictSerializer):
    """Terms of new leases of a spot offering, in seconds; null: those of the installation."""

    notice_s = serializers.IntegerField(min_value=0, max_value=MAX_NOTICE_S, allow_null=True)
    min_runtime_s = serializers.IntegerField(min_value=0, max_value=MAX_RUNTIME_S, allow_null=True)


class OfferingChange(StrictSerializer):
    """What to change of an offering."""

    label = serializers.CharField(max_length=120)  # type: ignore[assignment]  # DRF's own is a text
    state = serializers.ChoiceField(choices=[OfferingState.PUBLISHED.value, OfferingState.RETIRED.value])
    tax_category = serializers.ChoiceField(choices=TaxCategory.choices)
    resources = OfferingResourcesIn()
    spot_terms = SpotTermsIn()


class DerivedOfferingsOut(serializers.Serializer[Any]):
    drafted = serializers.IntegerField(help_text="How many new drafts there are.")


class OperatorOfferingViewSet(OfferingRows, CrossTenantViewSet):
    """Everything the inventory could sell: draft, published and retired offerings."""

    area = "offerings"
    serializer_class, audit_action = OperatorOfferingOut, "offerings"
    rows = Offering.objects.annotate(live=Count("lease", filter=~Q(lease__state="released")))
    filters = OfferingRows.filters | {"state": QueryFilter("state", choices=tuple(OfferingState.values))}
    action_parameters = {"preview": frozenset({"price_per_hour", "currency", "tenant", "model", "tiers"})}

    def prepare(self, rows: list[Any]) -> list[Any]:
        ids, currency = [offering.pk for offering in rows], settings.CURRENCY
        self.beside = {
            "free": open_capacity.count_open_capacity(
                (o for o in rows if o.state == OfferingState.PUBLISHED), now=self.now
            ),
            "now": price_list.prices_at(self.now, currency=currency, offerings=ids),
            "tax": dict(OfferingTaxCategory.objects.filter(offering__in=ids).values_list("offering_id", "category")),
            "next": price_list.upcoming_prices(self.now, currency=currency, offerings=ids),
        }
        return rows

    @OperatorAct(
        PriceCreate,
        answer=OperatorPriceVersionOut,
        rows=OperatorPriceVersionViewSet.rows,
        audit_action="prices",
        creates=True,
        description="Set a price from a time on (UTC unless it has an offset) until the next scheduled price. Periods"
        " that may already have been charged or quoted keep their price. Repeating the request changes nothing.",
    )
    def price(self, offering: Offering, body: dict[str, Any]) -> PriceVersion:
        """Publish a price, or return the same existing one."""
        nano = price_list.parse_nano_per_hour(body["price_per_hour"])
        tiers = [_tier_input(each, body["model"]) for each in body["tiers"]]
        price: dict[str, Any] = {
            "nano_per_hour": nano,
            "since": body["since"] or self.now,
            "tiers": price_tiers.parse_tiers(body["model"], nano, tiers),
        }
        if body["tenant"]:
            return self._agree_price(offering, price, body)
        if body["until"] or body["free"]:
            raise ValidationError({"tenant": "Only a tenant-specific price can have an end or be confirmed as free."})
        price["currency"] = body["currency"]
        return price_list.find_identical_list_price(offering, **price) or price_list.publish_price(
            offering=offering, **price, **self.by
        )

    def _agree_price(self, offering: Offering, price: dict[str, Any], body: dict[str, Any]) -> PriceVersion:
        tenant, price = tenant_or_missing(body["tenant"]), {**price, "until": body["until"]}
        with self.read_scope():
            version = tenant_prices.find_identical_price(tenant, offering, **price)
        return version or tenant_prices.set_tenant_price(
            tenant=tenant, offering=offering, free=body["free"], **price, **self.by
        )

    @OperatorAct(
        OfferingChange,
        description="Change its name, state, tax category, resources or spot terms; omitted fields stay. Resources and"
        " spot terms apply to leases that are requested from now on, and no more resources are accepted than the"
        " smallest node of the GPU model and region has. A published offering needs a price. Drafts of invoices follow"
        " a tax category with the next charge, final ones never change.",
    )
    def partial_update(self, offering: Offering, body: dict[str, Any]) -> Offering:
        """Change an offering."""
        return _change_offering(offering, body, self.by)

    @extend_schema(request=None, responses={201: DerivedOfferingsOut})
    @action(detail=False, methods=["post"], audit_action="offerings.derive")
    @idempotent()
    def derive(self, request: Request) -> Response:
        """Draft an offering for every shape in the inventory that has none."""
        made = gpu_catalogue.derive_offerings(now=self.now, any_share=True)
        for region in sorted(set(Cluster.objects.values_list("region", flat=True))):
            volume_metering.storage_offering(region, now=self.now)
        return Response({"drafted": made}, status=201)

    @extend_schema(
        operation_id="ops_offerings_preview",
        responses=PricePreviewOut,
        parameters=[
            OpenApiParameter("price_per_hour", str, description="A decimal such as 3.79. Default: the current price."),
            OpenApiParameter("currency", str, description="Default: the installation's currency."),
            OpenApiParameter("tenant", str, description="Preview as the price of this tenant, in its currency."),
            OpenApiParameter("model", str, description="flat, graduated, volume or package. Default: flat."),
            OpenApiParameter("tiers", str, description="Pairs of from_hours and price, such as `100 2.50;500 2.00`."),
        ],
    )
    @action(detail=True, pagination_class=None, filter_backends=[], audit_action="prices")
    def preview(self, request: Request, pk: str) -> Response:
        """Return last month's real use of an offering, charged at this price; writes nothing."""
        query = request.query_params
        currency, text = query.get("currency", settings.CURRENCY), query.get("price_per_hour", "")
        tenant = tenant_or_missing(query["tenant"]) if query.get("tenant") else None
        with self.read_scope():
            offering: Offering = self.find_row()
            whose, currency = (tenant.pk, tenant.currency) if tenant else ("", currency)
            held = price_list.prices_at(self.now, currency=currency, offerings=[offering.pk], tenant=whose)
            present = held[offering.pk].nano_per_hour if offering.pk in held else 0
            nano = price_list.parse_nano_per_hour(text) if text else present
            tier_inputs = price_tiers.parse_tier_lines(query.get("tiers", "").replace(";", "\n"))
            found = price_impact.preview_price(
                offering,
                currency=currency,
                nano_per_hour=nano,
                now=self.now,
                tenant=whose or None,
                tiers=price_tiers.parse_tiers(query.get("model", "flat"), nano, tier_inputs),
            )
        return Response(_preview_body(found))


def _change_offering(offering: Offering, body: dict[str, Any], by: dict[str, Any]) -> Offering:
    """Make the changes of a body, in one transaction."""
    if "label" in body:
        offering = offering_admin.rename_offering(offering, label=body["label"], **by)
    if "tax_category" in body:
        tax_rates.set_tax_category(offering, body["tax_category"], **by)
    if amounts := body.get("resources"):
        wanted = HostResources(*(require_field(amounts, str(name)) for name in OfferingResourcesIn().fields))
        offering = offering_admin.set_offering_resources(offering, wanted, **by)
    if given := body.get("spot_terms"):
        terms = {str(name): require_field(given, str(name)) for name in SpotTermsIn().fields}
        offering = offering_admin.set_spot_terms(offering, **terms, **by)
    if "state" in body and body["state"] != offering.state:
        if body["state"] == OfferingState.PUBLISHED:  # raises without a price: nothing is sold for free by mistake
            price_list.price_of(offering, currency=settings.CURRENCY, moment=by["now"])
        offering = offering_admin.set_offering_state(offering, OfferingState(body["state"]), **by)
    return offering


def _tier_input(tier: dict[str, Any], model: str) -> TierInput:
    """Return a tier of a body with its price, or raise InvalidValue."""
    name = "package_price" if model == PriceModel.PACKAGE else "price_per_hour"
    if {name} != tier.keys() & {"package_price", "price_per_hour"}:
        raise InvalidValue("tiers", f"A tier of this model has exactly one price, {name}.", fix=f"Send {name}.")
    return TierInput(tier["from_hours"], tier[name], tier["until_hours"])


def _preview_body(found: PricePreview) -> dict[str, Any]:
    return {
        "offering": found.offering.pk,
        "price_per_hour": hourly_price_out(found.nano_per_hour, found.currency),
        "since": found.month.start,
        "until": found.month.end,
        "was": money_out(found.was_minor, found.currency),
        "would_be": money_out(found.would_be_minor, found.currency),
        "kept": money_out(found.kept_minor, found.currency),
        "items": [_impact_row(effect, found.currency) for effect in found.effects],
    }


def _impact_row(effect: TenantPriceEffect, currency: str) -> dict[str, Any]:
    return {
        "tenant": effect.tenant,
        "name": effect.name,
        "lease_count": effect.leases,
        "unit_seconds": effect.unit_seconds,
        "was": running_total_out(effect.was, currency),
        "would_be": running_total_out(effect.would_be, currency),
        "kept": running_total_out(effect.kept, currency),
    }
