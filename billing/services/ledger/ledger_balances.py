"""Ledger balances: trial balance, drift from transfers, missing postings, debts.

All but `amounts_owed` and `available_balance` require staff scope.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet, Sum

from billing.domain.ledger import CREDIT_NORMAL_TYPES, AccountType
from billing.domain.money import Money
from billing.models import AccountBalance
from ports.postgres.sql_statements import query_rows

TYPE_ORDER = {each.value: n for n, each in enumerate(AccountType)}


@dataclass(frozen=True, slots=True)
class TrialBalanceLine:
    """Sum of all accounts of a type in one currency, in minor units.

    It is on the side where the balance is.
    """

    currency: str
    type: str
    accounts: int
    debit: int
    credit: int


@dataclass(frozen=True, slots=True)
class TrialBalance:
    """Debit and credit of one currency; the ledger is wrong unless they are equal."""

    currency: str
    lines: tuple[TrialBalanceLine, ...]

    @property
    def debit(self) -> int:
        return sum(line.debit for line in self.lines)

    @property
    def credit(self) -> int:
        return sum(line.credit for line in self.lines)

    @property
    def balanced(self) -> bool:
        return self.debit == self.credit


@dataclass(frozen=True, slots=True)
class BalanceDrift:
    """An account whose balance differs from the sum of its transfers.

    Minor units, on the side where it grows.
    """

    account: int
    tenant: str
    type: str
    currency: str
    kept: int | None
    posted: int

    def __str__(self) -> str:
        whose = f" of {self.tenant}" if self.tenant else ""
        return (
            f"account {self.account} ({self.type} {self.currency}{whose}) has the balance {self.kept},"
            f" but its transfers sum to {self.posted}"
        )


def stored_trial_balance() -> tuple[TrialBalance, ...]:
    """Return the trial balance from stored balances, by currency; one query."""
    rows = query_rows("billing/ledger/trial_balance", by_credit=sorted(CREDIT_NORMAL_TYPES))
    return _group_by_currency(
        TrialBalanceLine(currency, kind, count, max(net, 0), max(-net, 0)) for currency, kind, count, net in rows
    )


def recomputed_trial_balance() -> tuple[tuple[TrialBalance, ...], tuple[BalanceDrift, ...]]:
    """Return the trial balance from the transfers, and every account that differs."""
    drifts, sums = [], dict[tuple[str, str], tuple[int, int]]()
    for account, tenant, kind, currency, net, kept in query_rows("billing/ledger/account_sums"):
        posted = -net if kind in CREDIT_NORMAL_TYPES else net
        if kept != posted:
            drifts.append(BalanceDrift(account or 0, tenant or "", kind or "", currency or "", kept, posted))
        count, total = sums.get((currency or "", kind or ""), (0, 0))
        sums[currency or "", kind or ""] = count + 1, total + net
    lines = (
        TrialBalanceLine(currency, kind, count, max(net, 0), max(-net, 0))
        for (currency, kind), (count, net) in sums.items()
    )
    return _group_by_currency(lines), tuple(drifts)


def uncleared_invoices() -> list[str]:
    """Return invoices that left a balance on a clearing account."""
    return [ref for (ref,) in query_rows("billing/ledger/uncleared_invoices")]


def missing_events() -> list[tuple[str, str, str]]:
    """Return events that are not posted: tenant, kind and row."""
    return query_rows("billing/ledger/missing_postings")


def amounts_owed(tenant_id: str) -> list[Money]:
    """Return what a tenant owes for final invoices, by currency; one query."""
    return _sum_receivables(AccountBalance.objects.filter(tenant_id=tenant_id))


def amounts_owed_by_all() -> list[Money]:
    """Return what all tenants owe together, in each currency; one query."""
    return _sum_receivables(AccountBalance.objects.all())


def _sum_receivables(balances: QuerySet[AccountBalance]) -> list[Money]:
    by_currency = balances.filter(account__type=AccountType.RECEIVABLE).values("account__currency")
    found = by_currency.annotate(all=Sum("minor")).exclude(all=0).order_by("account__currency")
    return [Money(int(minor), currency) for currency, minor in found.values_list("account__currency", "all")]


def available_balance(tenant_id: str, currency: str) -> int:
    """Return a tenant's available balance in a currency; minor units, one query."""
    paid = AccountBalance.objects.filter(
        tenant_id=tenant_id, account__type=AccountType.WALLET_PAID, account__currency=currency
    )
    return sum(minor - held for minor, held in paid.values_list("minor", "held_minor"))


def _group_by_currency(lines: Iterable[TrialBalanceLine]) -> tuple[TrialBalance, ...]:
    found: dict[str, list[TrialBalanceLine]] = {}
    for line in lines:
        found.setdefault(line.currency, []).append(line)
    return tuple(
        TrialBalance(
            currency, tuple(sorted(found[currency], key=lambda line: TYPE_ORDER.get(line.type, len(TYPE_ORDER))))
        )
        for currency in sorted(found)
    )
