"""Which letter is written by whom."""

from collections.abc import Callable
from datetime import datetime

from billing.models import Letter
from billing.services.post import budgets, invoices
from billing.services.post.written import Written

WRITERS: dict[str, Callable[[Letter, datetime], Written | None]] = {
    "budget-alert": budgets.alert,
    "budget-stop": budgets.stop,
    "budget-stop-off": budgets.called_off,
    "budget-stopped": budgets.stopped,
    "invoice-final": invoices.final,
    "invoice-paid": invoices.paid,
    "payment-failed": invoices.failed,
    "credit-note": invoices.credited,
}


def compose(letter: Letter, *, now: datetime) -> Written | None:
    """Write a letter from the rows that it is about, behind its tenant's wall; None where those are gone."""
    return WRITERS[letter.kind](letter, now)
