"""The audit trail: one row with its actor for every change, in the transaction of the change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.backends.postgresql.psycopg_any import Jsonb

from ports import database
from tenants.models.audit import AuditEvent
from tenants.models.keys import audit_id
from tenants.services.actors import Actor

# By hand, for it stands in every request that changes something: the ORM would take twice as long.
ADD = """
INSERT INTO tenants_auditevent (id, tenant_id, at, actor_kind, actor_id, actor_label, action,
                                subject_id, subject_label, detail, request_id)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
ADD_EACH = """
INSERT INTO tenants_auditevent (id, tenant_id, at, actor_kind, actor_id, actor_label, action,
                                subject_id, subject_label, detail, request_id)
SELECT e.id, e.tenant_id, %s, %s, %s, %s, %s, e.subject_id, e.subject_label, e.detail, %s
  FROM jsonb_to_recordset(%s) AS e (id text, tenant_id text, subject_id text, subject_label text, detail jsonb)
"""
LONGEST_LABEL = 254


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
    who = (actor.kind, actor.id, actor.label)
    subject = (subject_id, subject_label[:LONGEST_LABEL])
    with database.prepared() as cursor:
        row = (audit_id(), tenant_id, now, *who, action, *subject, Jsonb(detail), actor.request_id)
        cursor.execute(ADD, row)


@dataclass(frozen=True, slots=True)
class Subject:
    """What something was done to, whose it is, and what is worth keeping of it."""

    tenant_id: str
    id: str
    label: str
    detail: Mapping[str, Any]


def record_each(action: str, subjects: Iterable[Subject], *, actor: Actor, now: datetime) -> None:
    """Write that the same was done to each of these."""
    told = [
        {
            "id": audit_id(),
            "tenant_id": each.tenant_id,
            "subject_id": each.id,
            "subject_label": each.label[:LONGEST_LABEL],
            "detail": dict(each.detail),
        }
        for each in subjects
    ]
    who = (actor.kind, actor.id, actor.label)
    with connection.cursor() as cursor:
        cursor.execute(ADD_EACH, (now, *who, action, actor.request_id, Jsonb(told)))


def noted(action: str, *, actor: Actor, since: datetime) -> bool:
    """Tell whether an actor has done this to the installation since then; must run as staff."""
    lately = AuditEvent.objects.filter(tenant_id="", at__gt=since, actor_id=actor.id, action=action)
    return lately.exists()
