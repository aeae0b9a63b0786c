"""Operators' API for closing months."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import BillingPeriod
from billing.services.invoicing.month_close import close_checklist, close_month
from tenants.services import rls
from web.api.base_views import validated_body
from web.api.operators.base_views import CrossTenantViewSet
from web.api.serializer_fields import StrictSerializer

MAX_CLOSED_PER_REQUEST = 100  # per request; the periodic run takes all


class MonthCloseItemOut(serializers.Serializer[Any]):
    """A precondition of closing, issuing and collecting a month."""

    name = serializers.CharField()
    description = serializers.CharField()
    state = serializers.ChoiceField(choices=[each.value for each in close_checklist.CheckState])
    found = serializers.CharField()
    examples = serializers.ListField(child=serializers.CharField())
    fix = serializers.CharField(allow_blank=True)


class MonthCloseOut(serializers.Serializer[Any]):
    """A month of all tenants, with its closing steps in order."""

    month = serializers.CharField(source="label")
    done = serializers.IntegerField(source="done_count")
    items = MonthCloseItemOut(many=True, source="checks")


class MonthCloseRequest(StrictSerializer):
    state = serializers.ChoiceField(choices=["closed"], help_text="Target state of the month.")


class OperatorMonthCloseViewSet(CrossTenantViewSet):
    """What is still missing to close a month."""

    area = "billing"
    serializer_class, rows, audit_action = MonthCloseOut, BillingPeriod.objects.all(), "month-close"
    pagination_class, filter_backends = None, []

    @extend_schema(responses=MonthCloseOut, filters=False)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return the state of a month such as 2026-10."""
        return self._close_response(pk)

    @extend_schema(request=MonthCloseRequest, responses=MonthCloseOut, filters=False)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Close due tenants' months, at most 100 at a time; repeating it is harmless.

        It closes whatever is over and can be closed, of any month.
        """
        self._check(pk)
        validated_body(MonthCloseRequest, request)
        close_month.close_due_months(now=self.now, most=MAX_CLOSED_PER_REQUEST)
        return self._close_response(pk)

    def _check(self, label: str) -> None:
        with rls.staff_scope():
            if label not in close_checklist.month_labels(now=self.now):
                raise Http404

    def _close_response(self, label: str) -> Response:
        self._check(label)
        with rls.staff_scope():
            return Response(MonthCloseOut(close_checklist.build_checklist(label, now=self.now)).data)
