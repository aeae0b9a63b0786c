"""Launches that need approval: a gate's refusal, and the request of a schedule."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.utils.module_loading import import_string

from tenants.models import Project
from tenants.services.actors import Actor
from tenants.services.errors import Fix, ProblemError

if TYPE_CHECKING:
    from broker.services.leases.lease_requests import LeaseRequest

    ApprovalRequester = Callable[..., str]


class ApprovalRequired(ProblemError):
    """A launch, extension or start exceeds a limit; somebody must approve it first."""

    code, status, title = "approval-required", 409, "This needs approval"

    def __init__(self, detail: str, *, measured: object, **extra: object) -> None:
        fix = Fix("Request approval; it starts once it is approved.", "POST", "/api/v1/approval-requests")
        super().__init__(detail, fix=fix, **extra)
        self.measured = measured  # what the gate measured, for whoever stores the request


def request_scheduled_approval(
    wanted: "LeaseRequest", needed: ApprovalRequired, *, project: Project, actor: Actor, now: datetime
) -> str:
    """Request approval of a scheduled launch; return the request's id.

    The setting APPROVAL_REQUESTER names the function, since what is approved is money.
    """
    request = cast("ApprovalRequester", import_string(settings.APPROVAL_REQUESTER))
    return request(wanted, needed, project=project, actor=actor, now=now)
