"""The audit trail: one row with its actor for every change, in the transaction of the change."""

from datetime import datetime
from typing import Any

from tenants.models import AuditEvent
from tenants.services.actors import Actor


def record(
    action: str,
    *,
    actor: Actor,
    now: datetime,
    tenant_id: str = "",
    subject_id: str = "",
    subject_label: str = "",
    **detail: Any,
) -> None:
    """Write what was done, by whom; `detail` holds plain JSON values such as before and after."""
    AuditEvent.objects.create(
        tenant_id=tenant_id,
        at=now,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_label=actor.label,
        action=action,
        subject_id=subject_id,
        subject_label=subject_label[:254],
        detail=detail,
        request_id=actor.request_id,
    )


def noted(action: str, *, actor: Actor, since: datetime) -> bool:
    """Tell whether an actor has done this to the installation since then; must run as staff."""
    return AuditEvent.objects.filter(tenant_id="", at__gt=since, actor_id=actor.id, action=action).exists()
