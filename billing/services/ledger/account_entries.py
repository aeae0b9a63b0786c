"""Account statement of a tenant from the ledger: debt and balance over time.

Grants are not money: where they pay for an invoice, less is owed. Call in the tenant's RLS scope.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from billing.models import CreditNote, Invoice
from billing.models.ledger import TransferKind
from ports.postgres.sql_statements import query_rows

ENTRY_TEXTS = {
    TransferKind.INVOICE: "Invoice {}",
    TransferKind.PAYMENT: "Payment of invoice {}",
    TransferKind.VOID: "Invoice {} voided",
    TransferKind.CREDIT: "Credit note {}",
    TransferKind.DRAW: "Invoice {} paid from your balance",
    TransferKind.TOPUP: "Top-up {}",
    TransferKind.REFUND: "Refund of invoice {} to your payment card",
    TransferKind.RECEIPT: "Bank transfer {}",
    TransferKind.REVERSAL: "Bank transfer {} taken back",
    TransferKind.WRITE_OFF: "Invoice {} not collected",
}
RETURNED_TEXT = "Failed refund of invoice {} to your payment card"
GRANT_TEXT = "Invoice {} paid by credits"


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """An event, its changes to debt and balance, and both after it."""

    at: datetime
    kind: str
    ref: str  # the invoice or other subject
    text: str
    owed: int
    kept: int
    owed_after: int
    kept_after: int
    template: str = ""  # the text without the name, for other languages
    name: str = ""

    @property
    def title(self) -> str:
        """The text without the id of a subject that has no number."""
        return self.text.removesuffix(f" {self.ref}")


@dataclass(frozen=True, slots=True)
class TenantAccount:
    """An account over [since, until); minor units."""

    currency: str
    since: datetime
    until: datetime
    opening_owed: int
    opening_kept: int
    entries: tuple[AccountEntry, ...]

    @property
    def closing_owed(self) -> int:
        return self.opening_owed + sum(entry.owed for entry in self.entries)

    @property
    def closing_kept(self) -> int:
        return self.opening_kept + sum(entry.kept for entry in self.entries)


def read_account(tenant_id: str, currency: str, *, since: datetime, until: datetime) -> TenantAccount:
    """Return a tenant's account in a currency over [since, until)."""
    rows = query_rows("billing/ledger/account_entries", tenant=tenant_id, currency=currency, until=until)
    before = [row for row in rows if row[0] < since]
    owed, kept = (sum(row[n] for row in before) for n in (4, 5))
    happened: dict[_EntryKey, tuple[int, int]] = {}
    for row in rows[len(before) :]:
        more, less = happened.get(what := _entry_key(row), (0, 0))
        happened[what] = more + row[4], less + row[5]
    names = _document_numbers(happened)
    entries, owed_now, kept_now = [], owed, kept
    for what, (more, less) in happened.items():
        owed_now, kept_now = owed_now + more, kept_now + less
        name = names.get(what.part) or names.get(what.ref, what.ref)
        text, template = _entry_text(what, name, kept=less)
        entries.append(AccountEntry(what.at, what.kind, what.ref, text, more, less, owed_now, kept_now, template, name))
    return TenantAccount(currency, since, until, owed, kept, tuple(entries))


@dataclass(frozen=True, slots=True)
class _EntryKey:
    """Transfers that were booked together; `part` names their credit note, draw or payment."""

    at: datetime
    kind: str
    ref: str
    part: str


def _entry_key(row: tuple[Any, ...]) -> _EntryKey:
    at, kind, ref, idem, _, kept = row
    part = idem.split(":")[1]
    # Payments of several grants for one invoice are one entry.
    alone = "_" in part and (kind != TransferKind.DRAW or kept)
    return _EntryKey(at, kind, ref, part if alone else "")


def _document_numbers(happened: Collection[_EntryKey]) -> dict[str, str]:
    """Return the numbers of invoices and credit notes, by id."""
    refs, parts = {what.ref for what in happened}, {what.part for what in happened}
    found: dict[str, str] = {each.pk: str(each) for each in Invoice.objects.filter(pk__in=refs)}
    found |= {each.pk: str(each) for each in CreditNote.objects.filter(pk__in=parts)}
    return found


def _entry_text(what: _EntryKey, name: str, *, kept: int) -> tuple[str, str]:
    """Return the text of an entry with its name, and the text without."""
    template = _entry_template(what, kept=kept)
    return (template.format(name) if template else f"{what.kind.capitalize()} {name}"), template


def _entry_template(what: _EntryKey, *, kept: int) -> str:
    if what.kind == TransferKind.DRAW and not kept:
        return GRANT_TEXT
    if what.kind == TransferKind.REFUND and kept > 0:
        return RETURNED_TEXT
    return ENTRY_TEXTS.get(TransferKind(what.kind), "") if what.kind in TransferKind.values else ""
