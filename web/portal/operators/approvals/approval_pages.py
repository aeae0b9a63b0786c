"""Operators' pages of approvals: the queue, one request, limits of a tenant."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.approvals import Approver
from billing.models import ApprovalRequest, ApprovalState
from billing.services.approvals import approval_decisions, approval_limits
from billing.services.approvals.approval_links import read_decision
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.approvals.approval_pages import ApprovalRow, LimitFields, limit_fields, parse_limits
from web.portal.operators.list_specs import ListState, ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, find_row, form_page, operator_page

ROWS = ApprovalRequest.objects.select_related("project__tenant", "offering")


def _approval_cells(each: ApprovalRequest) -> tuple[object, ...]:
    return (
        *(each.pk, each.project.tenant_id, each.project.tenant.name, each.kind, each.state, each.name),
        *(each.offering.label, each.quantity * each.array_size, each.duration_s, each.currency),
        *(csv_money(each.cost_minor, each.currency), each.requested_by_label, csv_time(each.created_at)),
        *(csv_time(each.expires_at), csv_time(each.decided_at), each.decided_by, each.reason),
    )


APPROVAL_LIST = OperatorList(
    name="approval-requests",
    heads=(
        "request tenant tenant_name kind state name offering quantity duration_s currency max_cost "
        "requested_by created_at expires_at decided_at decided_by reason"
    ),
    cells=_approval_cells,
    tenant="tenant_id",
    at="created_at",
    states=(
        ListState(
            "",
            gettext_lazy("Waiting"),
            Q(state=ApprovalState.WAITING, needs_operator=True, operator_approved_at=None),
        ),
        ListState("all", gettext_lazy("All")),
    ),
    search=("name", "requested_by_label", "pk"),
    sums=(ListSum(gettext_lazy("At most"), "cost_minor"),),
)


@operator_page("approvals")
def list_approvals(request: OperatorRequest) -> Any:
    """List what waits for an operator, or all requests of all tenants."""
    lists = read_lists(request, APPROVAL_LIST)
    rows = ROWS.order_by("-id")
    if wants_csv(request):
        return lists.csv((APPROVAL_LIST, lambda: rows))
    listing = lists.read(APPROVAL_LIST, rows)
    state = {} if lists.filter.state else {"waits_for_operator": "true"}
    context = {
        "listing": listing.with_rows([ApprovalRow(each) for each in listing.rows]),
        "filter": lists.count_states(APPROVAL_LIST, rows),
        "calls": [
            operator_api_call(
                _("Requests for approval of all tenants"), "ops/approval-requests", **state, limit=API_PAGE_SIZE
            )
        ],
    }
    return render(request, "operators/approvals/approvals.html", context)


@dataclass(frozen=True, slots=True)
class OperatorApprovalPage:
    """One request, and whether it waits for an operator."""

    row: ApprovalRow
    may_decide: bool
    offered: str
    link_expired: bool

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("This request"), f"ops/approval-requests/{self.row.request.pk}")]


@operator_page("approval", methods=SAFE_OR_POST)
def show_approval(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show a request; a POST approves or declines it."""
    found = _find(pk)
    return form_page(
        request,
        "operators/approvals/approval.html",
        lambda _refusal: build_approval_page(request, ROWS.get(pk=pk)),
        lambda: decide(request, found),
        back=reverse("ops-approval", args=[pk]),
    )


def decide(request: OperatorRequest, found: ApprovalRequest) -> str:
    """Apply the pressed button; return what it says once done."""
    by: dict[str, Any] = {"approver": Approver.OPERATOR, "actor": request.actor, "now": request.now}
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "")
    if verb == "approve":
        done = approval_decisions.approve(found, reason=reason, **by)
        if done.state == ApprovalState.WAITING:
            return _("{name} is approved by operators and waits for an owner.").format(name=done.name)
        return _("{name} is approved and was requested.").format(name=done.name)
    if verb == "decline":
        approval_decisions.decline(found, reason=reason, **by)
        return _("{name} was declined. The tenant sees the reason.").format(name=found.name)
    raise InvalidValue("do", _("This action does not exist."), fix=_("Reload the page."))


def build_approval_page(request: OperatorRequest, found: ApprovalRequest) -> OperatorApprovalPage:
    offer = request.GET.get("offer", "")[:500]
    offered = read_decision(offer, found) if offer else ""
    return OperatorApprovalPage(
        row=ApprovalRow(found),
        may_decide=found.waits_for(Approver.OPERATOR),
        offered=offered,
        link_expired=bool(offer) and not offered,
    )


def _find(pk: str) -> ApprovalRequest:
    return find_row(ROWS.all(), pk, _("Request"), fix=_("Select it from the list of approvals."))


@dataclass(frozen=True, slots=True)
class OperatorLimitsPage:
    """Limits that operators set for a tenant, and its own."""

    tenant: Tenant
    limits: LimitFields
    own: LimitFields

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("Limits of this tenant"), "ops/approval-limits", tenant=self.tenant.pk)]


@operator_page("approval_limits", methods=SAFE_OR_POST)
def edit_approval_limits(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show the operators' limits of a tenant's launches; a POST sets them."""
    tenant = find_row(Tenant.objects.all(), pk, _("Tenant"), fix=_("Select it from the list of tenants."))

    def save() -> str:
        wanted = parse_limits(request.POST, tenant, Approver.OPERATOR)
        approval_limits.set_limits(tenant, wanted, actor=request.actor, now=request.now)
        return _("Limits of {tenant_name} saved.").format(tenant_name=tenant.name)

    return form_page(
        request,
        "operators/approvals/limits.html",
        lambda _refusal: build_limits_page(request, tenant),
        save,
        back=reverse("ops-approval-limits", args=[pk]),
    )


def build_limits_page(request: OperatorRequest, tenant: Tenant) -> OperatorLimitsPage:
    """Read the limits; what was typed replaces what is stored."""
    stored = limit_fields(approval_limits.limits_of(tenant, Approver.OPERATOR))
    given = request.POST
    return OperatorLimitsPage(
        tenant=tenant,
        limits=LimitFields(
            max_cost=given.get("max_cost", stored.max_cost),
            max_gpus=given.get("max_gpus", stored.max_gpus),
            max_hours=given.get("max_hours", stored.max_hours),
            currency=tenant.currency,
        ),
        own=limit_fields(approval_limits.limits_of(tenant, Approver.TENANT)),
    )
