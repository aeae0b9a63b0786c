"""Decisions about requests for approval: approve, decline, withdraw, expire.

Once everybody it needs has approved, it is launched as whoever asked, with the price checked again.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, transaction
from django.db.models import F

from billing.domain.approvals import Approver
from billing.domain.money import Money
from billing.models import ApprovalKind, ApprovalRequest, ApprovalState
from billing.models.approvals import MAX_REASON_LENGTH
from billing.services.approvals.approval_gate import MeasuredLaunch
from billing.services.approvals.approval_requests import ASKED_EMAILS, DECIDED_EMAIL, record_event
from billing.services.approvals.stored_launches import forget_variables, load_launch
from billing.services.catalogue import price_list
from billing.services.notifications import email_queue
from billing.services.quotes import quote_answers
from broker.models import Lease
from broker.services.leases import lease_arrays, lease_requests
from broker.services.leases.launch_approvals import ApprovalRequired
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle import extension, stop_and_start
from broker.services.secrets.variable_encryption import VariableUnreadable
from tenants.services import authentication
from tenants.services.actor_grants import current_grants
from tenants.services.actors import BILLING, Actor
from tenants.services.errors import InvalidValue, NotAllowed, ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
BATCH = 200
DECLINE_IT = "Decline it, or have it requested again."


class ApprovalClosed(ProblemError):
    code, status, title = "approval-closed", 409, "This request was decided already"


class NotRequester(ProblemError):
    code, status, title = "not-requester", 409, "Somebody else asked for this"


class ApprovalOutdated(ProblemError):
    """It may come to more than what was approved."""

    code, status, title = "approval-outdated", 409, "It would now cost more than was asked for"


@transaction.atomic
def approve(
    request: ApprovalRequest, *, approver: Approver, actor: Actor, now: datetime, reason: str = ""
) -> ApprovalRequest:
    """Approve a request; once nobody's approval is missing, launch it.

    Raises ApprovalClosed, ApprovalOutdated if it may cost more now, or whatever else refuses the launch; the request
    then waits on. The caller has checked that the actor may approve.
    """
    with tenant_scope(request.tenant_id):
        row = _lock_waiting(request, approver, now)
        side = approver.value
        setattr(row, f"{side}_approved_at", now)
        setattr(row, f"{side}_approved_by", actor.label)
        row.reason = _clean(reason)
        missing = next((each for each in Approver if row.waits_for(each)), None)
        if missing is not None:
            _save(row)
            email_queue.enqueue_email(ASKED_EMAILS[missing], row.pk, tenant_id=row.tenant_id, now=now)
            record_event("approval.approve", row, actor=actor, now=now, reason=row.reason, waits_for=missing.value)
            return row
        row.state, row.decided_at, row.decided_by = ApprovalState.APPROVED, now, actor.label
        _save(row)
        _launch(row, now)
        email_queue.enqueue_email(DECIDED_EMAIL, row.pk, tenant_id=row.tenant_id, now=now)
        record_event("approval.approve", row, actor=actor, now=now, reason=row.reason, **_result(row))
    return row


@transaction.atomic
def decline(
    request: ApprovalRequest, *, approver: Approver, actor: Actor, now: datetime, reason: str
) -> ApprovalRequest:
    """Decline a request for a reason that whoever asked reads."""
    why = _clean(reason)
    if not why:
        raise InvalidValue("reason", "A reason is missing.", fix="Say why, for whoever asked.")
    with tenant_scope(request.tenant_id):
        row = _lock_waiting(request, approver, now)
        _close(row, ApprovalState.DECLINED, "approval.decline", actor=actor, now=now, reason=why)
    return row


@transaction.atomic
def withdraw(request: ApprovalRequest, *, actor: Actor, now: datetime) -> ApprovalRequest:
    """Withdraw a request that waits; only whoever asked does this."""
    if actor.id != request.requested_by:
        raise NotRequester("Only whoever asked can withdraw a request.", fix="Decline it instead, if you may.")
    row = _lock_waiting(request, None, now)
    row.state, row.decided_at, row.decided_by = ApprovalState.WITHDRAWN, now, actor.label
    row.request = forget_variables(row.request)
    _save(row)
    record_event("approval.withdraw", row, actor=actor, now=now)
    return row


def expire_due(*, now: datetime) -> int:
    """Expire the requests that nobody decided in time; return how many."""
    with system_scope():
        due = ApprovalRequest.objects.filter(state=ApprovalState.WAITING, expires_at__lte=now)
        found = list(due.order_by("expires_at", "pk").values_list("pk", "tenant_id")[:BATCH])
    expired = 0
    for request_id, tenant_id in found:
        try:
            with tenant_scope(tenant_id):
                rows = ApprovalRequest.objects.select_for_update(skip_locked=True)
                row = rows.filter(pk=request_id, state=ApprovalState.WAITING).first()
                if row is not None:
                    _close(row, ApprovalState.EXPIRED, "approval.expire", actor=BILLING, now=now)
                    expired += 1
        except DatabaseError as error:  # one unexpected row must not stop the others
            log.error("approval not expired", request=request_id, exc_info=error)
    return expired


def _lock_waiting(request: ApprovalRequest, approver: Approver | None, now: datetime) -> ApprovalRequest:
    """Return the locked request, or raise ApprovalClosed.

    It is closed if it waits for no decision of the approver.
    """
    rows = ApprovalRequest.objects.select_for_update(of=("self",)).select_related("project__tenant", "offering")
    row = rows.get(pk=request.pk)
    if row.state != ApprovalState.WAITING or row.expires_at <= now:
        state = "expired" if row.state == ApprovalState.WAITING else row.state
        raise ApprovalClosed(f"{row.name} is {state}.", fix="Reload it; it can be requested again.")
    if approver is not None and not row.waits_for(approver):
        raise ApprovalClosed(
            f"{row.name} does not wait for {'an owner' if approver is Approver.TENANT else 'an operator'}.",
            fix="Reload it; others may have to decide.",
        )
    return row


def _close(
    row: ApprovalRequest, state: ApprovalState, action: str, *, actor: Actor, now: datetime, reason: str = ""
) -> None:
    row.state, row.decided_at, row.decided_by, row.reason = state, now, actor.label, reason
    row.request = forget_variables(row.request)
    _save(row)
    email_queue.enqueue_email(DECIDED_EMAIL, row.pk, tenant_id=row.tenant_id, now=now)
    record_event(action, row, actor=actor, now=now, **({"reason": reason} if reason else {}))


def _save(row: ApprovalRequest) -> None:
    row.version = F("version") + 1
    row.save()
    row.refresh_from_db(fields=["version"])


def _launch(row: ApprovalRequest, now: datetime) -> None:
    """Do what was asked for, as whoever asked, if they still may."""
    actor = Actor(row.requested_by_kind, row.requested_by, row.requested_by_label, token=row.requested_with_token)
    authentication.require_not_suspended(row.project.tenant)
    if not current_grants(actor, tenant_id=row.tenant_id, now=now).may("leases.write", row.project.path):
        raise NotAllowed(
            f"{actor.label} may no longer launch in {row.project.name}, or the token of the request is gone.",
            fix=DECLINE_IT,
        )
    try:
        row.lease, row.array = _act(row, actor, now)
    except ApprovalRequired as beyond:
        raise _outdated(row, beyond) from None
    except VariableUnreadable as error:
        raise ApprovalOutdated(f"{error}.", fix=DECLINE_IT) from None
    row.request = forget_variables(row.request)
    row.save(update_fields=["lease", "array", "request"])


def _act(row: ApprovalRequest, actor: Actor, now: datetime) -> tuple[Lease | None, Any]:
    by: dict[str, Any] = {"actor": actor, "now": now}
    if row.kind == ApprovalKind.LAUNCH:
        wanted = load_launch(row, now=now)
        if row.array_size > 1:
            approved = replace(wanted, approval=row.pk)
            return None, lease_arrays.request_array(approved, size=row.array_size, project=row.project, **by)
        approved = replace(wanted, approval=row.pk, quote=_fresh_quote(wanted, row, actor, now))
        return lease_requests.request_lease(approved, project=row.project, **by), None
    lease = Lease.objects.select_related("offering", "project").get(pk=row.lease_id)
    if row.kind == ApprovalKind.EXTENSION:
        return extension.extend_lease(lease, more_s=row.more_s or 0, **by), None
    return stop_and_start.start_lease(lease, **by), None


def _fresh_quote(wanted: LeaseRequest, row: ApprovalRequest, actor: Actor, now: datetime) -> str:
    """Return a quote of the present price, or nothing where quotes are off."""
    tenant = row.project.tenant
    found = price_list.prices_at(now, currency=tenant.currency, offerings=[row.offering_id], tenant=tenant.pk)
    lease = lease_requests.build_lease(wanted, project=row.project, actor=actor, now=now)
    offer = quote_answers.offer_price(lease, found.get(row.offering_id), now=now)
    return offer.sealed if offer else ""


def _outdated(row: ApprovalRequest, beyond: ApprovalRequired) -> ProblemError:
    measured = beyond.measured
    if isinstance(measured, MeasuredLaunch) and measured.size.cost_minor > row.cost_minor:
        now_most = Money(measured.size.cost_minor, measured.currency)
        return ApprovalOutdated(
            f"{row.name} may now cost {now_most}; {Money(row.cost_minor, row.currency)} was asked for.",
            fix=DECLINE_IT,
        )
    return ApprovalOutdated(f"{beyond.detail} That was not asked for.", fix=DECLINE_IT)


def _result(row: ApprovalRequest) -> dict[str, str]:
    return {"lease": row.lease_id} if row.lease_id else {"array": row.array_id or ""}


def _clean(reason: str) -> str:
    text = " ".join(reason.split())
    if len(text) > MAX_REASON_LENGTH:
        raise InvalidValue("reason", f"A reason has at most {MAX_REASON_LENGTH} characters.", fix="Shorten it.")
    return text
