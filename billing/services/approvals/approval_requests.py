"""Requests for approval: opened by whoever launches, extends or starts above a limit."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from django.conf import settings
from django.db import transaction

from billing.domain.approvals import Approver
from billing.models import ApprovalKind, ApprovalRequest, ApprovalState
from billing.models.approvals import MAX_REASON_LENGTH
from billing.models.default_ids import approval_request_id
from billing.services.approvals.approval_gate import MeasuredLaunch
from billing.services.approvals.stored_launches import store_launch
from billing.services.notifications import email_queue
from broker.models import Lease
from broker.services.leases import lease_arrays, lease_requests
from broker.services.leases.launch_approvals import ApprovalRequired
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle import extension, stop_and_start
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import Fix, InvalidValue, ProblemError

ASKED_EMAILS = {Approver.TENANT: "approval-asked", Approver.OPERATOR: "approval-operator"}
DECIDED_EMAIL = "approval-decided"
MAX_WAITING = 100  # of a tenant


class ApprovalNotNeeded(ProblemError):
    code, status, title = "approval-not-needed", 409, "This needs no approval"


class TooManyApprovals(ProblemError):
    code, status, title = "too-many-approvals", 409, "Too many requests wait for approval"


@transaction.atomic
def request_launch(
    wanted: LeaseRequest, *, project: Project, actor: Actor, now: datetime, array_size: int = 1, note: str = ""
) -> ApprovalRequest:
    """Request approval of a launch that only its size keeps from being launched.

    Raises ApprovalNotNeeded, or whatever else refuses the launch.
    """
    by: Mapping[str, Any] = {"project": project, "actor": actor, "now": now}

    def launch() -> None:
        if array_size > 1:
            lease_arrays.request_array(wanted, size=array_size, **by)
        else:
            lease_requests.request_lease(wanted, **by)

    return open_launch_request(wanted, _why_needed(launch), array_size=array_size, note=note, **by)


def request_scheduled_launch(
    wanted: LeaseRequest, needed: ApprovalRequired, *, project: Project, actor: Actor, now: datetime
) -> str:
    """Request approval of a launch that a schedule was refused; return the request's id.

    The setting APPROVAL_REQUESTER names it.
    """
    return open_launch_request(wanted, needed, project=project, actor=actor, now=now, note="By a schedule").pk


@transaction.atomic
def open_launch_request(
    wanted: LeaseRequest,
    needed: ApprovalRequired,
    *,
    project: Project,
    actor: Actor,
    now: datetime,
    array_size: int = 1,
    note: str = "",
) -> ApprovalRequest:
    """Store a launch that was refused for its size, and ask its approvers."""
    found = lease_requests.send_offering_query(wanted.offering_id)()
    assert found is not None  # it was refused for nothing else
    request_id = approval_request_id()
    return _open(
        needed,
        pk=request_id,
        kind=ApprovalKind.LAUNCH,
        project=project,
        name=wanted.name.strip(),
        offering=found,
        quantity=wanted.quantity,
        array_size=array_size,
        request=store_launch(wanted, owner_id=request_id),
        note=note,
        actor=actor,
        now=now,
    )


@transaction.atomic
def request_extension(lease: Lease, *, more_s: int, actor: Actor, now: datetime, note: str = "") -> ApprovalRequest:
    """Request approval of an extension; raises ApprovalNotNeeded, or whatever else refuses it."""
    needed = _why_needed(lambda: extension.extend_lease(lease, more_s=more_s, actor=actor, now=now))
    return _open_of_lease(ApprovalKind.EXTENSION, lease, needed, more_s=more_s, actor=actor, now=now, note=note)


@transaction.atomic
def request_start(lease: Lease, *, actor: Actor, now: datetime, note: str = "") -> ApprovalRequest:
    """Request approval of starting a stopped lease; raises ApprovalNotNeeded, or whatever else refuses it."""
    needed = _why_needed(lambda: stop_and_start.start_lease(lease, actor=actor, now=now))
    return _open_of_lease(ApprovalKind.START, lease, needed, more_s=None, actor=actor, now=now, note=note)


def _why_needed(act: Callable[[], object]) -> ApprovalRequired:
    """Return why an act needs approval; it is tried and undone."""
    try:
        with transaction.atomic():
            act()
            raise ApprovalNotNeeded(
                "It exceeds no limit.", fix=Fix("Send it without asking.", "POST", "/api/v1/leases")
            )
    except ApprovalRequired as needed:
        return needed


def _open_of_lease(
    kind: ApprovalKind,
    lease: Lease,
    needed: ApprovalRequired,
    *,
    more_s: int | None,
    actor: Actor,
    now: datetime,
    note: str,
) -> ApprovalRequest:
    return _open(
        needed,
        pk=approval_request_id(),
        kind=kind,
        project=lease.project,
        name=lease.name,
        offering=lease.offering,
        quantity=lease.quantity,
        lease=lease,
        more_s=more_s,
        note=note,
        actor=actor,
        now=now,
    )


def _open(
    needed: ApprovalRequired, *, project: Project, note: str, actor: Actor, now: datetime, **row: Any
) -> ApprovalRequest:
    measured = cast(MeasuredLaunch, needed.measured)
    waiting = ApprovalRequest.objects.filter(tenant=project.tenant_id, state=ApprovalState.WAITING)
    if waiting.count() >= MAX_WAITING:
        raise TooManyApprovals(
            f"{MAX_WAITING} requests of this tenant wait for approval.", fix="Withdraw some, or have them decided."
        )
    if len(note) > MAX_REASON_LENGTH:
        raise InvalidValue("note", f"A note has at most {MAX_REASON_LENGTH} characters.", fix="Shorten it.")
    request = ApprovalRequest.objects.create(
        tenant_id=project.tenant_id,
        project=project,
        cost_minor=measured.size.cost_minor,
        currency=measured.currency,
        milli_gpus=measured.size.milli_gpus,
        duration_s=measured.size.duration_s,
        exceeded=[f"{each.approver}:{each.measure}" for each in measured.excesses],
        note=note.strip(),
        requested_by_kind=actor.kind,
        requested_by=actor.id,
        requested_by_label=actor.label,
        requested_with_token=actor.token,
        created_at=now,
        expires_at=now + timedelta(hours=settings.APPROVAL_TTL_HOURS),
        needs_tenant=Approver.TENANT in measured.approvers,
        needs_operator=Approver.OPERATOR in measured.approvers,
        **row,
    )
    first = Approver.TENANT if request.needs_tenant else Approver.OPERATOR
    email_queue.enqueue_email(ASKED_EMAILS[first], request.pk, tenant_id=request.tenant_id, now=now)
    record_event("approval.request", request, actor=actor, now=now, exceeded=request.exceeded)
    return request


def record_event(action: str, request: ApprovalRequest, *, actor: Actor, now: datetime, **detail: object) -> None:
    """Record an event of a request in the audit log."""
    about = {"kind": request.kind, "amount": request.cost_minor, "currency": request.currency}
    audit.record(action, request, request.name, actor=actor, now=now, project=request.project_id, **about, **detail)
