"""Lease requests as they are stored while they wait for approval."""

from dataclasses import fields
from datetime import datetime
from typing import Any

from billing.models import ApprovalRequest, ApprovalState
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.secrets import variable_encryption
from tenants.services.rls import system_scope, tenant_scope

# A quote has expired by then: approval makes another, at most as expensive as what was asked for.
NOT_STORED = {"template", "quote", "approval", "array", "array_index"}
STORED = [each.name for each in fields(LeaseRequest) if each.name not in NOT_STORED]
MOMENTS = ("starts_at", "end_date")


def store_launch(wanted: LeaseRequest, *, owner_id: str) -> dict[str, Any]:
    """Return a request as JSON; its variables are encrypted."""
    values = {name: getattr(wanted, name) for name in STORED}
    stored: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    for name, moment in (("starts_at", wanted.starts_at), ("end_date", wanted.end_date)):
        stored[name] = moment.isoformat() if moment else None
    stored["secrets"] = dict(wanted.secrets)
    stored["env"] = variable_encryption.encrypt_variables(wanted.env, owner_id=owner_id)
    return stored


def load_launch(request: ApprovalRequest, *, now: datetime) -> LeaseRequest:
    """Return the stored request; a start that has passed meanwhile is now."""
    stored = dict(request.request)
    for name in MOMENTS:
        stored[name] = datetime.fromisoformat(stored[name]) if stored[name] else None
    if stored["starts_at"] and stored["starts_at"] <= now:
        stored["starts_at"] = None
    stored["env"] = variable_encryption.decrypt_variables(stored["env"], owner_id=request.pk)
    return LeaseRequest(**stored)


def forget_variables(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a stored request without the values of its variables.

    Its launch has them.
    """
    return {**stored, "env": dict.fromkeys(stored["env"], "")} if stored.get("env") else stored


def reencrypt_launches() -> int:
    """Encrypt the variables of waiting launches with the newest key, and return how many.

    Those of decided ones, which were kept before, are forgotten.
    """
    with system_scope():
        rows = ApprovalRequest.objects.exclude(request={}).exclude(request__env={}).order_by("pk")
        found = list(rows.values_list("pk", "tenant_id"))
    waiting = 0
    for request_id, tenant_id in found:
        with tenant_scope(tenant_id):
            row = ApprovalRequest.objects.select_for_update(of=("self",)).get(pk=request_id)
            stored = forget_variables(row.request)
            if row.state == ApprovalState.WAITING:
                env = variable_encryption.reencrypt_variables(row.request["env"], owner_id=row.pk)
                stored, waiting = {**row.request, "env": env}, waiting + 1
            ApprovalRequest.objects.filter(pk=row.pk).update(request=stored)
    return waiting
