"""What happened about a top-up, in the audit trail."""

from datetime import datetime

from billing.domain.money import Money
from billing.models import TopUp
from tenants.services import audit
from tenants.services.actors import Actor


def record(action: str, topup: TopUp, *, actor: Actor, now: datetime, **detail: object) -> None:
    """Write what happened about a top-up in the audit trail."""
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=topup.tenant_id,
        subject_id=topup.pk,
        subject_label=f"top-up of {Money(topup.minor, topup.currency)}",
        **({"automatic": True} if topup.automatic else {}),
        **detail,
    )
