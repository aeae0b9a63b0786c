"""Undelivered e-mails of all tenants that wait for a person; read as staff."""

from dataclasses import dataclass

from billing.models import QueuedEmail
from billing.models.emails import NEEDS_ATTENTION
from billing.services.reports.pending_collections import first_rows


@dataclass(frozen=True, slots=True)
class UndeliveredEmails:
    unsent: tuple[QueuedEmail, ...]  # the oldest, with their tenants
    unsent_in_all: int


def find_undelivered_emails() -> UndeliveredEmails:
    """Return the undelivered e-mails; one query if there are few."""
    rows = QueuedEmail.objects.filter(undelivered_reason__in=NEEDS_ATTENTION).select_related("tenant")
    return UndeliveredEmails(*first_rows(rows.order_by("made_at", "pk")))
