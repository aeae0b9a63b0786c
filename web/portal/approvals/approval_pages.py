"""Pages of approvals: the queue, one request with its decision, and the tenant's limits."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.approvals import Approver, LaunchLimits, Measure
from billing.domain.money import InvalidAmount, Money, exponent_of, format_fixed_point, parse_amount
from billing.models import ApprovalLimit, ApprovalRequest, ApprovalState
from billing.services.approvals import approval_decisions, approval_limits
from billing.services.approvals.approval_gate import describe_amount
from billing.services.approvals.approval_links import read_decision
from tenants.models import Tenant
from tenants.services.authentication import require
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from web.http.middleware import set_rejection_reason
from web.http.query_strings import LinkOption, chosen_value, state_tabs
from web.portal import api_examples
from web.portal.actions import ListPage, list_page, outcome_message
from web.portal.page_context import POST, PageRequest, tenant_page

HOUR_S, MILLI, MAX_TEXT = 3600, 1000, 20


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """A request for approval with its amounts in words."""

    request: ApprovalRequest

    @property
    def cost(self) -> Money:
        return Money(self.request.cost_minor, self.request.currency)

    @property
    def gpus(self) -> str:
        return describe_amount(Measure.GPUS, self.request.milli_gpus, self.request.currency)

    @property
    def duration(self) -> str:
        return describe_amount(Measure.DURATION, self.request.duration_s, self.request.currency)

    @property
    def more(self) -> str:
        """Return by how long an extension extends."""
        return describe_amount(Measure.DURATION, self.request.more_s or 0, self.request.currency)

    @property
    def units(self) -> int:
        return self.request.quantity * self.request.array_size

    @property
    def waits_for(self) -> str:
        """Return who has to decide, in words."""
        words = {Approver.TENANT: _("an owner"), Approver.OPERATOR: _("an operator")}
        return _(" and ").join(words[each] for each in Approver if self.request.waits_for(each))


@dataclass(frozen=True, slots=True)
class LimitFields:
    """Limits as a form shows them."""

    max_cost: str
    max_gpus: str
    max_hours: str
    currency: str

    @property
    def is_empty(self) -> bool:
        return not (self.max_cost or self.max_gpus or self.max_hours)


@dataclass(frozen=True, slots=True)
class ApprovalListPage:
    """The requests of the visible projects, and the tenant's limits."""

    listed: ListPage  # of ApprovalRow
    waits: bool
    tabs: list[LinkOption]
    own: LimitFields
    by_operators: LimitFields
    may_set: bool
    call: str


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    """One request, and what the visitor may do about it."""

    row: ApprovalRow
    may_decide: bool
    may_withdraw: bool
    offered: str  # the decision that the visitor's link offers
    link_expired: bool
    error: str
    call: str


@tenant_page("approvals.read")
def list_approvals(request: PageRequest) -> HttpResponse:
    """List what waits for approval, or all requests."""
    return render(request, "approvals/approvals.html", {"page": build_approval_list_page(request)})


@tenant_page("approvals.write", methods=POST)
def set_approval_limits(request: PageRequest) -> HttpResponse:
    """Set the tenant's limits."""
    require(request.roles, "approvals.write")
    with outcome_message(request, done=_("Limits saved.")):
        wanted = parse_limits(request.POST, request.tenant, Approver.TENANT)
        approval_limits.set_limits(request.tenant, wanted, actor=request.actor, now=request.now)
    return redirect("approvals")


@tenant_page("approvals.read")
def show_approval(request: PageRequest, pk: str) -> HttpResponse:
    """Show a request, with what the visitor may do about it."""
    return render_approval(request, find_approval(request, pk))


@tenant_page("approvals.read", methods=POST)
def decide_approval(request: PageRequest, pk: str) -> HttpResponse:
    """Approve or decline a request; a refusal is shown on its page."""
    found = find_approval(request, pk)
    require(request.roles, "approvals.write", found.project.path)
    return apply_and_show(request, found, decide)


@tenant_page("approvals.read", methods=POST)
def withdraw_approval(request: PageRequest, pk: str) -> HttpResponse:
    """Withdraw a request; only whoever asked can."""
    found = find_approval(request, pk)
    require(request.roles, "leases.write", found.project.path)
    return apply_and_show(request, found, withdraw)


def apply_and_show(
    request: PageRequest, found: ApprovalRequest, act: Callable[[PageRequest, ApprovalRequest], str]
) -> HttpResponse:
    try:
        messages.success(request, act(request, found))
    except ProblemError as refusal:
        set_rejection_reason(request, refusal.detail)
        error = f"{refusal.detail} {refusal.fix.text}"
        return render_approval(request, find_approval(request, found.pk), error)
    return redirect("approval", pk=found.pk)


def withdraw(request: PageRequest, found: ApprovalRequest) -> str:
    approval_decisions.withdraw(found, actor=request.actor, now=request.now)
    return _("{name} was withdrawn.").format(name=found.name)


