"""Audit log: one row with its actor per change, in the same transaction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.backends.postgresql.psycopg_any import Jsonb
from django.db.models import Model

from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models.audit import AuditEvent
from tenants.models.default_ids import audit_id
from tenants.models.tenants import Tenant, TenantOwned
from tenants.services.actors import Actor

MAX_LABEL_LENGTH = 254


def record(
    action: str,
    subject: Model | str = "",
    label: str | None = None,
    tenant_id: str = "",
    /,
    *,
    actor: Actor,
    now: datetime,
    **detail: Any,
) -> None:
    """Record a change of a row and its actor.

    `subject` is the row, or the id of what has none. By default the label is the row's text, and the tenant
    the row's. `detail` holds plain JSON values, such as the values before and after.
    """
    if isinstance(subject, Tenant):
        tenant_id = tenant_id or subject.pk
    elif isinstance(subject, TenantOwned):
        tenant_id = tenant_id or subject.tenant_id
    subject_id = subject.pk if isinstance(subject, Model) else subject
    who = (actor.kind, actor.id, actor.label)
    about = (subject_id, (str(subject) if label is None else label)[:MAX_LABEL_LENGTH])
    with sql_statements.prepared_cursor() as cursor:
        row = (audit_id(), tenant_id, now, *who, action, *about, Jsonb(detail), actor.request_id)
        cursor.execute(load_sql("tenants/audit/insert_event"), row)


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """Object of an audited change: its tenant, id, label and detail."""

    tenant_id: str
    id: str
    label: str
    detail: Mapping[str, Any]


def record_each(action: str, subjects: Iterable[AuditSubject], *, actor: Actor, now: datetime) -> None:
    """Record the same change of several subjects."""
    rows = [
        {
            "id": audit_id(),
            "tenant_id": each.tenant_id,
            "subject_id": each.id,
            "subject_label": each.label[:MAX_LABEL_LENGTH],
            "detail": dict(each.detail),
        }
        for each in subjects
    ]
    who = (actor.kind, actor.id, actor.label)
    with connection.cursor() as cursor:
        cursor.execute(load_sql("tenants/audit/insert_events"), (now, *who, action, actor.request_id, Jsonb(rows)))


def was_recorded(action: str, *, actor: Actor, since: datetime) -> bool:
    """Return whether an operator's action was audited since then; must run as staff."""
    lately = AuditEvent.objects.filter(tenant_id="", at__gt=since, actor_id=actor.id, action=action)
    return lately.exists()
