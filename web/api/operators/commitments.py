"""Operators' API of all tenants' commitments."""

from typing import Any

from rest_framework import serializers

from billing.models import Commitment
from billing.services.agreements import commitments
from billing.services.catalogue import price_list
from broker.models import Offering
from tenants.services.errors import ObjectNotFound
from web.api.commitments import CommitmentOut, CommitmentRows
from web.api.operators.base_views import (
    TENANT_FILTER,
    CrossTenantViewSet,
    OperatorAct,
    TenantNamed,
    require_field,
    tenant_or_missing,
)
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class CommitmentCreate(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    offering = serializers.CharField(max_length=40)
    units = serializers.IntegerField(min_value=1)
    price_per_hour = serializers.CharField(
        max_length=40, help_text="Price per unit-hour in the tenant's currency, for example 1.99."
    )
    since = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: starts now.")
    until = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: no end.")


class CommitmentChange(StrictSerializer):
    until = serializers.DateTimeField(allow_null=True, help_text="Null: now.")


class OperatorCommitmentOut(TenantNamed, CommitmentOut):
    """A commitment and its tenant."""

    more = ("agreed_by",)


class OperatorCommitmentViewSet(CommitmentRows, CrossTenantViewSet):
    """Units that tenants pay for, used or not."""

    area = "billing"
    serializer_class, audit_action = OperatorCommitmentOut, "commitments"
    filters = TENANT_FILTER | {"offering": QueryFilter("offering_id")}

    @OperatorAct(CommitmentCreate)
    def create(self, body: dict[str, Any]) -> Commitment:
        """Create a commitment: a number of units that a tenant pays for every second."""
        return commitments.create_commitment(
            tenant_or_missing(body["tenant"]),
            offering_or_missing(body["offering"]),
            units=body["units"],
            nano_per_hour=price_list.parse_nano_per_hour(body["price_per_hour"]),
            since=body["since"] or self.now,
            until=body["until"],
            **self.by,
        )

    @OperatorAct(CommitmentChange, find=commitments.find_commitment)
    def partial_update(self, agreed: Commitment, body: dict[str, Any]) -> Commitment:
        """End it at a future moment; until then it covers use and is owed."""
        return commitments.end_commitment(agreed, at=require_field(body, "until") or self.now, **self.by)


def offering_or_missing(pk: str) -> Offering:
    """Return an offering, or raise ObjectNotFound."""
    if found := Offering.objects.filter(pk=pk).first():
        return found
    raise ObjectNotFound("The offering was not found.", fix="Select it from the list of offerings.")
