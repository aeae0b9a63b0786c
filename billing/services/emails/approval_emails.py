"""E-mails about approvals: to those who approve, and to whoever asked."""

from datetime import datetime

from django.db.models import Q

from billing.domain.approvals import Approver, Measure
from billing.models import ApprovalKind, ApprovalRequest, ApprovalState, QueuedEmail
from billing.services.approvals.approval_gate import describe_amount
from billing.services.approvals.approval_links import APPROVE, DECLINE, sign_decision
from billing.services.notifications.email_message import OutgoingEmail, format_local_time, portal_link
from tenants.domain.roles import ALLOWED, Role
from tenants.models import Member, User

VERBS = {
    ApprovalKind.LAUNCH.value: "launch",
    ApprovalKind.EXTENSION.value: "extend",
    ApprovalKind.START.value: "start",
}
ASKED = """{who} wants to {verb} {what} in {project}:

{sizes}
{note}
It waits for your approval until {until} and is not charged before.

Approve it. The link opens a page that shows it again and asks before it launches:
{approve}

Decline it:
{decline}
"""
DECIDED = """{what}, which you asked for on {when}, was {outcome}.
{reason}
{link}
"""
OUTCOMES = {
    ApprovalState.APPROVED.value: "approved and started by {who}",
    ApprovalState.DECLINED.value: "declined by {who}",
    ApprovalState.EXPIRED.value: "not decided in time and has expired",
}
APPROVING_ROLES = [role for role in Role if "approvals.write" in ALLOWED[role]]


def write_approval_asked(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail to those of the tenant who approve."""
    request = _find(email)
    if not request.waits_for(Approver.TENANT) or request.expires_at <= now:
        return None
    return _write_asked(request, _tenant_approvers(request), "approvals")


def write_operator_asked(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail to the operators."""
    request = _find(email)
    if not request.waits_for(Approver.OPERATOR) or request.expires_at <= now:
        return None
    operators = User.objects.filter(is_staff=True, is_active=True).order_by("email")
    return _write_asked(request, list(operators.values_list("email", flat=True)), "ops/approvals")


def write_approval_decided(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail to whoever asked.

    None for what was withdrawn, or asked for by a program.
    """
    request = _find(email)
    if request.state not in OUTCOMES:
        return None
    members = Member.objects.filter(tenant=request.tenant_id, user=request.requested_by, user__is_active=True)
    to = sorted(set(members.values_list("user__email", flat=True)))
    if not to:
        return None
    outcome = OUTCOMES[request.state].format(who=request.decided_by)
    zone = request.project.tenant.time_zone
    return OutgoingEmail(
        to,
        f"{request.name} was {outcome}",
        DECIDED.format(
            what=_describe(request),
            when=format_local_time(request.created_at, zone),
            outcome=outcome,
            reason=f"Reason: {request.reason}\n" if request.reason else "",
            link=_result_link(request),
        ),
    )


def _write_asked(request: ApprovalRequest, to: list[str], pages: str) -> OutgoingEmail:
    tenant, page = request.project.tenant, portal_link(f"{pages}/{request.pk}/")
    sizes = [
        f"At most {describe_amount(Measure.MONEY, request.cost_minor, request.currency)} before tax",
        describe_amount(Measure.GPUS, request.milli_gpus, request.currency),
        f"{describe_amount(Measure.DURATION, request.duration_s, request.currency)} each",
    ]
    return OutgoingEmail(
        to,
        f"Approval needed: {request.name}, {sizes[0].lower()}",
        ASKED.format(
            who=request.requested_by_label,
            verb=VERBS[request.kind],
            what=_describe(request),
            project=f"{request.project.name} of {tenant.name}",
            sizes="\n".join(f"- {size}" for size in sizes),
            note=f"\nNote: {request.note}\n" if request.note else "",
            until=format_local_time(request.expires_at, tenant.time_zone),
            approve=f"{page}?offer={sign_decision(request, APPROVE)}",
            decline=f"{page}?offer={sign_decision(request, DECLINE)}",
        ),
    )


def _describe(request: ApprovalRequest) -> str:
    many = request.quantity * request.array_size
    return f"{request.name} ({f'{many} × ' if many > 1 else ''}{request.offering.label})"


def _result_link(request: ApprovalRequest) -> str:
    if request.state == ApprovalState.APPROVED and request.array_id:
        return portal_link(f"lease-arrays/{request.array_id}/")
    if request.state == ApprovalState.APPROVED and request.lease_id:
        return portal_link(f"leases/{request.lease_id}/")
    return portal_link(f"approvals/{request.pk}/")


def _tenant_approvers(request: ApprovalRequest) -> list[str]:
    """Return the addresses of those who may approve in the request's project."""
    there = Q(project=None) | Q(project__in=request.project.path)
    members = Member.objects.filter(there, tenant=request.tenant_id, role__in=APPROVING_ROLES, user__is_active=True)
    return sorted(set(members.values_list("user__email", flat=True)))


def _find(email: QueuedEmail) -> ApprovalRequest:
    return ApprovalRequest.objects.select_related("project__tenant", "offering").get(pk=email.subject_id)
