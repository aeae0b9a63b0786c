"""Budgets of projects, how they stand this month, and what leases hold of them."""

from dataclasses import replace
from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, exact, money
from billing.domain.money import NotAnAmount, minor_of
from billing.domain.watching import HIGHEST_PERCENT, LONGEST_GRACE, MOST, NotTerms, Terms
from billing.models import Budget, BudgetAlert, BudgetStop, Hold, HoldPart
from billing.services.funds import budgets, standings
from billing.services.funds.standings import Standing
from tenants.api.etag import Etagged
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.serializers import Id
from tenants.api.views import TenantViewSet, shape
from tenants.services.refusals import Invalid

LONGEST = 20  # letters of an amount
TOLD = "told"  # where a budget of a page keeps how it stands


class BudgetOut(serializers.ModelSerializer[Budget]):
    """A ceiling of a month. `spent` is to this second, `held` may still be, and `left` is what new leases may take.

    `forecast` is what is spent, and what runs now until its own end or the month's. Shares are whole percents of the
    limit: people are told at `thresholds` of what is spent and at `forecast_thresholds` of what is forecast; no lease
    begins beyond `stop_new_at` (null: a soft budget, which stops none), and leases are ended `grace_minutes` after a
    letter at `stop_idle_at` (those of which nothing runs) and `stop_all_at`.
    """

    project = serializers.CharField(source="project_id")
    limit = serializers.SerializerMethodField()
    spent = serializers.SerializerMethodField()
    held = serializers.SerializerMethodField()
    left = serializers.SerializerMethodField()
    forecast = serializers.SerializerMethodField()

    class Meta:
        model = Budget
        fields = (
            "id",
            "project",
            "limit",
            "spent",
            "held",
            "left",
            "forecast",
            "thresholds",
            "forecast_thresholds",
            "stop_new_at",
            "stop_idle_at",
            "stop_all_at",
            "grace_minutes",
        )

    def _of(self, budget: Budget) -> Standing:
        """Return how it stands: read for a whole page at once, or now."""
        if TOLD not in budget.__dict__:
            (budget.__dict__[TOLD],) = standings.standing(
                [budget], tenant=budget.project.tenant, now=self.context["view"].now
            )
        found: Standing = budget.__dict__[TOLD]
        return found

    @extend_schema(responses=MoneyOut)
    def get_limit(self, budget: Budget) -> dict[str, str]:
        return money(budget.limit_minor, budget.currency)

    @extend_schema(responses=MoneyOut)
    def get_spent(self, budget: Budget) -> dict[str, str]:
        return money(self._of(budget).spent, budget.currency)

    @extend_schema(responses=MoneyOut)
    def get_held(self, budget: Budget) -> dict[str, str]:
        return money(self._of(budget).held, budget.currency)

    @extend_schema(responses=MoneyOut)
    def get_left(self, budget: Budget) -> dict[str, str]:
        return money(self._of(budget).left, budget.currency)

    @extend_schema(responses=MoneyOut)
    def get_forecast(self, budget: Budget) -> dict[str, str]:
        return money(self._of(budget).forecast, budget.currency)


class Share(serializers.IntegerField):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=HIGHEST_PERCENT, **options)


class BudgetTerms(Strict):
    thresholds = serializers.ListField(child=Share(), max_length=MOST, required=False)
    forecast_thresholds = serializers.ListField(child=Share(), max_length=MOST, required=False)
    stop_new_at = Share(
        required=False, allow_null=True, help_text="Null: leases begin beyond the limit, too."
    )
    stop_idle_at = Share(required=False, allow_null=True)
    stop_all_at = Share(required=False, allow_null=True)
    grace_minutes = serializers.IntegerField(min_value=0, max_value=LONGEST_GRACE, required=False)


class BudgetWanted(BudgetTerms):
    project = Id()
    limit = serializers.CharField(max_length=LONGEST, help_text="An amount of your currency, such as 500.00.")


class BudgetChange(BudgetTerms):
    limit = serializers.CharField(max_length=LONGEST, required=False)


