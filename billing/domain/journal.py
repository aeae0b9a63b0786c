"""Journal entries from ledger transfers, and the accounts of an accountant's chart.

The ledger books an invoice through a clearing account; a journal shows what is behind it. So the
transfers of one event that go through that account are joined, debit by credit.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from billing.domain.ledger import AccountType
from billing.domain.tax import TaxTreatment

CLEARING = AccountType.ACCRUED
# Income and tax are kept apart by how an invoice is taxed.
DIVIDED_TYPES = (AccountType.REVENUE, AccountType.TAX_PAYABLE)
ACCOUNT_NAMES = {
    AccountType.RECEIVABLE: "Receivables",
    AccountType.WALLET_PAID: "Prepaid balances",
    AccountType.WALLET_PROMO: "Granted credit",
    AccountType.ACCRUED: "Clearing of invoices",
    AccountType.REVENUE: "Revenue",
    AccountType.TAX_PAYABLE: "VAT payable",
    AccountType.SLO_EXPENSE: "Service level credits",
    AccountType.PROMOTION: "Promotional credits",
    AccountType.CASH: "Payment provider",
    AccountType.BREAKAGE: "Expired credit",
    AccountType.BANK: "Bank",
    AccountType.BAD_DEBT: "Bad debts",
    AccountType.FX: "Exchange differences",
}
TRANSFER_NAMES = {
    "invoice": "Invoice",
    "payment": "Payment",
    "void": "Invoice voided",
    "credit": "Credit note",
    "draw": "Paid from balance or credit",
    "grant": "Credit granted",
    "topup": "Top-up",
    "refund": "Refund",
    "lapse": "Credit expired",
    "receipt": "Bank transfer",
    "reversal": "Bank transfer taken back",
    "write_off": "Invoice written off",
}
TREATMENT_NAMES = {
    TaxTreatment.NOT_CONFIGURED: "without tax",
    TaxTreatment.DOMESTIC: "domestic",
    TaxTreatment.DESTINATION: "One Stop Shop",
    TaxTreatment.REVERSE_CHARGE: "reverse charge",
    TaxTreatment.OUTSIDE: "outside the VAT area",
}


def account_name(account_type: str) -> str:
    """Return the name of an account type for people."""
    return ACCOUNT_NAMES.get(account_type) or account_type.replace("_", " ").capitalize()  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True, order=True)
class JournalKey:
    """An account of the journal: an account type, divided by tax treatment where it matters."""

    type: str
    treatment: str = ""

    def __str__(self) -> str:
        return f"{self.type}:{self.treatment}" if self.treatment else self.type

    @property
    def name(self) -> str:
        name = account_name(self.type)
        return f"{name}, {TREATMENT_NAMES[TaxTreatment(self.treatment)]}" if self.treatment else name


@dataclass(frozen=True, slots=True)
class JournalTransfer:
    """A ledger transfer with what the journal says of it."""

    id: int
    tenant_id: str
    tenant: str
    debit: str  # account type
    credit: str
    currency: str
    minor: int
    at: datetime
    kind: str
    document: str  # number of the invoice or credit note, or the id of another subject
    treatment: str
    event: str  # transfers of one event have the same


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An amount from a debit to a credit account; minor units."""

    transfer: JournalTransfer
    debit: JournalKey
    credit: JournalKey
    minor: int


def journal_keys(types: Iterable[str] = tuple(ACCOUNT_NAMES)) -> list[JournalKey]:
    """Return all accounts of a journal, in the order of the chart."""
    found = list[JournalKey]()
    for each in types:
        if each == CLEARING:
            continue
        if each in DIVIDED_TYPES:
            found += [JournalKey(each, treatment) for treatment in TaxTreatment if treatment]
        found.append(JournalKey(each))
    return [key for key in found if not _is_untaxed(key)]


def _is_untaxed(key: JournalKey) -> bool:
    taxed = (TaxTreatment.DOMESTIC, TaxTreatment.DESTINATION)
    return key.type == AccountType.TAX_PAYABLE and key.treatment not in ("", *taxed)


def journal_entries(transfers: Iterable[JournalTransfer]) -> Iterator[JournalEntry]:
    """Yield the entries of transfers in order; those of one event follow one another."""
    event, waiting = None, list[JournalTransfer]()
    for each in transfers:
        if each.event != event:
            yield from _join_cleared(waiting)
            event, waiting = each.event, []
        if CLEARING in (each.debit, each.credit):
            waiting.append(each)
        else:
            yield JournalEntry(each, _key(each.debit, each), _key(each.credit, each), each.minor)
    yield from _join_cleared(waiting)


def _join_cleared(transfers: list[JournalTransfer]) -> Iterator[JournalEntry]:
    """Join what came into the clearing account with what went out of it, in order."""
    debits = deque((each, each.minor) for each in transfers if each.credit == CLEARING)
    credits = deque((each, each.minor) for each in transfers if each.debit == CLEARING)
    while debits and credits:
        (paid, left), (got, open_) = debits.popleft(), credits.popleft()
        minor = min(left, open_)
        yield JournalEntry(got, _key(paid.debit, paid), _key(got.credit, got), minor)
        if left > minor:
            debits.appendleft((paid, left - minor))
        if open_ > minor:
            credits.appendleft((got, open_ - minor))
    for each, left in debits:
        yield JournalEntry(each, _key(each.debit, each), JournalKey(CLEARING), left)
    for each, left in credits:
        yield JournalEntry(each, JournalKey(CLEARING), _key(each.credit, each), left)


def _key(account_type: str, of: JournalTransfer) -> JournalKey:
    return JournalKey(account_type, of.treatment if account_type in DIVIDED_TYPES else "")
