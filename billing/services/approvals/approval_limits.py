"""Limits above which launches need approval, set by a tenant's owners or by operators."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import F

from billing.domain.approvals import Approver, LaunchLimits
from billing.domain.money import MAX_MINOR
from billing.models import ApprovalLimit
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope

MAX_MILLI_GPUS, MAX_DURATION_S = 10**9, 10**9
FIELDS = ("max_minor", "max_milli_gpus", "max_duration_s")


def limits_of(tenant: Tenant, approver: Approver) -> ApprovalLimit:
    """Return the limits that an approver has set; an unsaved row without limits if none."""
    found = ApprovalLimit.objects.filter(tenant=tenant, set_by=approver.value).first()
    return found or ApprovalLimit(tenant=tenant, set_by=approver.value, currency=tenant.currency, version=0)


@transaction.atomic
def set_limits(tenant: Tenant, wanted: LaunchLimits, *, actor: Actor, now: datetime) -> ApprovalLimit:
    """Set the limits of one approver; what waits already keeps waiting."""
    _check(wanted)
    with tenant_scope(tenant.pk):
        ApprovalLimit.objects.get_or_create(
            tenant=tenant,
            set_by=wanted.approver.value,
            defaults={"currency": tenant.currency, "set_at": now, "set_by_label": actor.label, "version": 0},
        )
        row = ApprovalLimit.objects.select_for_update().get(tenant=tenant, set_by=wanted.approver.value)
        after = {name: getattr(wanted, name) for name in FIELDS}
        before = {name: getattr(row, name) for name in FIELDS}
        if before == after and row.version:
            return row
        ApprovalLimit.objects.filter(pk=row.pk).update(
            **after, currency=tenant.currency, set_at=now, set_by_label=actor.label, version=F("version") + 1
        )
        row.refresh_from_db()
        label = f"launches of {tenant.name}"
        audit.record(
            "approval_limits.set",
            tenant,
            label,
            actor=actor,
            now=now,
            by=row.set_by,
            currency=tenant.currency,
            before=_audited(before),
            after=_audited(after),
        )
    return row


def _audited(limits: Mapping[str, int | None]) -> dict[str, object]:
    """Return limits as the audit log shows them."""
    gpus = limits["max_milli_gpus"]
    return {
        "amount": limits["max_minor"],
        "gpus": None if gpus is None else f"{gpus / 1000:g}",
        "duration_s": limits["max_duration_s"],
    }


def _check(wanted: LaunchLimits) -> None:
    most = {"max_minor": MAX_MINOR, "max_milli_gpus": MAX_MILLI_GPUS, "max_duration_s": MAX_DURATION_S}
    for name, highest in most.items():
        value = getattr(wanted, name)
        if value is not None and not 0 <= value <= highest:
            raise InvalidValue(
                {"max_minor": "max_cost", "max_milli_gpus": "max_gpus"}.get(name, name),
                "The limit is below zero or too large.",
                fix="Enter another limit, or none.",
            )
