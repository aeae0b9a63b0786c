"""Credited amounts of an invoice by line, with the lease of a correction."""

from dataclasses import dataclass

from billing.models import Correction, CreditNote, CreditNoteLine, Invoice, InvoiceLine
from billing.models.corrections import CorrectionKind


@dataclass(frozen=True, slots=True)
class CreditedLine:
    """What a credit note credits of a line; minor units."""

    note: CreditNote
    line: InvoiceLine
    minor: int
    tax_minor: int
    lease_id: str  # of a corrected lease; empty if the credit is for all usage of the line


def credited_lines(invoice: Invoice) -> list[CreditedLine]:
    """Return everything credited of an invoice, by note and line.

    Takes at most two queries. Call in the tenant's RLS scope.
    """
    rows = CreditNoteLine.objects.filter(credit_note__invoice=invoice).select_related("credit_note", "line")
    found = list(rows.order_by("credit_note__issued_at", "credit_note_id", "line__n"))
    corrections = {row.credit_note.correction_id for row in found} - {""}
    leases = (
        dict(Correction.objects.filter(pk__in=corrections, kind=CorrectionKind.LEASE).values_list("pk", "lease_id"))
        if corrections
        else {}
    )
    return [
        CreditedLine(row.credit_note, row.line, row.minor, row.tax_minor, leases.get(row.credit_note.correction_id, ""))
        for row in found
    ]
