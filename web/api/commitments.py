"""API of a tenant's commitments, and of how much of them is used."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Commitment
from billing.services.agreements import commitment_coverage
from web.api.amounts import HourlyPriceField, RunningTotalField
from web.api.base_views import RowViewSet, WholeTenantViewSet, needs


class OfferingNameOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF sets its own `label` per instance


class CommitmentOut(serializers.ModelSerializer[Commitment]):
    """Units paid for every second, used or not, at this price per hour and unit."""

    offering = OfferingNameOut()
    price_per_hour = HourlyPriceField(help_text="Price per unit-hour, before tax.")
    since = serializers.DateTimeField(source="valid.lower")
    until = serializers.DateTimeField(source="valid.upper", allow_null=True)

    class Meta:
        model = Commitment
        fields: tuple[str, ...] = ("id", "offering", "units", "price_per_hour", "since", "until", "agreed_at")


class CoveredDayOut(serializers.Serializer[Any]):
    """A local day, or the part of it that counts.

    Each second counts once per unit.
    """

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    covered_seconds = serializers.IntegerField(source="covered")
    beyond_seconds = serializers.IntegerField(source="beyond")
    unused_seconds = serializers.IntegerField(source="unused")


class CoverageOut(serializers.Serializer[Any]):
    """Coverage of the month so far, by what leases did.

    The invoice of a closed month is authoritative.
    """

    month = serializers.CharField()
    committed_seconds = serializers.IntegerField(source="committed")
    covered_seconds = serializers.IntegerField(source="covered")
    beyond_seconds = serializers.IntegerField(
        source="beyond", help_text="Usage above the commitment, charged at the list price or your custom price."
    )
    unused_seconds = serializers.IntegerField(source="unused")
    owed_unused = RunningTotalField("owed_unused", of="commitment")
    days = CoveredDayOut(many=True)


class CommitmentDetailOut(CommitmentOut):
    """A commitment and its coverage this month; null while it is not in force."""

    this_month = CoverageOut(allow_null=True)

    class Meta(CommitmentOut.Meta):
        fields = (*CommitmentOut.Meta.fields, "this_month")


class CommitmentRows(RowViewSet):
    """Commitments, as tenants and operators list them."""

    rows = Commitment.objects.select_related("tenant", "offering")


class CommitmentViewSet(CommitmentRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Commitments of the whole tenant."""

    serializer_class = CommitmentOut
    actions_needed = needs("billing.read", "list", "retrieve")

    @extend_schema(responses=CommitmentDetailOut)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one, with its use in the current month, day by day."""
        agreed = self.get_object()
        agreed.this_month = commitment_coverage.current_coverage(agreed, now=self.now)
        return Response(CommitmentDetailOut(agreed).data)
