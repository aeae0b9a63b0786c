"""Audit records about an invoice's money."""

from datetime import datetime

from billing.models import Invoice
from tenants.services import audit
from tenants.services.actors import Actor


def record_invoice_event(action: str, invoice: Invoice, *, actor: Actor, now: datetime, **detail: object) -> None:
    """Write an event about an invoice's money to the audit log."""
    audit.record(action, invoice, actor=actor, now=now, amount=invoice.to_pay, currency=invoice.currency, **detail)
