"""Papers as they are handed out. A final one is laid out when it is first asked for, kept, and never laid out again."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from billing.domain.papers import SECOND, Paper
from billing.models import CreditNote, Invoice, KeptPaper
from billing.services.ledger.accounts import Account
from billing.services.papers.account import of_account
from billing.services.papers.credit_notes import of_credit_note
from billing.services.papers.invoices import of_invoice
from billing.services.papers.printing import printed
from tenants.models import Tenant
from tenants.services.walls import as_itself, as_tenant


@dataclass(frozen=True, slots=True)
class Handed:
    """A PDF, what its file is called, and what it is the same as (its SHA-256)."""

    pdf: bytes
    name: str
    sha256: str


def invoice_paper(invoice: Invoice, *, now: datetime) -> Handed:
    """Return the paper of an invoice, which has its period at hand. A draft's is made anew each time, and not kept."""
    name = f"invoice-{invoice if invoice.number else f'{invoice.period.label}-draft'}.pdf"
    with as_itself(), as_tenant(invoice.tenant_id):  # operators' pages read as staff, who keep nothing
        if kept := KeptPaper.objects.filter(invoice=invoice).first():
            return Handed(bytes(kept.pdf), name, kept.pdf_sha256)
        paper = of_invoice(invoice)
    if invoice.finalized_at is None:
        return _handed(printed(paper, at=invoice.refreshed_at), name)
    return _keep(paper, invoice, name, at=invoice.finalized_at, now=now)


def credit_note_paper(note: CreditNote, *, now: datetime) -> Handed:
    """Return the paper of a credit note."""
    name = f"credit-note-{note}.pdf"
    with as_itself(), as_tenant(note.tenant_id):
        if kept := KeptPaper.objects.filter(credit_note=note).first():
            return Handed(bytes(kept.pdf), name, kept.pdf_sha256)
        paper = of_credit_note(note)
    return _keep(paper, note, name, at=note.issued_at, now=now)


def account_paper(tenant: Tenant, account: Account) -> Handed:
    """Return the paper of an account over a stretch of time. What is booked later may belong to it, so none is kept."""
    zone = ZoneInfo(tenant.time_zone)
    first, last = account.since.astimezone(zone), (account.until - SECOND).astimezone(zone)
    name = f"statement-{first:%Y-%m-%d}-{last:%Y-%m-%d}.pdf"
    return _handed(printed(of_account(tenant, account), at=account.until), name)


def _keep(paper: Paper, of: Invoice | CreditNote, name: str, *, at: datetime, now: datetime) -> Handed:
    """Lay a paper out, in no transaction of ours, and keep it. Where somebody else was faster, theirs counts."""
    made = _handed(printed(paper, at=at), name)
    with as_itself(), as_tenant(of.tenant_id):
        kept, _ = KeptPaper.objects.get_or_create(
            **({"invoice": of} if isinstance(of, Invoice) else {"credit_note": of}),
            defaults={
                "tenant_id": of.tenant_id,
                "content_sha256": paper.sha256,
                "pdf": made.pdf,
                "pdf_sha256": made.sha256,
                "made_at": now,
            },
        )
    return Handed(bytes(kept.pdf), name, kept.pdf_sha256)


def _handed(pdf: bytes, name: str) -> Handed:
    return Handed(pdf, name, hashlib.sha256(pdf).hexdigest())
