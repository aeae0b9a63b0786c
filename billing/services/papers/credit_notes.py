"""What a credit note says on paper: how much of which lines of which invoice is given back, why, and where it went."""

from zoneinfo import ZoneInfo

from billing.domain.money import shown
from billing.domain.papers import Column, Group, Headline, Named, Note, Paper, Sum, day, grouped
from billing.models import CreditNote
from billing.services.papers.lines import told
from billing.services.papers.parties import customer, supplier

COLUMNS = (
    Column("#", "n"),
    Column("What", "what"),
    Column("Line came to", "num"),
    Column("Given back", "num"),
)
STAYS = (
    "The invoice stays as it is, and so does its bundle: what ran still ran. Lines have the numbers that they have on"
    " the invoice."
)


def of_credit_note(note: CreditNote) -> Paper:
    """Return the paper of a credit note, which has its invoice and its lines at hand. Runs behind its tenant's wall."""
    invoice, currency = note.invoice, note.currency
    zone = ZoneInfo(invoice.period.time_zone)
    given = {line.line_id: line.minor for line in note.lines.all()}
    rows = (
        (
            each.project,
            (
                str(each.line.n),
                Named(each.what, each.all_terms),
                shown(each.line.minor, currency),
                shown(given[each.line.pk], currency),
            ),
            given[each.line.pk],
        )
        for each in told(invoice)
        if each.line.pk in given
    )
    sums = [Sum("Given back", shown(note.total, currency), "strong")]
    if note.tax:
        sums[:0] = [
            Sum("Before VAT", shown(note.total - note.tax, currency)),
            Sum("VAT on it", shown(note.tax, currency)),
        ]
    if note.off_due:
        sums.append(Sum("Off what was due on the invoice", shown(note.off_due, currency)))
    if note.to_balance:
        sums.append(Sum("To your balance", shown(note.to_balance, currency)))
    if note.to_grants:
        sums.append(Sum("To the grants that paid for it", shown(note.to_grants, currency)))
    return Paper(
        title="Credit note",
        number=str(note),
        supplier=supplier(invoice),
        to="For",
        customer=customer(invoice),
        facts=(
            ("Issued", day(note.issued_at, zone)),
            ("Invoice", str(invoice)),
            *((("Invoice issued", day(invoice.finalized_at, zone)),) if invoice.finalized_at else ()),
            ("Currency", currency),
        ),
        headline=Headline(shown(note.total, currency), f"given back of invoice {invoice}", _where(note)),
        columns=COLUMNS,
        groups=tuple(
            Group(name, shown(minor, currency), tuple(cells)) for name, cells, minor in grouped(rows)
        ),
        sums=tuple(sums),
        notes=(Note("What this changes", STAYS),),
        foot=f"Credit note {note} · {note.pk} · {note.tenant_id}",
        reason=note.reason,
    )


def _where(note: CreditNote) -> str:
    """Say what becomes of it: less to be paid, money on the balance, credit on grants."""
    said = []
    if note.off_due:
        said.append(f"{shown(note.off_due, note.currency)} less is to be paid.")
    if note.to_balance:
        said.append(
            f"{shown(note.to_balance, note.currency)} was paid already: it is on your balance, and your next invoice is"
            " settled from it first."
        )
    if note.to_grants:
        said.append(f"{shown(note.to_grants, note.currency)} was paid by grants, to which it goes back.")
    return " ".join(said)
