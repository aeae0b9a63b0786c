"""Chart of accounts, the side each account grows on, and the transfers' hash chain."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class AccountType(StrEnum):
    RECEIVABLE = "receivable"  # owed by a tenant for final invoices
    WALLET_PAID = "wallet_paid"
    WALLET_PROMO = "wallet_promo"
    ACCRUED = "accrued"  # a clearing account for finalization: always back at zero
    REVENUE = "revenue"
    TAX_PAYABLE = "tax_payable"
    SLO_EXPENSE = "slo_expense"
    PROMOTION = "promotion"  # granted credit
    CASH = "cash"  # collected by gateways
    BANK = "bank"  # received by bank transfer
    BAD_DEBT = "bad_debt"  # written off
    BREAKAGE = "breakage"  # credit that expired unused
    FX = "fx"


TENANT_ACCOUNT_TYPES = frozenset(
    {AccountType.RECEIVABLE, AccountType.WALLET_PAID, AccountType.WALLET_PROMO, AccountType.ACCRUED}
)
# Credit-normal accounts (liabilities and income) grow by a credit, all others by a debit.
CREDIT_NORMAL_TYPES = frozenset(
    {
        AccountType.WALLET_PAID,
        AccountType.WALLET_PROMO,
        AccountType.REVENUE,
        AccountType.TAX_PAYABLE,
        AccountType.BREAKAGE,
    }
)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A transfer as it enters the hash chain: every column of the row."""

    id: int
    tenant_id: str
    debit_account_id: int
    credit_account_id: int
    currency: str
    minor: int
    at: datetime
    kind: str
    ref: str
    reverses_id: int | None
    idem: str
    recorded_at: datetime


def genesis_hash(tenant_id: str) -> bytes:
    """Return the first hash of a tenant's chain."""
    return hashlib.sha256(f"ledger of {tenant_id}".encode()).digest()


def extend_chain(before: bytes, entries: Iterable[LedgerEntry]) -> bytes:
    """Return the chain's hash after these entries.

    Each link is sha256(previous hash + the entry's own digest).
    """
    for entry in entries:
        before = hashlib.sha256(before + _digest(entry)).digest()
    return before


def _digest(entry: LedgerEntry) -> bytes:
    # JSON, because its quoting keeps neighbouring fields apart whatever they contain.
    fields = [_microseconds(each) if isinstance(each, datetime) else each for each in astuple(entry)]
    return hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).digest()


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
