"""Bank transfers and write-offs in the history of an invoice."""

from datetime import datetime

from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.models import BankReceiptPart, Invoice, WriteOff


def receipt_entries(invoice: Invoice) -> list[tuple[str, str, datetime]]:
    """Return what bank transfers paid of an invoice.

    And what was taken back or written off; two queries at most.
    """
    if not invoice.number:
        return []
    entries: list[tuple[str, str, datetime]] = []
    parts = BankReceiptPart.objects.filter(invoice=invoice).select_related("receipt")
    for part in parts:
        amount, receipt = Money(part.minor, invoice.currency), part.receipt
        text = _("{amount} received by bank transfer of {day:%d %b %Y}").format(amount=amount, day=receipt.received_on)
        entries.append(("paid", text, part.at))
        if receipt.reversed_at:
            text = _("{amount} by bank transfer taken back: {reason}").format(
                amount=amount, reason=receipt.reversal_reason
            )
            entries.append(("failed", text, receipt.reversed_at))
    for written in WriteOff.objects.filter(invoice=invoice):
        text = _("{amount} written off").format(amount=Money(written.minor, invoice.currency))
        entries.append(("uncollectible", text, written.at))
        if written.undone_at:
            text = _("{amount} due again").format(amount=Money(written.undone_minor, invoice.currency))
            entries.append(("finalized", text, written.undone_at))
    return entries
