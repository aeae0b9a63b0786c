"""Papers in tests: one that exercises the template, and what one says."""

from collections.abc import Iterator

from billing.domain.papers import Column, Group, Headline, Named, Note, Paper, Party, Sum
from billing.models import CreditNote, Invoice, KeptPaper
from billing.services.papers.credit_notes import of_credit_note
from billing.services.papers.invoices import of_invoice
from tenants.services.walls import as_tenant

COLUMNS = (Column("#", "n"), Column("What", "what"), Column("Seconds", "num"), Column("Amount", "num"))


def paper(name: str = "Kestrel", *, lines: int = 3, draft: bool = False) -> Paper:
    """Return an invoice of so many lines in two projects; `name` stands wherever a tenant may type."""
    rows = [(str(n), Named(name, f"{name} · on-demand"), "3,600", "€1.00") for n in range(1, lines + 1)]
    half = lines // 2
    return Paper(
        title="Invoice",
        number="2026-10-0001",
        supplier=Party(name, (name,)),
        to="Bill to",
        customer=Party(name, (name, "ten_x")),
        facts=(("Issued", "1 November 2026"), ("Period", "1 – 31 October 2026")),
        headline=Headline(f"€{lines}.00", name, name),
        columns=COLUMNS,
        groups=(Group(name, "€1.00", tuple(rows[:half])), Group("", "", tuple(rows[half:]))),
        sums=(Sum(name, "€1.00"), Sum("Total", f"€{lines}.00", "strong")),
        notes=(Note("Check it yourself", name, name),),
        foot=f"Invoice · {name}",
        reason=name,
        draft=draft,
    )


def said(thing: Invoice | CreditNote) -> Paper:
    """Return what the paper of an invoice or a credit note says."""
    with as_tenant(thing.tenant_id):
        return of_invoice(thing) if isinstance(thing, Invoice) else of_credit_note(thing)


def words(told: Paper) -> str:
    """Return all its words in one line."""
    return " ".join(_words(told))


def _words(thing: object) -> Iterator[str]:
    if isinstance(thing, str):
        yield thing
    elif isinstance(thing, tuple):
        for each in thing:
            yield from _words(each)
    elif hasattr(thing, "__dataclass_fields__"):
        for field in thing.__dataclass_fields__:
            yield from _words(getattr(thing, field))


def kept(thing: Invoice | CreditNote) -> list[KeptPaper]:
    with as_tenant(thing.tenant_id):
        of = "invoice" if isinstance(thing, Invoice) else "credit_note"
        return list(KeptPaper.objects.filter(**{of: thing}))
