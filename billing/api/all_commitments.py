"""Commitments of all tenants, as operators keep them."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.all_prices import tenant_or_missing
from billing.api.commitments import CommitmentOut
from billing.models import Commitment
from billing.services import commitments, prices
from broker.api.all_leases import Named
from broker.models import Offering
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls
from tenants.services.refusals import Missing


class CommitmentWanted(Strict):
    tenant = serializers.CharField(max_length=40)
    offering = serializers.CharField(max_length=40)
    units = serializers.IntegerField(min_value=1)
    price = serializers.CharField(
        max_length=40, help_text="Of an hour, for one unit, in the tenant's currency: 1.99."
    )
    since = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: at once.")
    until = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: until it is ended.")


class CommitmentEndWanted(Strict):
    at = serializers.DateTimeField(allow_null=True, help_text="Null: at once.")


class CommitmentSeenOut(CommitmentOut):
    """A commitment, and whose."""

    tenant = Named()

    class Meta(CommitmentOut.Meta):
        fields = ("tenant", *CommitmentOut.Meta.fields, "agreed_by")


class OpsCommitments(AllTenants):
    """Units that tenants pay for, used or not."""

    serializer_class, rows, visit = CommitmentSeenOut, Commitment, "commitments"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"tenant": Filter("tenant_id"), "offering": Filter("offering_id")}

    @extend_schema(request=CommitmentWanted, responses=CommitmentSeenOut, filters=False)
    def publish(self, request: Request) -> Response:
        """Let a tenant pay for so many units of an offering in every second from a moment on."""
        wanted = shape(CommitmentWanted, request)
        made = commitments.agree(
            tenant_or_missing(wanted["tenant"]),
            offering_or_missing(wanted["offering"]),
            units=wanted["units"],
            nano_per_hour=prices.nano_of(wanted["price"]),
            since=wanted["since"] or self.now,
            until=wanted["until"],
            actor=self.actor,
            now=self.now,
        )
        return self._told(made.pk)

    @extend_schema(request=CommitmentEndWanted, responses=CommitmentSeenOut)
    def end(self, request: Request, pk: str) -> Response:
        """Let it end at a moment that is still to come; until then it covers, and is owed."""
        with walls.as_staff():
            found = commitments.find(pk)
        at = shape(CommitmentEndWanted, request)["at"] or self.now
        return self._told(commitments.end(found, at=at, actor=self.actor, now=self.now).pk)

    def _told(self, pk: str) -> Response:
        with walls.as_staff():
            return Response(CommitmentSeenOut(commitments.find(pk)).data)


def offering_or_missing(pk: str) -> Offering:
    """Return an offering, or raise Missing."""
    if found := Offering.objects.filter(pk=pk).first():
        return found
    raise Missing("There is no such offering.", fix="Look for it in the list of offerings.")
