"""Closing months, as operators go about it."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import BillingPeriod
from billing.services import closing, month_close
from tenants.api.fields import Strict
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls

AT_ONCE = 100  # within a request; the run that comes by itself takes all


class CloseItemOut(serializers.Serializer[Any]):
    """One thing that must be so before a month is closed, issued and collected."""

    name = serializers.CharField()
    says = serializers.CharField()
    state = serializers.ChoiceField(choices=[each.value for each in month_close.State])
    found = serializers.CharField()
    examples = serializers.ListField(child=serializers.CharField())
    fix = serializers.CharField(allow_blank=True)


class MonthCloseOut(serializers.Serializer[Any]):
    """A month of all tenants, in the order in which it closes."""

    month = serializers.CharField(source="label")
    done = serializers.IntegerField()
    items = CloseItemOut(many=True)


class CloseWanted(Strict):
    state = serializers.ChoiceField(choices=["closed"], help_text="What the month is to be.")


class OpsMonthCloses(AllTenants):
    """What is still missing of a month."""

    serializer_class, rows, visit = MonthCloseOut, BillingPeriod, "month-close"
    pagination_class, filter_backends = None, []

    @extend_schema(responses=MonthCloseOut, filters=False)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Look at a month such as 2026-10."""
        return self._told(pk)

    @extend_schema(request=CloseWanted, responses=MonthCloseOut, filters=False)
    def update(self, request: Request, pk: str) -> Response:
        """Close whatever is over and can be, of any month, a hundred at a time; repeating it is harmless."""
        self._check(pk)
        shape(CloseWanted, request)
        closing.close_due(now=self.now, most=AT_ONCE)
        return self._told(pk)

    def _check(self, label: str) -> None:
        with walls.as_staff():
            if label not in month_close.labels():
                raise Http404

    def _told(self, label: str) -> Response:
        self._check(label)
        with walls.as_staff():
            return Response(MonthCloseOut(month_close.look(label, now=self.now)).data)
