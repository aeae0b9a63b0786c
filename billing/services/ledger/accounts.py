"""A tenant's account with us over a stretch of time, from the ledger: what it owes, and what of its money is with us.

Credit that was given away (grants) is not money: where it pays for an invoice, less is owed. Runs behind the wall of
the tenant.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from billing.models import CreditNote, Invoice
from billing.models.ledger import TransferKind
from billing.services.statements import statement

WORDS = {
    TransferKind.INVOICE: "Invoice {}",
    TransferKind.PAYMENT: "Payment of invoice {}",
    TransferKind.VOID: "Invoice {} taken back",
    TransferKind.CREDIT: "Credit note {}",
    TransferKind.DRAW: "Settled of invoice {} from your balance",
    TransferKind.TOPUP: "Top-up {}",
    TransferKind.REFUND: "Back to your card, of invoice {}",
}
CAME_BACK = "Did not reach your card, of invoice {}"
BY_GRANT = "Paid of invoice {} by grants"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that happened, by how much it changed what is owed and what is on the balance, and both after it."""

    at: datetime
    kind: str
    ref: str  # the invoice or whatever else it stands for
    words: str
    owed: int
    kept: int
    owed_after: int
    kept_after: int


@dataclass(frozen=True, slots=True)
class Account:
    """An account over [since, until); minor units."""

    currency: str
    since: datetime
    until: datetime
    opening_owed: int
    opening_kept: int
    entries: tuple[Entry, ...]

    @property
    def closing_owed(self) -> int:
        return self.opening_owed + sum(entry.owed for entry in self.entries)

    @property
    def closing_kept(self) -> int:
        return self.opening_kept + sum(entry.kept for entry in self.entries)


def account(tenant_id: str, currency: str, *, since: datetime, until: datetime) -> Account:
    """Return what happened on a tenant's account in a currency from one moment until just before another."""
    with connection.cursor() as cursor:
        cursor.execute(
            statement("account_entries"), {"tenant": tenant_id, "currency": currency, "until": until}
        )
        rows = cursor.fetchall()
    before = [row for row in rows if row[0] < since]
    owed, kept = (sum(row[n] for row in before) for n in (4, 5))
    happened: dict[_What, tuple[int, int]] = {}
    for row in rows[len(before) :]:
        more, less = happened.get(what := _what(row), (0, 0))
        happened[what] = more + row[4], less + row[5]
    names = _names(happened)
    entries, owed_now, kept_now = [], owed, kept
    for what, (more, less) in happened.items():
        owed_now, kept_now = owed_now + more, kept_now + less
        words = _words(what, names, kept=less)
        entries.append(Entry(what.at, what.kind, what.ref, words, more, less, owed_now, kept_now))
    return Account(currency, since, until, owed, kept, tuple(entries))


@dataclass(frozen=True, slots=True)
class _What:
    """What transfers that were booked together stand for; `part` is the credit note, draw or payment, if it is one."""

    at: datetime
    kind: str
    ref: str
    part: str


def _what(row: tuple[Any, ...]) -> _What:
    at, kind, ref, idem, _, kept = row
    part = idem.split(":")[1]
    # What several grants paid of one invoice is told together.
    alone = "_" in part and (kind != TransferKind.DRAW or kept)
    return _What(at, kind, ref, part if alone else "")


def _names(happened: Collection[_What]) -> dict[str, str]:
    """Return what people call invoices and credit notes, by id."""
    refs, parts = {what.ref for what in happened}, {what.part for what in happened}
    found: dict[str, str] = {each.pk: str(each) for each in Invoice.objects.filter(pk__in=refs)}
    found |= {each.pk: str(each) for each in CreditNote.objects.filter(pk__in=parts)}
    return found


def _words(what: _What, names: dict[str, str], *, kept: int) -> str:
    """Say what happened; of a kind that has no words here, its name."""
    name = names.get(what.part) or names.get(what.ref, what.ref)
    if what.kind == TransferKind.DRAW and not kept:
        return BY_GRANT.format(name)
    if what.kind == TransferKind.REFUND and kept > 0:
        return CAME_BACK.format(name)
    words = WORDS.get(TransferKind(what.kind)) if what.kind in TransferKind.values else None
    return words.format(name) if words else f"{what.kind.capitalize()} {name}"
