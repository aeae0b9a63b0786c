"""Undelivered e-mails of all tenants that wait for a person; read as staff."""

from django.db.models import QuerySet

from billing.models import QueuedEmail
from billing.models.emails import NEEDS_ATTENTION


def undelivered_emails() -> QuerySet[QueuedEmail]:
    """Return the undelivered e-mails with their tenants, oldest first."""
    rows = QueuedEmail.objects.filter(undelivered_reason__in=NEEDS_ATTENTION).select_related("tenant")
    return rows.order_by("made_at", "pk")
