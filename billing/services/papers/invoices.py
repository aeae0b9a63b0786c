"""What an invoice says on paper: as it was when it became final, or, of a draft, as it is now.

What happens to a final invoice later (payments, credit notes) has papers of its own and changes nothing here.
"""

from zoneinfo import ZoneInfo

from billing.domain.money import shown
from billing.domain.papers import (
    Column,
    Group,
    Headline,
    Named,
    Note,
    Paper,
    Sum,
    day,
    grouped,
    per_cent,
    rate,
    stretch,
)
from billing.domain.tax import IN_WORDS, Treatment
from billing.models import BalanceDraw, GrantDraw, Invoice
from billing.services.bundles import file_name
from billing.services.disputes.window import last_day
from billing.services.papers.lines import Told, told
from billing.services.papers.parties import customer, supplier

COLUMNS = (
    Column("#", "n"),
    Column("What", "what"),
    Column("Seconds", "num"),
    Column("Per hour", "num"),
    Column("Amount", "num"),
)
# Amounts of lines are before tax: it is worked out for all of a category together.
RULE = (
    "A line is active seconds × slices × price per hour ÷ 3,600, summed over its leases and rounded once, halves away"
    " from zero. Waiting, starting and ending are free."
)
MONTH_RULE = (
    "What is less by a price in tiers or by a discount is taken off the exact amount of the line before it is rounded:"
    " tiers first, then percentages in the order they were given, then amounts. The bundle says which and how much."
)
CHECK = (
    "The invoice's bundle holds what every lease did, to the second, and the prices then. With it, verify.py works"
    " every figure above out anew on your own computer; both are on the invoice's page."
)

DISPUTE = (
    "Until the end of {} you can dispute any line on the invoice's page. Nobody goes after what is disputed until it is"
    " answered."
)


def of_invoice(invoice: Invoice) -> Paper:
    """Return the paper of an invoice, which has its period at hand. Runs behind its tenant's wall."""
    zone, currency = ZoneInfo(invoice.period.time_zone), invoice.currency
    granted = sum(GrantDraw.objects.filter(invoice=invoice).values_list("minor", flat=True))
    drawn = sum(BalanceDraw.objects.filter(invoice=invoice).values_list("minor", flat=True))
    final = invoice.number is not None
    span = invoice.period.span
    number = str(invoice) if final else f"{invoice.period.label}, not final"
    facts = [
        ("Period", stretch(span.lower, span.upper, zone)),
        ("Time zone", invoice.period.time_zone),
        ("Currency", currency),
    ]
    if invoice.finalized_at:
        facts.insert(0, ("Issued", day(invoice.finalized_at, zone)))
    else:
        facts.insert(0, ("As of", day(invoice.refreshed_at, zone)))
    if invoice.due_at:
        facts.insert(1, ("Due", day(invoice.due_at, zone)))
    sums = [*_taxes(invoice), Sum("Total", shown(invoice.total, currency), "strong")]
    if granted:
        sums.append(Sum("Paid by grants", shown(-granted, currency)))
    if drawn:
        sums.append(Sum("Settled from your balance", shown(-drawn, currency)))
    if granted or drawn:
        sums.append(Sum("Due", shown(invoice.total - granted - drawn, currency), "strong"))
    lines = told(invoice)
    return Paper(
        title="Invoice",
        number=number,
        supplier=supplier(invoice),
        to="Bill to",
        customer=customer(invoice),
        facts=tuple(facts),
        headline=_headline(invoice, granted=granted, drawn=drawn),
        columns=COLUMNS,
        groups=_groups(lines, currency),
        sums=tuple(sums),
        notes=(
            *_treated(invoice),
            Note("How lines are reckoned", RULE),
            *([Note("What the month takes off", MONTH_RULE)] if _takes_off(lines) else []),
            Note("Check it yourself", CHECK, f"python verify.py {file_name(invoice)}"),
            *_disputable(invoice, zone),
        ),
        foot=f"Invoice {number} · {invoice.pk} · {invoice.tenant_id}",
        draft=not final,
    )


def _taxes(invoice: Invoice) -> list[Sum]:
    """Say what the lines come to and the tax on them, category by category; nothing where nobody says who supplies."""
    if not invoice.treatment:
        return []
    found = [Sum("Subtotal", shown(invoice.subtotal, invoice.currency))]
    for each in invoice.taxes.order_by("-rate_bp", "category"):
        of = shown(each.net, invoice.currency)
        label = (
            f"VAT {per_cent(each.rate_bp)} of {of}"
            if each.rate_bp is not None
            else f"VAT of {of}, rate not known"
        )
        found.append(Sum(label, shown(each.tax, invoice.currency)))
    return found


def _treated(invoice: Invoice) -> list[Note]:
    words = IN_WORDS[Treatment(invoice.treatment)]
    return [Note("VAT", words)] if words else []


def _disputable(invoice: Invoice, zone: ZoneInfo) -> list[Note]:
    if invoice.disputable_until is None:
        return []
    return [Note("Dispute a charge", DISPUTE.format(f"{last_day(invoice.disputable_until, zone):%d %B %Y}"))]


def _headline(invoice: Invoice, *, granted: int, drawn: int) -> Headline:
    currency = invoice.currency
    if invoice.number is None:
        more = "A draft is not payable. It changes until its month is closed."
        return Headline(shown(invoice.total, currency), "so far", more)
    due, parts = invoice.total - granted - drawn, _settled(invoice, granted, drawn)
    if not due:
        return Headline(shown(0, currency), "nothing is due", " ".join(parts))
    by = f"due by {day(invoice.due_at, ZoneInfo(invoice.period.time_zone))}" if invoice.due_at else "due"
    how = "It is collected automatically." if invoice.collected else _transfer(invoice)
    return Headline(shown(due, currency), by, " ".join([*parts, how]))


def _settled(invoice: Invoice, granted: int, drawn: int) -> list[str]:
    """Say what was settled of it when it became final, and from where."""
    ways = [(granted, "paid by grants"), (drawn, "settled from your balance")]
    parts = [f"{shown(minor, invoice.currency)} {how}" for minor, how in ways if minor]
    return [f"Of {shown(invoice.total, invoice.currency)}, {' and '.join(parts)}."] if parts else []


def _transfer(invoice: Invoice) -> str:
    return f"Pay by transfer, and write {invoice} on it."


def _takes_off(lines: list[Told]) -> bool:
    return any(each.line.is_usage and each.line.month_num for each in lines)


def _groups(lines: list[Told], currency: str) -> tuple[Group, ...]:
    rows = (
        (
            each.project,
            (
                str(each.line.n),
                Named(each.what, each.all_terms),
                f"{each.line.unit_seconds:,}" if each.line.is_usage else "",
                rate(each.nano_per_hour, currency) if each.nano_per_hour is not None else "",
                shown(each.line.minor, currency),
            ),
            each.line.minor,
        )
        for each in lines
    )
    return tuple(Group(name, shown(minor, currency), tuple(cells)) for name, cells, minor in grouped(rows))
