"""Sample documents and the text of stored ones."""

from collections.abc import Iterator

from billing.domain.documents import (
    Document,
    DocumentColumn,
    DocumentGroup,
    DocumentHeadline,
    DocumentNote,
    DocumentParty,
    DocumentTotal,
    TwoLineCell,
)
from billing.models import CreditNote, Invoice, StoredDocument
from billing.services.documents.credit_note_documents import credit_note_document
from billing.services.documents.invoice_documents import invoice_document
from tenants.services.rls import tenant_scope

COLUMNS = (
    DocumentColumn("#", "n"),
    DocumentColumn("Description", "what"),
    DocumentColumn("Seconds", "num"),
    DocumentColumn("Amount", "num"),
)


def sample_invoice(name: str = "Kestrel", *, lines: int = 3, draft: bool = False) -> Document:
    """Return an invoice with lines in two projects and typed text `name`."""
    rows = [(str(n), TwoLineCell(name, f"{name} · on-demand"), "3,600", "€1.00") for n in range(1, lines + 1)]
    half = lines // 2
    return Document(
        title="Invoice",
        number="2026-10-0001",
        supplier=DocumentParty(name, (name,)),
        to="Bill to",
        customer=DocumentParty(name, (name, "ten_x")),
        facts=(("Issued", "1 November 2026"), ("Period", "1 – 31 October 2026")),
        headline=DocumentHeadline(f"€{lines}.00", name, name),
        columns=COLUMNS,
        groups=(DocumentGroup(name, "€1.00", tuple(rows[:half])), DocumentGroup("", "", tuple(rows[half:]))),
        sums=(DocumentTotal(name, "€1.00"), DocumentTotal("Total", f"€{lines}.00", "strong")),
        notes=(DocumentNote("Verify this invoice", name, name),),
        foot=f"Invoice · {name}",
        reason=name,
        draft=draft,
    )


def document_text(thing: Invoice | CreditNote) -> Document:
    """Return the document of an invoice or a credit note."""
    with tenant_scope(thing.tenant_id):
        return invoice_document(thing) if isinstance(thing, Invoice) else credit_note_document(thing)


def document_words(found: Document) -> str:
    """Return all words of a document in one line."""
    return " ".join(_words(found))


def _words(thing: object) -> Iterator[str]:
    if isinstance(thing, str):
        yield thing
    elif isinstance(thing, tuple):
        for each in thing:
            yield from _words(each)
    elif hasattr(thing, "__dataclass_fields__"):
        for field in thing.__dataclass_fields__:
            yield from _words(getattr(thing, field))


def stored_documents(thing: Invoice | CreditNote) -> list[StoredDocument]:
    with tenant_scope(thing.tenant_id):
        of = "invoice" if isinstance(thing, Invoice) else "credit_note"
        return list(StoredDocument.objects.filter(**{of: thing}))
