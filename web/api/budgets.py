"""API of budgets, their spend this month, alerts, stops and holds."""

import re
from dataclasses import replace
from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.budgets import MAX_GRACE_MINUTES, MAX_PERCENT, MAX_THRESHOLDS, BudgetTerms, InvalidBudgetTerms
from billing.models import Budget, BudgetAlert, BudgetStop, Hold, HoldPart
from billing.services.funds.budgets import budget_balances, budget_settings
from tenants.services.errors import InvalidValue
from web.api.amounts import AmountField, RunningTotalField, require_amount
from web.api.base_views import ETagViewSet, TenantViewSet, needs, validated_body
from web.api.serializer_fields import StrictSerializer
from web.api.tenant_serializers import IdField
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

MAX_AMOUNT_LENGTH = 20  # characters of an amount


class BudgetOut(serializers.ModelSerializer[Budget]):
    """A monthly ceiling of a project.

    `spent` is up to this second, `held` is reserved by leases, and `left` is what new leases may take. `forecast` is
    what is spent, plus what runs now until its own end or the month's.

    Shares are whole percents of the limit. People are notified at `thresholds` of what is spent and at
    `forecast_thresholds` of the forecast; no lease begins beyond `stop_new_percent` (null: a soft budget, which stops
    none). Leases are ended `grace_minutes` after an e-mail at `stop_idle_percent` (idle ones) and
    `stop_all_percent`.
    """

    project = serializers.CharField(source="project_id")
    limit = AmountField("limit_minor")
    spent = AmountField("figures.spent")
    held = AmountField("figures.held")
    left = AmountField("figures.left")
    forecast = AmountField("figures.forecast")
    stop_new_percent = serializers.IntegerField(source="stop_new_at", allow_null=True)
    stop_idle_percent = serializers.IntegerField(source="stop_idle_at", allow_null=True)
    stop_all_percent = serializers.IntegerField(source="stop_all_at", allow_null=True)

    class Meta:
        model = Budget
        fields = ("id", "project", "limit", "spent", "held", "left", "forecast", "thresholds",
                  "forecast_thresholds", "stop_new_percent", "stop_idle_percent", "stop_all_percent",
                  "grace_minutes")  # fmt: skip

    def to_representation(self, budget: Budget) -> Any:
        """Render the budget with its figures: read for a whole page before, or now."""
        if not hasattr(budget, "figures"):
            balances = budget_balances.budget_balances(
                [budget], tenant=budget.project.tenant, now=self.context["view"].now
            )
            (budget.figures,) = balances  # type: ignore[attr-defined]
        return super().to_representation(budget)


class PercentField(serializers.IntegerField):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=MAX_PERCENT, **options)


class BudgetTermsIn(StrictSerializer):
    thresholds = serializers.ListField(child=PercentField(), max_length=MAX_THRESHOLDS, required=False)
    forecast_thresholds = serializers.ListField(child=PercentField(), max_length=MAX_THRESHOLDS, required=False)
    stop_new_percent = PercentField(
        source="stop_new_at", required=False, allow_null=True, help_text="Null: the limit does not block new leases."
    )
    stop_idle_percent = PercentField(source="stop_idle_at", required=False, allow_null=True)
    stop_all_percent = PercentField(source="stop_all_at", required=False, allow_null=True)
    grace_minutes = serializers.IntegerField(min_value=0, max_value=MAX_GRACE_MINUTES, required=False)


class BudgetCreate(BudgetTermsIn):
    project = IdField()
    limit = serializers.CharField(max_length=MAX_AMOUNT_LENGTH, help_text="An amount of your currency, such as 500.00.")


class BudgetChange(BudgetTermsIn):
    limit = serializers.CharField(max_length=MAX_AMOUNT_LENGTH, required=False)


class BudgetViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """Maximum monthly cost of a project and everything below it.

    A lease reserves its share before it queues.
    """

    serializer_class = BudgetOut
    rows = Budget.objects.select_related("project__tenant")
    project_field = "project"
    sorts = ("-id",)
    filters = {"project": QueryFilter("project_id")}
    actions_needed = needs("budgets.read", "list", "retrieve") | needs(
        "budgets.write", "create", "partial_update", "destroy"
    )

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Lock the tenant's funds before a budget row is locked for a change."""
        if self.action in self.changing:
            budget_settings.lock_tenant_funds(self.request.tenant.pk)
        return super().filter_queryset(queryset)

    def list(self, request: Request) -> Response:
        """Return all budgets with their figures of this month."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        for each in budget_balances.budget_balances(page, tenant=self.request.tenant, now=self.now):
            each.budget.figures = each  # type: ignore[attr-defined]
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(request=BudgetCreate, responses={201: BudgetOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Set a project's budget.

        A new one counts what this month has already cost, and what runs.
        """
        wanted = validated_body(BudgetCreate, request)
        project = self.project_for(wanted["project"])
        budget_settings.require_may_set_budget(self.request.roles, project)
        budget = budget_settings.set_budget(
            project=project,
            limit_minor=parse_limit(wanted["limit"], self.request.tenant.currency),
            terms=parse_budget_terms(wanted, BudgetTerms()),
            **self.by,
        )
        return self.tagged(budget, status=201, Location=f"/api/v1/budgets/{budget.pk}")

    @extend_schema(request=BudgetChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a budget; omitted fields stay.

        A limit below what is already taken only stops new leases.
        """
        budget = self.get_object()
        self.allow(budget.project.path)
        budget_settings.require_may_set_budget(self.request.roles, budget.project)
        wanted = validated_body(BudgetChange, request)
        changed = budget_settings.set_budget(
            project=budget.project,
            limit_minor=parse_limit(wanted["limit"], budget.currency) if "limit" in wanted else budget.limit_minor,
            terms=parse_budget_terms(wanted, budget.terms),
            **self.by,
        )
        return self.tagged(changed)

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a budget; those above it still apply."""
        budget = self.get_object()
        self.allow(budget.project.path)
        budget_settings.require_may_set_budget(self.request.roles, budget.project)
        budget_settings.remove_budget(budget, **self.by)
        return Response(status=204)


def parse_limit(text: str, currency: str) -> int:
    """Parse the limit of a request body, or raise InvalidValue."""
    return require_amount("limit", text, currency, example="500.00")


def parse_budget_terms(wanted: dict[str, Any], before: BudgetTerms) -> BudgetTerms:
    """Apply the terms of a request body to the previous ones, or raise InvalidValue."""
    changes: dict[str, Any] = {
        name: tuple(sorted(set(value))) if isinstance(value, list) else value
        for name, value in wanted.items()
        if name in {field.source for field in BudgetTermsIn().fields.values()}
    }
    try:
        return replace(before, **changes)
    except InvalidBudgetTerms as error:
        field = re.sub(r"^(stop_\w+)_at$", r"\1_percent", error.field)
        raise InvalidValue(field, str(error), fix="Send whole percentages such as 80.") from error


class BudgetAlertOut(serializers.ModelSerializer[BudgetAlert]):
    """A threshold of a budget that was reached.

    `lifted_at` is set once a raised budget put it out of reach again.
    """

    budget = serializers.CharField(source="budget_id")
    project = serializers.CharField(source="budget.project_id")
    month = serializers.CharField(source="period.label")
    threshold_percent = serializers.IntegerField(source="percent")
    amount = AmountField(of="budget")
    limit = AmountField("limit_minor", of="budget")

    class Meta:
        model = BudgetAlert
        fields = (
            "id",
            "budget",
            "project",
            "month",
            "measure",
            "threshold_percent",
            "amount",
            "limit",
            "at",
            "lifted_at",
        )


class BudgetStopOut(serializers.ModelSerializer[BudgetStop]):
    """A scheduled stop of the leases under a budget, from `due_at` on.

    Idle leases (`idle`) are looked for until the month ends.
    """

    budget = serializers.CharField(source="budget_id")
    project = serializers.CharField(source="budget.project_id")
    month = serializers.CharField(source="period.label")
    kind = serializers.CharField(source="what", help_text="Which leases: `new`, `idle` or `all`.")
    threshold_percent = serializers.IntegerField(source="percent")
    ended_count = serializers.IntegerField(source="ended")
    spent = AmountField(of="budget")
    limit = AmountField("limit_minor", of="budget")
    last_error = serializers.CharField(help_text="Why a lease could not be ended yet; retried every minute.")

    class Meta:
        model = BudgetStop
        fields = ("id", "budget", "project", "month", "kind", "threshold_percent", "spent", "limit", "notified_at",
                  "due_at", "done_at", "ended_count", "lifted_at", "last_error")  # fmt: skip


class BudgetAlertViewSet(ListModelMixin, TenantViewSet):
    """Budget alerts, latest first."""

    serializer_class = BudgetAlertOut
    rows = BudgetAlert.objects.select_related("budget", "period")
    project_field = "budget__project"
    filters = {"budget": QueryFilter("budget_id"), "measure": QueryFilter("measure")}
    actions_needed = needs("budgets.read", "list")


class BudgetStopViewSet(ListModelMixin, TenantViewSet):
    """Leases that budgets stop or have stopped, latest first."""

    serializer_class = BudgetStopOut
    rows = BudgetStop.objects.select_related("budget", "period")
    project_field = "budget__project"
    filters = {"budget": QueryFilter("budget_id"), "kind": QueryFilter("what")}
    actions_needed = needs("budgets.read", "list")


class HoldPartOut(serializers.ModelSerializer[HoldPart]):
    """Amount held in one month of one budget; exact, since only invoices round."""

    budget = serializers.CharField(source="month.budget_id")
    month = serializers.CharField(source="month.period.label")
    amount = RunningTotalField("num", of="month.budget")
    captured = RunningTotalField("spent_num", of="month.budget")

    class Meta:
        model = HoldPart
        fields = ("budget", "month", "amount", "captured")


class HoldOut(serializers.ModelSerializer[Hold]):
    """Amounts a lease holds in every budget on its path.

    It is settled once all of it is charged or released.
    """

    lease = serializers.CharField(source="lease_id")
    parts = HoldPartOut(many=True)

    class Meta:
        model = Hold
        fields = ("id", "lease", "opened_at", "settled_at", "parts")


class HoldViewSet(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Holds, by lease."""

    serializer_class = HoldOut
    project_field = "lease__project"
    filters = {"lease": QueryFilter("lease_id")}
    actions_needed = needs("budgets.read", "list", "retrieve")

    def get_queryset(self) -> QuerySet[Hold]:
        near = self.in_reach(
            HoldPart.objects.all(), "month__budget__project"
        )  # budgets above the visitor's projects stay hidden
        parts = near.select_related("month__budget", "month__period").order_by("pk")
        return self.visible(Hold.objects.prefetch_related(Prefetch("parts", parts)))
