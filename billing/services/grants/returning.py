"""Where a credit note's money goes that was not due any longer: what was paid to the balance, the rest to grants."""

from django.db.models import Sum

from billing.domain.crediting import to_grants
from billing.models import CreditNote, GrantDraw, GrantReturn, Invoice
from billing.services.grants import purse


def part_of_grants(invoice: Invoice, over: int) -> int:
    """Return how much of what a note gives back beyond what is due no money was ever paid for; minor units.

    Money goes back first: a tenant has all that it paid before a grant has anything. To be asked before the note is
    written, of an invoice that is locked.
    """
    granted = invoice.grant_draws.aggregate(minor=Sum("minor", default=0))["minor"]
    if not (over and granted):
        return 0
    purse.alone(invoice.tenant_id)
    notes = invoice.credit_notes.aggregate(
        total=Sum("total", default=0), due=Sum("off_due", default=0), granted=Sum("to_grants", default=0)
    )
    gone = notes["due"] + invoice.due  # what of it nobody pays, whatever happens
    paid = invoice.total - granted - gone
    return to_grants(over, paid=paid, back=notes["total"] - notes["due"] - notes["granted"])


def give_back(note: CreditNote) -> None:
    """Share a note's part among the grants that paid for its invoice, those that were drawn last first."""
    rest = note.to_grants
    if not rest:
        return
    paid = GrantDraw.objects.filter(invoice=note.invoice_id).values_list("grant").annotate(minor=Sum("minor"))
    back = GrantReturn.objects.filter(credit_note__invoice=note.invoice_id).values_list("grant")
    came = dict(back.annotate(minor=Sum("minor")).order_by())
    rows = []
    for grant, minor in paid.order_by("-grant__priority", "-grant__expires_at", "-grant"):
        part = min(rest, minor - came.get(grant, 0))
        rest -= part
        if part:
            rows.append(GrantReturn(tenant_id=note.tenant_id, credit_note=note, grant_id=grant, minor=part))
    lapsed = set(
        GrantDraw.objects.filter(invoice=note.invoice_id, grant__lapse__isnull=False).values_list(
            "grant", flat=True
        )
    )
    for row in rows:
        row.lapsed = row.grant_id in lapsed
    GrantReturn.objects.bulk_create(rows)