def decide(request: PageRequest, found: ApprovalRequest) -> str:
    """Apply the pressed button; return what it says once done."""
    by: dict[str, Any] = {"approver": Approver.TENANT, "actor": request.actor, "now": request.now}
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "")
    if verb == "approve":
        done = approval_decisions.approve(found, reason=reason, **by)
        if done.state == ApprovalState.WAITING:
            return _("{name} is approved by your tenant and waits for an operator.").format(name=done.name)
        return _("{name} is approved and was requested. It is charged once active.").format(name=done.name)
    if verb == "decline":
        approval_decisions.decline(found, reason=reason, **by)
        return _("{name} was declined.").format(name=found.name)
    raise InvalidValue("do", _("This action does not exist."), fix=_("Reload the page."))


def render_approval(request: PageRequest, found: ApprovalRequest, error: str = "") -> HttpResponse:
    page = build_approval_page(request, found, error)
    return render(request, "approvals/approval.html", {"page": page}, status=409 if error else 200)


def visible_approvals(request: PageRequest) -> QuerySet[ApprovalRequest]:
    """Return the requests of the open project and those below."""
    rows = ApprovalRequest.objects.filter(tenant=request.tenant).select_related("project__tenant", "offering")
    return rows if request.scope.whole else rows.filter(project__in=request.scope.projects().values("pk"))


def find_approval(request: PageRequest, pk: str) -> ApprovalRequest:
    """Return a request, or raise ObjectNotFound if the visitor may not see it."""
    rows = ApprovalRequest.objects.filter(tenant=request.tenant, pk=pk)
    found = rows.select_related("project__tenant", "offering").first()
    if found is None or not request.roles.may("approvals.read", found.project.path):
        raise ObjectNotFound(_("This request does not exist."), fix=_("Choose one from the list of approvals."))
    return found


def build_approval_list_page(request: PageRequest) -> ApprovalListPage:
    """Read the requests of the open project, and the limits."""
    waits = not chosen_value(request, "state", ["all"])
    rows = visible_approvals(request).order_by("-id")
    waiting = rows.filter(state=ApprovalState.WAITING)
    counts = {"": waiting.count(), "all": rows.count()}
    listed = list_page(request, waiting if waits else rows, count=counts["" if waits else "all"])
    return ApprovalListPage(
        listed=replace(listed, rows=[ApprovalRow(each) for each in listed.rows]),
        waits=waits,
        tabs=approval_tabs("approvals", counts, waits=waits),
        own=limit_fields(approval_limits.limits_of(request.tenant, Approver.TENANT)),
        by_operators=limit_fields(approval_limits.limits_of(request.tenant, Approver.OPERATOR)),
        may_set=request.roles.may("approvals.write"),
        call=api_examples.curl_get("/approval-requests?limit=500" + ("&state=waiting" if waits else "")),
    )


def build_approval_page(request: PageRequest, found: ApprovalRequest, error: str) -> ApprovalPage:
    offer = request.GET.get("offer", "")[:500]
    offered = read_decision(offer, found) if offer else ""
    return ApprovalPage(
        row=ApprovalRow(found),
        may_decide=found.waits_for(Approver.TENANT) and request.roles.may("approvals.write", found.project.path),
        may_withdraw=found.state == ApprovalState.WAITING and found.requested_by == request.actor.id,
        offered=offered,
        link_expired=bool(offer) and not offered,
        error=error,
        call=api_examples.curl_get(f"/approval-requests/{found.pk}"),
    )


def approval_tabs(page: str, counts: dict[str, int], *, waits: bool) -> list[LinkOption]:
    """Return the tabs of a list of requests: what waits, and all."""
    return state_tabs(reverse(page), [("", _("Waiting")), ("all", _("All"))], counts, "" if waits else "all")


def limit_fields(row: ApprovalLimit) -> LimitFields:
    """Return limits as a form shows them; empty where there is none."""
    minor, gpus, seconds = row.max_minor, row.max_milli_gpus, row.max_duration_s
    return LimitFields(
        max_cost="" if minor is None else format_fixed_point(minor, exponent_of(row.currency)),
        max_gpus="" if gpus is None else f"{gpus / MILLI:g}",
        max_hours="" if seconds is None else f"{seconds / HOUR_S:g}",
        currency=row.currency,
    )


def parse_limits(given: QueryDict, tenant: Tenant, approver: Approver) -> LaunchLimits:
    """Return the typed limits; an empty field is no limit."""
    cost = given.get("max_cost", "").strip()[:MAX_TEXT]
    try:
        minor = parse_amount(cost, tenant.currency) if cost else None
    except InvalidAmount as error:
        raise InvalidValue("max_cost", str(error), fix=_("Enter an amount such as 500.00, or nothing.")) from None
    return LaunchLimits(
        approver,
        minor,
        parse_number(given, "max_gpus", MILLI),
        parse_number(given, "max_hours", HOUR_S),
    )


def parse_number(given: QueryDict, name: str, factor: int) -> int | None:
    """Return a typed number as whole parts; None for an empty field."""
    text = given.get(name, "").strip()[:MAX_TEXT]
    if not text:
        return None
    try:
        number = Decimal(text) * factor
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0 or number != number.to_integral_value():
        raise InvalidValue(name, _("This is not a number such as 8 or 0.5."), fix=_("Enter a number, or nothing."))
    return int(number)
