"""E-mail writers by kind of e-mail."""

from collections.abc import Callable
from datetime import datetime

from billing.models import QueuedEmail, UndeliveredReason
from billing.services.emails import approval_emails, budget_emails, invoice_emails, lease_emails
from billing.services.notifications.email_message import OutgoingEmail

EmailWriter = Callable[[QueuedEmail, datetime], OutgoingEmail | None]
BUDGET_EMAILS: dict[str, EmailWriter] = {
    "budget-alert": budget_emails.write_budget_alert,
    "budget-stop": budget_emails.write_stop_announcement,
    "budget-stop-off": budget_emails.write_stop_cancelled,
    "budget-stopped": budget_emails.write_leases_ended,
    "budget-removed": budget_emails.write_budget_removed,
}
INVOICE_EMAILS: dict[str, EmailWriter] = {
    "invoice-final": invoice_emails.write_invoice_finalized,
    "invoice-paid": invoice_emails.write_invoice_paid,
    "payment-failed": invoice_emails.write_payment_failed,
    "credit-note": invoice_emails.write_credit_note_issued,
}
LEASE_EMAILS: dict[str, EmailWriter] = {lease_emails.LEASE_NOTICE: lease_emails.write_lease_notice}
APPROVAL_EMAILS: dict[str, EmailWriter] = {
    "approval-asked": approval_emails.write_approval_asked,
    "approval-operator": approval_emails.write_operator_asked,
    "approval-decided": approval_emails.write_approval_decided,
}
EMAIL_WRITERS = {**APPROVAL_EMAILS, **BUDGET_EMAILS, **INVOICE_EMAILS, **LEASE_EMAILS}


def compose_email(email: QueuedEmail, *, now: datetime) -> OutgoingEmail | UndeliveredReason:
    """Write an e-mail from the rows it is about, or return why not.

    Runs in the tenant's row-level security scope.
    """
    writer = EMAIL_WRITERS[email.kind]
    if email.kind in INVOICE_EMAILS and not invoice_emails.wants_invoice_emails(email.tenant_id):
        return UndeliveredReason.UNWANTED
    written = writer(email, now)
    if written is None:
        return UndeliveredReason.OUTDATED
    return written if written.to else UndeliveredReason.NO_RECIPIENT
