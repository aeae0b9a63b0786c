"""Which letter is written by whom."""

from collections.abc import Callable
from datetime import datetime

from billing.models import Letter, Unsent
from billing.services.post import budgets, invoices
from billing.services.post.written import Written

Writer = Callable[[Letter, datetime], Written | None]
OF_BUDGETS: dict[str, Writer] = {
    "budget-alert": budgets.alert,
    "budget-stop": budgets.stop,
    "budget-stop-off": budgets.called_off,
    "budget-stopped": budgets.stopped,
    "budget-removed": budgets.removed,
}
OF_INVOICES: dict[str, Writer] = {
    "invoice-final": invoices.final,
    "invoice-paid": invoices.paid,
    "payment-failed": invoices.failed,
    "credit-note": invoices.credited,
}
WRITERS = {**OF_BUDGETS, **OF_INVOICES}


def compose(letter: Letter, *, now: datetime) -> Written | Unsent:
    """Write a letter from the rows that it is about, behind its tenant's wall, or say why there is none to send."""
    writer = WRITERS[letter.kind]
    if letter.kind in OF_INVOICES and not invoices.wanted(letter.tenant_id):
        return Unsent.UNWANTED
    written = writer(letter, now)
    if written is None:
        return Unsent.OVERTAKEN
    return written if written.to else Unsent.NOBODY
