"""Split a credit note's surplus: paid money to the balance, the rest to grants."""

from django.db.models import Sum

from billing.domain.credit_notes import credit_returned_to_grants
from billing.models import CreditNote, GrantDraw, GrantReturn, Invoice
from billing.services.funds.grants import grant_balances


def amount_to_grants(invoice: Invoice, over: int) -> int:
    """Return how much of a credit note's surplus goes back to grants; minor units.

    Money goes back first: a tenant gets all that it paid before a grant gets anything. Call it before
    the note is written, with the invoice locked.
    """
    granted = invoice.grant_draws.aggregate(minor=Sum("minor", default=0))["minor"]
    if not (over and granted):
        return 0
    grant_balances.lock_grants(invoice.tenant_id)
    notes = invoice.credit_notes.aggregate(
        total=Sum("total", default=0), due=Sum("reduced_due", default=0), granted=Sum("to_grants", default=0)
    )
    gone = notes["due"] + invoice.due  # what nobody has to pay
    paid = invoice.total - granted - gone
    return credit_returned_to_grants(over, paid=paid, back=notes["total"] - notes["due"] - notes["granted"])


def return_to_grants(note: CreditNote) -> None:
    """Return a note's part to the grants that paid for its invoice.

    Those drawn last come first.
    """
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
        GrantDraw.objects.filter(invoice=note.invoice_id, grant__lapse__isnull=False).values_list("grant", flat=True)
    )
    for row in rows:
        row.lapsed = row.grant_id in lapsed
    GrantReturn.objects.bulk_create(rows)
