"""Tax of bad debts: write-offs lower it, later money raises it.

In Germany by § 17 UStG. Amounts are rounded half up; parts by what they add up to, so that all of them are
exactly the tax that was written off.
"""

from django.db.models import Sum

from billing.domain.money import half_up
from billing.models import BankReceiptPart, Invoice, WriteOff


def tax_in_due(invoice: Invoice) -> int:
    """Return the tax in what is due on an invoice; minor units.

    Due is the same share of what credit notes left of the invoice and of its tax.
    """
    notes = invoice.credit_notes.aggregate(total=Sum("total", default=0), tax=Sum("tax", default=0))
    left: int = invoice.total - notes["total"]
    return half_up((invoice.tax - notes["tax"]) * invoice.due, left) if left > 0 else 0


def recovered_tax(written: WriteOff, invoice: Invoice, minor: int) -> int:
    """Return the tax in money received after the write-off of a locked invoice."""
    before = written.minor - (invoice.to_pay - invoice.received)
    wanted = half_up(written.tax * (before + minor), written.minor) - _recovered_so_far(written)
    return max(min(wanted, minor), 0)


def tax_still_corrected(written: WriteOff, left: int) -> int:
    """Return the tax that is owed again if the write-off is undone."""
    return max(min(written.tax - _recovered_so_far(written), left), 0)


def _recovered_so_far(written: WriteOff) -> int:
    parts = BankReceiptPart.objects.filter(
        invoice=written.invoice_id, recovered=True, at__gte=written.at, receipt__reversed_at=None
    )
    recovered: int = parts.aggregate(tax=Sum("recovered_tax", default=0))["tax"]
    return recovered
