"""Charges of a cancelled invoice, as they were when it was cancelled.

Charges are append-only, and only corrections add to a month that was opened again. So what an invoice said
is its month's charges without the corrections that its stored bundle does not have.
"""

import json
import zlib

from billing.models import CorrectedInterval, Invoice, InvoiceStatus, StoredBundle


def later_corrections(invoice: Invoice) -> list[str]:
    """Return the corrections of the month that came after an invoice was cancelled.

    None of any other invoice. Call in the tenant's RLS scope.
    """
    if invoice.status != InvoiceStatus.VOID:
        return []
    booked = CorrectedInterval.objects.filter(billed_period_id=invoice.period_id, final=False)
    corrections = set(booked.values_list("share__correction_id", flat=True))
    return sorted(corrections - _corrections_in_bundle(invoice)) if corrections else []


def _corrections_in_bundle(invoice: Invoice) -> set[str]:
    content = StoredBundle.objects.filter(invoice=invoice).values_list("content", flat=True).first()
    if content is None:
        return set()
    return {each["correction"] for each in json.loads(zlib.decompress(content)).get("corrected", ())}
