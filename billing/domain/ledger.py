"""The books: which accounts there are, on which side each of them grows, and the chain that seals what was posted."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class AccountType(StrEnum):
    RECEIVABLE = "receivable"  # what a tenant owes for final invoices
    WALLET_PAID = "wallet_paid"
    WALLET_PROMO = "wallet_promo"
    ACCRUED = "accrued"  # passed through when an invoice becomes final: nothing stays on it
    REVENUE = "revenue"
    TAX_PAYABLE = "tax_payable"
    SLO_EXPENSE = "slo_expense"
    PROMOTION = "promotion"  # credit that was given away
    CASH = "cash"  # what gateways have collected
    BREAKAGE = "breakage"  # credit that expired unused
    FX = "fx"


OF_TENANTS = frozenset(
    {AccountType.RECEIVABLE, AccountType.WALLET_PAID, AccountType.WALLET_PROMO, AccountType.ACCRUED}
)
# A credit makes these larger: what we owe and what we earned. All others grow by a debit.
GROW_BY_CREDIT = frozenset(
    {
        AccountType.WALLET_PAID,
        AccountType.WALLET_PROMO,
        AccountType.REVENUE,
        AccountType.TAX_PAYABLE,
        AccountType.BREAKAGE,
    }
)
# What is set aside or drawn must be there: these never go below their floor, which is nothing at first.
FLOORED = frozenset({AccountType.WALLET_PAID, AccountType.WALLET_PROMO})


@dataclass(frozen=True, slots=True)
class Entry:
    """A transfer as it is sealed: every column of the row."""

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


def genesis(tenant_id: str) -> bytes:
    """Return what a tenant's chain begins with."""
    return hashlib.sha256(f"ledger of {tenant_id}".encode()).digest()


def chained(before: bytes, entries: Iterable[Entry]) -> bytes:
    """Return the chain's hash after these entries: sha256(what was before + the entry's own digest), one by one."""
    for entry in entries:
        before = hashlib.sha256(before + _digest(entry)).digest()
    return before


def _digest(entry: Entry) -> bytes:
    # JSON, because its quotes keep neighbouring fields apart whatever stands in them.
    fields = [_microseconds(each) if isinstance(each, datetime) else each for each in astuple(entry)]
    return hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).digest()


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
