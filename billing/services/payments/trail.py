"""What happened about an invoice's money, in the audit trail."""

from datetime import datetime

from billing.models import Invoice
from tenants.services import audit
from tenants.services.actors import Actor


def record(action: str, invoice: Invoice, *, actor: Actor, now: datetime, **detail: object) -> None:
    """Write what happened about an invoice's money in the audit trail."""
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=invoice.tenant_id,
        subject_id=invoice.pk,
        subject_label=str(invoice),
        amount=invoice.to_pay,
        currency=invoice.currency,
        **detail,
    )
