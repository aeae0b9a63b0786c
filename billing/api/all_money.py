"""What is sold and for how much, what cards earn, payments and proofs: all tenants', for operators."""

from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, hourly
from billing.api.payments import PaymentOut
from billing.api.prices import PriceVersionOut
from billing.models import Payment, PaymentStatus, PriceVersion
from billing.services import prices, proofs
from broker.api.all_leases import Named
from broker.api.offerings import WHAT_IT_IS
from broker.api.serializers import Whole
from broker.domain.states import Isolation, PriceClass
from broker.models import Offering, OfferingState
from broker.services.leases import openings
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants, whole
from tenants.models import Tenant
from tenants.services import walls


class PriceSeenOut(PriceVersionOut):
    """A price, whose it is where it is one tenant's own, and who set it."""

    tenant = serializers.CharField(source="tenant_id", allow_null=True)
    tenant_name = serializers.CharField(allow_null=True, default=None)
    created_by = serializers.CharField()

    class Meta(PriceVersionOut.Meta):
        fields = (*PriceVersionOut.Meta.fields, "tenant", "tenant_name", "created_by", "created_at")  # type: ignore[assignment]


class OpsPriceVersions(AllTenants):
    """Prices in every currency, of drafts too: the list's, or `own=true`, those that single tenants have."""

    serializer_class, rows, visit = PriceSeenOut, PriceVersion, "prices"
    sorts = ("-id", "id")
    filters = {
        "offering": Filter("offering_id"),
        "currency": Filter("currency"),
        "at": Filter("valid__contains", "moment"),
        "tenant": Filter("tenant_id"),
    }
    parameters: ClassVar[frozenset[str]] = frozenset({"own"})

    def get_queryset(self) -> QuerySet[PriceVersion]:
        whose = Tenant.objects.filter(pk=OuterRef("tenant_id")).values("name")
        rows = PriceVersion.objects.annotate(tenant_name=Subquery(whose))
        asked = self.request.query_params
        if "pk" in self.kwargs:
            return rows
        return rows.filter(tenant_id__isnull="tenant" not in asked and asked.get("own") != "true")


class PriceFrom(serializers.Serializer[Any]):
    """A price and since when it holds."""

    per_hour = MoneyOut()
    since = serializers.DateTimeField()


class OfferingSeenOut(serializers.ModelSerializer[Offering]):
    """An offering as operators see it, in the installation's own currency."""

    gpu_model = serializers.CharField(source="gpu_model_id")
    free_now = serializers.SerializerMethodField()
    live_leases = serializers.IntegerField(source="live")
    price_now = serializers.SerializerMethodField()
    price_next = serializers.SerializerMethodField()

    class Meta:
        model = Offering
        fields = (*WHAT_IT_IS, "state", "free_now", "live_leases", "price_now", "price_next")

    @extend_schema(responses=serializers.IntegerField(allow_null=True))
    def get_free_now(self, offering: Offering) -> Any:
        """Return how many could start now, each counted alone; null for what is not on sale."""
        return self.context["free"].get(offering.pk)

    @extend_schema(responses=PriceFrom(allow_null=True))
    def get_price_now(self, offering: Offering) -> Any:
        """Return its list price; null where it has none, so that nobody can buy it."""
        return self._price("now", offering)

    @extend_schema(responses=PriceFrom(allow_null=True))
    def get_price_next(self, offering: Offering) -> Any:
        """Return the price that is scheduled next."""
        return self._price("next", offering)

    def _price(self, when: str, offering: Offering) -> Any:
        found = self.context[when].get(offering.pk)
        return found and {
            "per_hour": hourly(found.nano_per_hour, found.currency),
            "since": found.since,
        }


class OpsOfferings(AllTenants):
    """Everything the inventory could sell: drafts, what is on sale, what is retired."""

    serializer_class, rows, visit = OfferingSeenOut, Offering, "offerings"
    sorts = ("id", "-id", "label", "-label", "memory_gb", "-memory_gb")
    search_in = ("label", "profile", "gpu_model__name")
    filters = {
        "state": Filter("state", choices=tuple(OfferingState.values)),
        "gpu_model": Filter("gpu_model_id"),
        "region": Filter("region"),
        "isolation": Filter("isolation", choices=tuple(each.value for each in Isolation)),
        "price_class": Filter("price_class", choices=tuple(each.value for each in PriceClass)),
    }

    def get_queryset(self) -> QuerySet[Offering]:
        return Offering.objects.annotate(live=Count("lease", filter=~Q(lease__state="released")))

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **getattr(self, "known", {})}

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        self._look(page or [])
        return page

    def get_object(self) -> Offering:
        offering: Offering = super().get_object()
        self._look([offering])
        return offering

    def _look(self, page: list[Offering]) -> None:
        ids, currency = [offering.pk for offering in page], settings.CURRENCY
        self.known = {
            "free": openings.count((o for o in page if o.state == OfferingState.PUBLISHED), now=self.now),
            "now": prices.at(self.now, currency=currency, offerings=ids),
            "next": prices.upcoming(self.now, currency=currency, offerings=ids),
        }


class PaymentSeenOut(PaymentOut):
    """An attempt to collect, and whose."""

    tenant = Named()
    invoice_number = serializers.CharField(source="invoice.__str__")

    class Meta(PaymentOut.Meta):
        fields = ("tenant", "invoice_number", *PaymentOut.Meta.fields)  # type: ignore[assignment]


class OpsPayments(AllTenants):
    """Payments of all tenants. Those that wait for a person are `status=stuck`."""

    serializer_class, rows, visit = PaymentSeenOut, Payment, "payments"
    sorts = ("id", "-id")
    filters = {
        "tenant": Filter("tenant_id"),
        "invoice": Filter("invoice_id"),
        "status": Filter("status", choices=tuple(PaymentStatus.values)),
    }

    def get_queryset(self) -> QuerySet[Payment]:
        return Payment.objects.select_related("tenant", "invoice").prefetch_related("disputes", "refunds")


class ProofOut(serializers.Serializer[Any]):
    """What must be true, and what a look at it just now found; it holds where that is nothing."""

    name = serializers.CharField()
    says = serializers.CharField()
    holds = serializers.BooleanField()
    found = serializers.IntegerField()
    examples = serializers.ListField(child=serializers.CharField())
    checked_at = serializers.DateTimeField()


@extend_schema_serializer(many=False)
class Proofs(Whole):
    items = ProofOut(many=True)


class OpsProofs(AllTenants):
    """What must be true of capacity, quotas, ledger and charges, asked of the rows themselves."""

    serializer_class, visit, pagination_class, filter_backends = ProofOut, "proofs", None, []

    @extend_schema(operation_id="ops_proofs_list", responses=Proofs)
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Check all of them now."""
        with walls.as_staff():
            return whole(ProofOut(proofs.check(now=self.now), many=True).data)
