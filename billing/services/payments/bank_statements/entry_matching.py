"""Proposals for undecided entries of bank statements.

Whose money it is and which invoices it pays.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from billing.domain.bank.matching import InvoiceIndex, MatchedEntry, OpenInvoice, match_entry
from billing.models import BankEntry, BankEntryStatus, BankReceipt, Invoice, InvoiceStatus
from billing.models.invoices import OPEN_STATUSES
from tenants.services.rls import system_scope

MAX_UNDECIDED = 1000  # that dunning looks through; beyond, somebody is behind by months


@dataclass(frozen=True, slots=True)
class ProposedEntry:
    """An entry, and what an operator may confirm about it."""

    entry: BankEntry
    match: MatchedEntry | None = None
    receipt: BankReceipt | None = None  # that a returned entry would reverse


def propose(entries: Sequence[BankEntry]) -> list[ProposedEntry]:
    """Return the entries with their proposals; needs to see all tenants. Four queries."""
    undecided = [entry for entry in entries if entry.status == BankEntryStatus.OPEN]
    incoming = [entry for entry in undecided if entry.incoming]
    index = InvoiceIndex(_open_invoices() if incoming else [])
    accounts = _known_accounts(incoming)
    receipts = _returned_receipts([entry for entry in undecided if not entry.incoming])
    return [
        ProposedEntry(
            entry,
            _match(entry, index, accounts) if entry in incoming else None,
            receipts.get(entry.pk),
        )
        for entry in entries
    ]


def has_undecided_money(tenant_id: str) -> bool:
    """Return whether an undecided incoming entry may be money of a tenant."""
    with system_scope():
        waiting = BankEntry.objects.filter(status=BankEntryStatus.OPEN, incoming=True).order_by("booked_on")
        found = propose(list(waiting[:MAX_UNDECIDED]))
    return any(each.match is not None and each.match.tenant_id == tenant_id for each in found)


def _match(entry: BankEntry, index: InvoiceIndex, accounts: dict[str, str]) -> MatchedEntry | None:
    return match_entry(
        index,
        minor=entry.minor,
        currency=entry.currency,
        words=entry.words,
        payer=entry.counterparty,
        payer_account=entry.counterparty_account,
        known_accounts=accounts,
    )


def _open_invoices() -> list[OpenInvoice]:
    """Return all invoices that money may still come in for, the one due first first."""
    rows = Invoice.objects.filter(status__in=(*OPEN_STATUSES, InvoiceStatus.UNCOLLECTIBLE))
    return [
        OpenInvoice(
            invoice.pk,
            str(invoice),
            invoice.tenant_id,
            tuple(name for name in (invoice.tenant.name, (invoice.customer or {}).get("name", "")) if name),
            invoice.currency,
            invoice.to_pay - invoice.received,
        )
        for invoice in rows.select_related("tenant").order_by("due_at", "pk")
    ]


def _known_accounts(entries: Iterable[BankEntry]) -> dict[str, str]:
    """Return the tenants of payers' accounts, where one account paid for one tenant only."""
    wanted = {entry.counterparty_account for entry in entries} - {""}
    rows = (
        BankReceipt.objects.filter(payer_account__in=wanted, reversed_at=None) if wanted else BankReceipt.objects.none()
    )
    tenants: dict[str, set[str]] = {}
    for account, tenant_id in rows.values_list("payer_account", "tenant_id").distinct():
        tenants.setdefault(account, set()).add(tenant_id)
    return {account: of.pop() for account, of in tenants.items() if len(of) == 1}


def _returned_receipts(entries: Sequence[BankEntry]) -> dict[str, BankReceipt]:
    """Return the receipts that returned entries undo: of the same amount, by reference or account."""
    if not entries:
        return {}
    amounts = {(entry.minor, entry.currency) for entry in entries}
    rows = BankReceipt.objects.filter(reversed_at=None, minor__in={minor for minor, _ in amounts})
    receipts = list(rows.order_by("-received_on", "-pk"))
    of_entry = dict(
        BankEntry.objects.filter(receipt__in=[each.pk for each in receipts])
        .exclude(end_to_end_id="")
        .values_list("receipt", "end_to_end_id")
    )
    found: dict[str, BankReceipt] = {}
    for entry in entries:
        same = [each for each in receipts if (each.minor, each.currency) == (entry.minor, entry.currency)]
        named = [each for each in same if entry.end_to_end_id and of_entry.get(each.pk) == entry.end_to_end_id]
        account = entry.counterparty_account
        best = named or [each for each in same if account and each.payer_account == account]
        if best:
            found[entry.pk] = best[0]
    return found
