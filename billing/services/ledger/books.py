"""What the books say and whether they agree: trial balance, balances against transfers, what has been booked.

All but `owed` and `balance` must run as staff.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection
from django.db.models import QuerySet, Sum

from billing.domain.ledger import GROW_BY_CREDIT, AccountType
from billing.domain.money import Money
from billing.models import AccountBalance
from billing.services.statements import statement

ORDER = {each.value: n for n, each in enumerate(AccountType)}


@dataclass(frozen=True, slots=True)
class Line:
    """What is on all accounts of a type in one currency; minor units, on the side where the balance stands."""

    currency: str
    type: str
    accounts: int
    debit: int
    credit: int


@dataclass(frozen=True, slots=True)
class Totals:
    """The columns of one currency added up; they are equal, or the books are wrong."""

    currency: str
    lines: tuple[Line, ...]

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
class Drift:
    """An account whose balance is not what its transfers come to; minor units on the side where it grows."""

    account: int
    tenant: str
    type: str
    currency: str
    kept: int | None
    posted: int

    def __str__(self) -> str:
        whose = f" of {self.tenant}" if self.tenant else ""
        return (
            f"account {self.account} ({self.type} {self.currency}{whose}) is kept as {self.kept},"
            f" its transfers come to {self.posted}"
        )


def trial_balance() -> tuple[Totals, ...]:
    """Add up the balances that are kept, by currency and type; one query, as quick as there are few accounts."""
    with connection.cursor() as cursor:
        cursor.execute(statement("ledger_trial"), {"by_credit": sorted(GROW_BY_CREDIT)})
        rows = cursor.fetchall()
    return _totals(
        Line(currency, kind, count, max(net, 0), max(-net, 0)) for currency, kind, count, net in rows
    )


def reckoned() -> tuple[tuple[Totals, ...], tuple[Drift, ...]]:
    """Add up the transfers themselves; return their trial balance, and each account that is kept otherwise."""
    with connection.cursor() as cursor:
        cursor.execute(statement("ledger_sums"))
        rows = cursor.fetchall()
    drifts, sums = [], dict[tuple[str, str], tuple[int, int]]()
    for account, tenant, kind, currency, net, kept in rows:
        posted = -net if kind in GROW_BY_CREDIT else net
        if kept != posted:
            drifts.append(Drift(account or 0, tenant or "", kind or "", currency or "", kept, posted))
        count, total = sums.get((currency or "", kind or ""), (0, 0))
        sums[currency or "", kind or ""] = count + 1, total + net
    lines = (
        Line(currency, kind, count, max(net, 0), max(-net, 0))
        for (currency, kind), (count, net) in sums.items()
    )
    return _totals(lines), tuple(drifts)


def uncleared() -> list[str]:
    """Return the invoices that left something on an account which is only passed through."""
    with connection.cursor() as cursor:
        cursor.execute(statement("ledger_uncleared"))
        return [ref for (ref,) in cursor.fetchall()]


def missing() -> list[tuple[str, str, str]]:
    """Return what is not in the books and should be: whose, what happened, and to which row."""
    with connection.cursor() as cursor:
        cursor.execute(statement("ledger_missing"))
        return list(cursor.fetchall())


def owed(tenant_id: str) -> list[Money]:
    """Return what a tenant owes for final invoices, in each currency in which it owes anything; one query."""
    return _owed(AccountBalance.objects.filter(tenant_id=tenant_id))


def owed_by_all() -> list[Money]:
    """Return what all tenants owe together, in each currency; one query."""
    return _owed(AccountBalance.objects.all())


def _owed(balances: QuerySet[AccountBalance]) -> list[Money]:
    by_currency = balances.filter(account__type=AccountType.RECEIVABLE).values("account__currency")
    found = by_currency.annotate(all=Sum("minor")).exclude(all=0).order_by("account__currency")
    return [Money(int(minor), currency) for currency, minor in found.values_list("account__currency", "all")]


def balance(tenant_id: str, currency: str) -> int:
    """Return what a tenant has with us in a currency and may still be drawn; minor units, one query."""
    paid = AccountBalance.objects.filter(
        tenant_id=tenant_id, account__type=AccountType.WALLET_PAID, account__currency=currency
    )
    return sum(minor - held for minor, held in paid.values_list("minor", "held_minor"))


def _totals(lines: Iterable[Line]) -> tuple[Totals, ...]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.currency, []).append(line)
    return tuple(
        Totals(currency, tuple(sorted(found[currency], key=lambda line: ORDER.get(line.type, len(ORDER)))))
        for currency in sorted(found)
    )
