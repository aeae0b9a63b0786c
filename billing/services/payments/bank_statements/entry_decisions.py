"""Operators' decisions about entries of bank statements: book, dismiss, or undo a returned transfer."""

from datetime import datetime

from django.db import transaction

from billing.domain.money import Money
from billing.models import BankEntry, BankEntryStatus, BankReceipt
from billing.services.payments.bank_receipts.receipt_records import ReceiptTerms, ReceiptUse, record_receipt
from billing.services.payments.bank_receipts.receipt_reversal import reverse_receipt
from billing.services.payments.bank_statements import entry_matching
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import staff_scope, tenant_scope

MAX_AT_ONCE = 200


class EntryDecided(ProblemError):
    code, status, title = "bank-entry-decided", 409, "The entry was decided already"


@transaction.atomic
def book_entry(
    entry: BankEntry,
    *,
    tenant: Tenant,
    pays: ReceiptUse = ReceiptUse.OLDEST,
    invoices: tuple[str, ...] = (),
    actor: Actor,
    now: datetime,
) -> BankReceipt:
    """Record an incoming entry as a receipt of a tenant.

    Raises EntryDecided, or what recording raises.
    """
    entry = _undecided(entry)
    if not entry.incoming:
        raise EntryDecided(
            "The entry is money that left the account.",
            fix="Reverse the transfer that the bank returned, or dismiss it.",
        )
    with tenant_scope(tenant.pk):
        nth = BankReceipt.objects.filter(tenant=tenant, idem__startswith=f"entry {entry.pk} ").count()
    receipt = record_receipt(
        tenant,
        ReceiptTerms(
            minor=entry.minor,
            currency=entry.currency,
            received_on=entry.booked_on,
            reference=entry.words,
            payer=entry.counterparty[:140],
            payer_account=entry.counterparty_account,
            pays=pays,
            invoices=invoices,
        ),
        idem=f"entry {entry.pk} {nth + 1}",
        actor=actor,
        now=now,
    )
    _decide(entry, BankEntryStatus.BOOKED, receipt=receipt.pk, actor=actor, now=now)
    return receipt


@transaction.atomic
def book_returned(entry: BankEntry, receipt: BankReceipt, *, actor: Actor, now: datetime) -> BankReceipt:
    """Reverse the receipt whose money the bank took back. Raises EntryDecided, or what reversing raises."""
    entry = _undecided(entry)
    if entry.incoming or (entry.minor, entry.currency) != (receipt.minor, receipt.currency):
        raise EntryDecided(
            f"The entry is not {Money(receipt.minor, receipt.currency)} that left the account.",
            fix="Choose the transfer with the same amount.",
        )
    why = f"Returned by the bank on {entry.booked_on.isoformat()}: {entry.words or entry.counterparty}"[:150]
    reversed_ = reverse_receipt(receipt, why=why.strip(": "), actor=actor, now=now)
    _decide(entry, BankEntryStatus.BOOKED, receipt=receipt.pk, actor=actor, now=now)
    return reversed_


@transaction.atomic
def dismiss_entry(entry: BankEntry, *, why: str, actor: Actor, now: datetime) -> BankEntry:
    """Decide that an entry is no money of a tenant, for a reason."""
    reason = eviction.clean_reason(why)
    entry = _undecided(entry)
    _decide(entry, BankEntryStatus.DISMISSED, reason=reason, actor=actor, now=now)
    return entry


@transaction.atomic
def reopen_entry(entry: BankEntry, *, actor: Actor, now: datetime) -> BankEntry:
    """Let a dismissed entry wait for a decision again."""
    entry = BankEntry.objects.select_for_update(of=("self",)).get(pk=entry.pk)
    if entry.status != BankEntryStatus.DISMISSED:
        raise EntryDecided(
            f"The entry is {entry.status}.", fix="Only dismissed entries are reopened; reverse a wrong receipt instead."
        )
    entry.status, entry.reason, entry.decided_at, entry.decided_by = BankEntryStatus.OPEN, "", None, ""
    entry.save(update_fields=["status", "reason", "decided_at", "decided_by"])
    audit.record("bank_entry.reopen", entry, _words(entry), actor=actor, now=now)
    return entry


def book_exact_matches(*, actor: Actor, now: datetime) -> int:
    """Book the undecided entries that match exactly; return how many.

    They name their invoices and pay what is due.
    """
    with staff_scope():
        waiting = BankEntry.objects.filter(status=BankEntryStatus.OPEN, incoming=True, returned=False)
        found = entry_matching.propose(list(waiting.order_by("booked_on", "pk")[:MAX_AT_ONCE]))
        tenants = Tenant.objects.in_bulk([each.match.tenant_id for each in found if each.match])
    booked, paid = 0, set[str]()
    for each in found:
        if each.match is None or not each.match.exact:
            continue
        keys = tuple(invoice.id for invoice in each.match.invoices)
        if paid & set(keys):
            continue  # two entries for one invoice: a person decides about the second
        book_entry(
            each.entry,
            tenant=tenants[each.match.tenant_id],
            pays=ReceiptUse.INVOICES,
            invoices=keys,
            actor=actor,
            now=now,
        )
        paid |= set(keys)
        booked += 1
    return booked


def _undecided(entry: BankEntry) -> BankEntry:
    found = BankEntry.objects.select_for_update(of=("self",)).get(pk=entry.pk)
    if found.status != BankEntryStatus.OPEN:
        raise EntryDecided(
            f"The entry is {found.status}{f': {found.receipt}' if found.receipt else ''}.",
            fix="Reload the list. If it was booked wrongly, reverse its transfer.",
        )
    return found


def _decide(
    entry: BankEntry, status: BankEntryStatus, *, receipt: str = "", reason: str = "", actor: Actor, now: datetime
) -> None:
    entry.status, entry.receipt, entry.reason = status, receipt, reason
    entry.decided_at, entry.decided_by = now, actor.label
    entry.save(update_fields=["status", "receipt", "reason", "decided_at", "decided_by"])
    audit.record(
        f"bank_entry.{'dismiss' if status == BankEntryStatus.DISMISSED else 'book'}",
        entry,
        _words(entry),
        actor=actor,
        now=now,
        **({"receipt": receipt} if receipt else {}),
        **({"reason": reason} if reason else {}),
    )


def _words(entry: BankEntry) -> str:
    return f"{Money(entry.minor, entry.currency)} of {entry.booked_on.isoformat()}"
