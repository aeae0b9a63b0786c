"""What a tenant committed to, and how much of it is used."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, hourly, running
from billing.api.topups import OfTheTenant
from billing.models import Commitment
from billing.services import coverage
from billing.services.coverage import Coverage


class OfferingNamed(serializers.Serializer[Any]):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF's own is set per instance


class CommitmentOut(serializers.ModelSerializer[Commitment]):
    """So many units in every second, used or not, at this price of an hour for each."""

    offering = OfferingNamed()
    price = serializers.SerializerMethodField(help_text="Of an hour, for one unit; before tax.")
    since = serializers.DateTimeField(source="valid.lower")
    until = serializers.DateTimeField(source="valid.upper", allow_null=True)

    class Meta:
        model = Commitment
        fields: tuple[str, ...] = ("id", "offering", "units", "price", "since", "until", "agreed_at")

    @extend_schema(responses=MoneyOut)
    def get_price(self, agreed: Commitment) -> dict[str, str]:
        return hourly(agreed.nano_per_hour, agreed.currency)


class CoveredDayOut(serializers.Serializer[Any]):
    """A day of the tenant's time zone, or the part of it that counts; each second counted once for every unit."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    covered_seconds = serializers.IntegerField(source="covered")
    beyond_seconds = serializers.IntegerField(source="beyond")
    unused_seconds = serializers.IntegerField(source="unused")


class CoverageOut(serializers.Serializer[Any]):
    """What of the month has passed. The invoice of a closed month is what counts; this is what leases did so far."""

    month = serializers.CharField()
    committed_seconds = serializers.IntegerField(source="committed")
    covered_seconds = serializers.IntegerField(source="covered")
    beyond_seconds = serializers.IntegerField(
        source="beyond",
        help_text="Used, and more than was committed to: at the price of the list, or your own.",
    )
    unused_seconds = serializers.IntegerField(source="unused")
    owed_unused = serializers.SerializerMethodField()
    days = CoveredDayOut(many=True)

    @extend_schema(responses=MoneyOut)
    def get_owed_unused(self, found: Coverage) -> dict[str, str]:
        return running(found.owed_unused, found.agreed.currency)


class CommitmentSoFarOut(CommitmentOut):
    """A commitment, and what of the present month has passed of it; null while it does not hold."""

    this_month = CoverageOut(allow_null=True)

    class Meta(CommitmentOut.Meta):
        fields = (*CommitmentOut.Meta.fields, "this_month")


class Commitments(ListModelMixin, RetrieveModelMixin, OfTheTenant):
    """Commitments are the whole tenant's, as its invoices are."""

    serializer_class = CommitmentOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    actions_needed = {"list": "billing.read", "retrieve": "billing.read"}

    def get_queryset(self) -> QuerySet[Commitment]:
        return self.visible(Commitment.objects.select_related("offering"))

    @extend_schema(responses=CommitmentSoFarOut)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one, with how much of it is used in the present month, day by day."""
        agreed = self.get_object()
        agreed.this_month = coverage.of(agreed, now=self.now)
        return Response(CommitmentSoFarOut(agreed).data)
