"""Credits of a cancelled invoice, given again on the invoice that replaces it.

The new invoice charges the whole month. Without this it would charge again what credit notes had credited of
the cancelled one, such as an outage or an accepted dispute.
"""

from datetime import datetime

from billing.models import CreditNote, CreditNoteLine, Invoice, StoredBundle
from billing.services.invoicing import credit_notes
from tenants.services.actors import BILLING

LineKey = tuple[str, str, int]
CARRIED_REASON = "As credit note {note} of the cancelled invoice {invoice}: {reason}"


def credit_again(invoice: Invoice, *, now: datetime) -> list[CreditNote]:
    """Credit a new invoice what its cancelled one had been credited.

    Call in the tenant's RLS scope, in the transaction that makes the invoice final.
    """
    old = Invoice.objects.select_related("period").filter(pk=invoice.rebills).first() if invoice.rebills else None
    return [] if old is None else [note for each in credits_to_carry(old) if (note := _credit(invoice, old, each, now))]


def credits_to_carry(old: Invoice) -> list[CreditNote]:
    """Return the credit notes of a cancelled invoice that are given again.

    They are those before its cancellation. Corrections are always among them: their usage cannot be corrected twice.
    """
    bundle = StoredBundle.objects.filter(invoice=old).only("made_at", "credits_again").first()
    if bundle is None:
        return []
    earlier = CreditNote.objects.filter(invoice=old, issued_at__lt=bundle.made_at).order_by("issued_at", "pk")
    return [note for note in earlier if bundle.credits_again or note.correction_id]


def _credit(invoice: Invoice, old: Invoice, note: CreditNote, now: datetime) -> CreditNote | None:
    left = {line.n: line for line in credit_notes.creditable_lines(invoice)}
    numbers: dict[LineKey, int] = {
        (project, offering, price): n
        for n, project, offering, price in invoice.lines.values_list(
            "n", "project_id", "offering_id", "price_version_id"
        )
    }
    wanted = dict[int, int]()
    for each in CreditNoteLine.objects.filter(credit_note=note).select_related("line").order_by("line__n"):
        line = each.line
        n = numbers.get((line.project_id, line.offering_id, line.price_version_id))
        if n is not None and (minor := min(each.minor, left[n].remaining)) > 0:
            wanted[n] = minor
    if not wanted:
        return None
    return credit_notes.issue_credit_note(
        invoice,
        wanted=wanted,
        seen=sum(line.credited for line in left.values()),
        why=CARRIED_REASON.format(note=note, invoice=old, reason=note.reason)[:150],
        actor=BILLING,
        now=now,
        correction=note.correction_id,
    )