class Budgets(Etagged, ListModelMixin, TenantViewSet):
    """What a project and all below it may cost in a month. A lease sets its part aside before it queues."""

    serializer_class = BudgetOut
    project_field = "project"
    filters = {"project": Filter("project_id")}
    actions_needed = {
        "list": "budgets.read",
        "retrieve": "budgets.read",
        "create": "budgets.write",
        "partial_update": "budgets.write",
        "destroy": "budgets.write",
    }

    def get_queryset(self) -> QuerySet[Budget]:
        return self.visible(Budget.objects.select_related("project__tenant"))

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Before a row is locked for a change, let nobody of the tenant take money."""
        if self.action in self.changing:
            budgets.alone(self.request.tenant.pk)
        return super().filter_queryset(queryset)

    def list(self, request: Request) -> Response:
        """Return all budgets, each as it stands this month."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        for each in standings.standing(page, tenant=self.request.tenant, now=self.now):
            each.budget.__dict__[TOLD] = each
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(request=BudgetWanted, responses={201: BudgetOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Set a project's budget; a new one counts what this month has cost already, and what runs."""
        wanted = shape(BudgetWanted, request)
        project = self.project_for(wanted["project"])
        budgets.must_lead_above(self.request.roles, project)
        budget = budgets.set_limit(
            project=project,
            limit_minor=minor(wanted["limit"], self.request.tenant.currency),
            actor=self.request.actor,
            now=self.now,
            terms=terms(wanted, Terms()),
        )
        return self.tagged(budget, status=201, Location=f"/api/v1/budgets/{budget.pk}")

    @extend_schema(request=BudgetChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a budget; below what is taken already it only stops new leases, and what is left out stays."""
        budget = self.get_object()
        self.allow(budget.project.path)
        budgets.must_lead_above(self.request.roles, budget.project)
        wanted = shape(BudgetChange, request)
        changed = budgets.set_limit(
            project=budget.project,
            limit_minor=minor(wanted["limit"], budget.currency) if "limit" in wanted else budget.limit_minor,
            actor=self.request.actor,
            now=self.now,
            terms=terms(wanted, budget.terms),
        )
        return self.tagged(changed)

    def destroy(self, request: Request, pk: str) -> Response:
        """Take a budget away; those above it still hold."""
        budget = self.get_object()
        self.allow(budget.project.path)
        budgets.must_lead_above(self.request.roles, budget.project)
        budgets.remove(budget, actor=self.request.actor, now=self.now)
        return Response(status=204)


def minor(text: str, currency: str) -> int:
    """Read an amount of a body, or raise Invalid."""
    try:
        return minor_of(text, currency)
    except NotAnAmount as odd:
        raise Invalid("limit", str(odd), fix="Send an amount such as 500.00.") from odd


def terms(wanted: dict[str, Any], before: Terms) -> Terms:
    """Read the terms of a body over those there were, or raise Invalid."""
    told: dict[str, Any] = {
        name: tuple(sorted(set(value))) if isinstance(value, list) else value
        for name, value in wanted.items()
        if name in BudgetTerms().fields
    }
    try:
        return replace(before, **told)
    except NotTerms as odd:
        raise Invalid(odd.field, str(odd), fix="Send whole percents such as 80.") from odd


class BudgetAlertOut(serializers.ModelSerializer[BudgetAlert]):
    """A share of a budget that was reached; `lifted_at` once the budget was raised and it is no longer so."""

    budget = serializers.CharField(source="budget_id")
    project = serializers.CharField(source="budget.project_id")
    month = serializers.CharField(source="period.label")
    amount = serializers.SerializerMethodField()
    limit = serializers.SerializerMethodField()

    class Meta:
        model = BudgetAlert
        fields = (
            "id",
            "budget",
            "project",
            "month",
            "measure",
            "percent",
            "amount",
            "limit",
            "at",
            "lifted_at",
        )

    @extend_schema(responses=MoneyOut)
    def get_amount(self, row: BudgetAlert) -> dict[str, str]:
        return money(row.minor, row.budget.currency)

    @extend_schema(responses=MoneyOut)
    def get_limit(self, row: BudgetAlert) -> dict[str, str]:
        return money(row.limit_minor, row.budget.currency)


class BudgetStopOut(serializers.ModelSerializer[BudgetStop]):
    """That what runs below a budget is ended from `due_at` on; what is `idle` is looked for until the month ends."""

    budget = serializers.CharField(source="budget_id")
    project = serializers.CharField(source="budget.project_id")
    month = serializers.CharField(source="period.label")
    spent = serializers.SerializerMethodField()
    limit = serializers.SerializerMethodField()
    trouble = serializers.CharField(
        help_text="What keeps a lease that was to end running; it is tried each minute."
    )

    class Meta:
        model = BudgetStop
        fields = (
            "id",
            "budget",
            "project",
            "month",
            "what",
            "percent",
            "spent",
            "limit",
            "told_at",
            "due_at",
            "done_at",
            "ended",
            "lifted_at",
            "trouble",
        )

    @extend_schema(responses=MoneyOut)
    def get_spent(self, row: BudgetStop) -> dict[str, str]:
        return money(row.minor, row.budget.currency)

    @extend_schema(responses=MoneyOut)
    def get_limit(self, row: BudgetStop) -> dict[str, str]:
        return money(row.limit_minor, row.budget.currency)


class BudgetAlerts(ListModelMixin, TenantViewSet):
    """What people were told of budgets, the latest first."""

    serializer_class = BudgetAlertOut
    project_field = "budget__project"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"budget": Filter("budget_id"), "measure": Filter("measure")}
    actions_needed = {"list": "budgets.read"}

    def get_queryset(self) -> QuerySet[BudgetAlert]:
        return self.visible(BudgetAlert.objects.select_related("budget", "period"))


class BudgetStops(ListModelMixin, TenantViewSet):
    """What budgets stop or have stopped, the latest first."""

    serializer_class = BudgetStopOut
    project_field = "budget__project"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"budget": Filter("budget_id"), "what": Filter("what")}
    actions_needed = {"list": "budgets.read"}

    def get_queryset(self) -> QuerySet[BudgetStop]:
        return self.visible(BudgetStop.objects.select_related("budget", "period"))


class HoldPartOut(serializers.ModelSerializer[HoldPart]):
    """What is held of one month of one budget; exact, for nothing is rounded before an invoice is."""

    budget = serializers.CharField(source="month.budget_id")
    month = serializers.CharField(source="month.period.label")
    amount = serializers.SerializerMethodField()
    captured = serializers.SerializerMethodField()

    class Meta:
        model = HoldPart
        fields = ("budget", "month", "amount", "captured")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, part: HoldPart) -> dict[str, str]:
        return exact(int(part.num), part.month.budget.currency)

    @extend_schema(responses=MoneyOut)
    def get_captured(self, part: HoldPart) -> dict[str, str]:
        return exact(int(part.spent_num), part.month.budget.currency)


class HoldOut(serializers.ModelSerializer[Hold]):
    """What a lease has set aside in every budget on its path; settled once all of it is charged or free again."""

    lease = serializers.CharField(source="lease_id")
    parts = HoldPartOut(many=True)

    class Meta:
        model = Hold
        fields = ("id", "lease", "opened_at", "settled_at", "parts")


class Holds(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Holds, by the leases that they are for."""

    serializer_class = HoldOut
    project_field = "lease__project"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"lease": Filter("lease_id")}
    actions_needed = {"list": "budgets.read", "retrieve": "budgets.read"}

    def get_queryset(self) -> QuerySet[Hold]:
        near = self.in_reach(
            HoldPart.objects.all(), "month__budget__project"
        )  # of those above nobody is told
        parts = near.select_related("month__budget", "month__period").order_by("pk")
        return self.visible(Hold.objects.prefetch_related(Prefetch("parts", parts)))
