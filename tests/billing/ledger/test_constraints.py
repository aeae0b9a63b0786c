"""PostgreSQL refuses invalid ledger rows, whoever writes them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from billing.domain.ledger import CREDIT_NORMAL_TYPES, TENANT_ACCOUNT_TYPES, AccountType
from billing.models import AccountBalance, Invoice, LedgerAccount, LedgerTransfer
from tenants.services.rls import system_scope, tenant_scope
from tests.billing.ledger.ledger_rows import FLOORED_TYPES, account_balances, transfers
from tests.billing.payments.payable_invoices import NOW, create_final_invoice

pytestmark = pytest.mark.django_db


def refused(invoice: Invoice, attack: Callable[[], Any], match: str) -> None:
    with tenant_scope(invoice.tenant_id), pytest.raises(DatabaseError, match=match), transaction.atomic():
        attack()


def account(kind: str, tenant_id: str | None = None, currency: str = "EUR") -> int:
    with system_scope():
        return LedgerAccount.objects.get(type=kind, tenant_id=tenant_id, currency=currency).pk


def opened(tenant_id: str, kind: str, currency: str = "EUR") -> int:
    with tenant_scope(tenant_id):
        found = {"tenant_id": tenant_id, "type": kind, "currency": currency}
        return LedgerAccount.objects.create(**found, opened_at=NOW).pk


def moved(invoice: Invoice, debit: int, credit: int, minor: int = 1, **otherwise: Any) -> Callable[[], Any]:
    fields = {
        "tenant_id": invoice.tenant_id,
        "debit_account_id": debit,
        "credit_account_id": credit,
        "minor": minor,
        "currency": "EUR",
        "at": NOW,
        "kind": "invoice",
        "ref": invoice.pk,
        "idem": f"{invoice.pk}:mine",
    }
    return lambda: LedgerTransfer.objects.create(**fields | otherwise)


def say(sql: str) -> Callable[[], Any]:
    def said() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    return said


@pytest.mark.parametrize("table", ["billing_ledgertransfer", "billing_ledgeraccount", "billing_ledgerseal"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_what_was_posted_is_never_changed_or_removed(table: str, verb: str) -> None:
    invoice = create_final_invoice()
    refused(invoice, say(verb.format(table)), "permission denied")


@pytest.mark.parametrize("table", ["billing_ledgertransfer", "billing_ledgeraccount", "billing_accountbalance"])
def test_not_even_the_owner_changes_or_removes_it(table: str) -> None:
    """Asked of the catalogue: their triggers bind everybody."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_or(tgtype & 8 > 0), bool_or(tgtype & 16 > 0), bool_or(tgtype & 32 > 0) FROM pg_trigger t"
            " JOIN pg_proc p ON p.oid = t.tgfoid WHERE tgrelid = %s::regclass AND proname = 'refuse_change'",
            [table],
        )
        deletes, updates, truncates = cursor.fetchone()
    assert deletes
    assert truncates
    assert updates is (table != "billing_accountbalance")  # which the trigger itself keeps


def test_no_role_of_the_product_may_write_a_balance() -> None:
    invoice = create_final_invoice()
    refused(invoice, say("UPDATE billing_accountbalance SET minor = 0"), "permission denied")
    refused(invoice, say("DELETE FROM billing_accountbalance"), "permission denied")
    receivable = account("receivable", invoice.tenant_id)
    again = {"account_id": receivable, "tenant_id": invoice.tenant_id, "minor": 0}
    refused(invoice, lambda: AccountBalance.objects.create(**again), "pkey")


def test_a_tenant_opens_no_account_of_the_platform() -> None:
    invoice = create_final_invoice()
    opening = {"tenant_id": None, "type": "cash", "currency": "USD", "opened_at": NOW}
    refused(invoice, lambda: LedgerAccount.objects.create(**opening), "row-level security")
    tenants_own = say("SELECT open_platform_account('receivable', 'EUR', now())")
    refused(invoice, tenants_own, "ledger_account_is_somebodys")


@pytest.mark.parametrize("minor", [0, -1])
def test_a_transfer_moves_something(minor: int) -> None:
    invoice = create_final_invoice()
    legs = account("receivable", invoice.tenant_id), account("revenue")
    refused(invoice, moved(invoice, *legs, minor=minor), "transfer_of_something")


def test_a_transfer_is_between_two_accounts() -> None:
    invoice = create_final_invoice()
    one = account("revenue")
    refused(invoice, moved(invoice, one, one), "transfer_between_two")


def test_nothing_is_posted_twice() -> None:
    invoice = create_final_invoice()
    legs = account("receivable", invoice.tenant_id), account("revenue")
    refused(invoice, moved(invoice, *legs, idem=f"{invoice.pk}:total"), "transfer_once")


def test_a_transfer_is_named_after_what_it_stands_for() -> None:
    invoice = create_final_invoice()
    legs = account("receivable", invoice.tenant_id), account("revenue")
    refused(invoice, moved(invoice, *legs, idem="total"), "transfer_named_after_ref")


def test_nothing_crosses_currencies() -> None:
    invoice = create_final_invoice()
    dollars = opened(invoice.tenant_id, "receivable", "USD")
    refused(invoice, moved(invoice, dollars, account("revenue")), "of its own currency")
    euros = account("receivable", invoice.tenant_id)
    refused(invoice, moved(invoice, euros, account("revenue"), currency="USD"), "of its own currency")


def test_another_tenants_account_and_none_at_all_are_refused() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    foreign = account("receivable", theirs.tenant_id)
    for odd in (foreign, 10**12):
        refused(ours, moved(ours, odd, account("revenue")), "of its own tenant")
        refused(ours, moved(ours, account("revenue"), odd), "of its own tenant")


def test_a_transfer_of_another_tenant_is_refused() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    legs = account("receivable", theirs.tenant_id), account("revenue")
    refused(ours, moved(ours, *legs, tenant_id=theirs.tenant_id), "row-level security")


def test_a_reversal_is_the_exact_opposite_and_comes_once() -> None:
    invoice = create_final_invoice()
    first = transfers(invoice)[0]  # accrued → revenue
    accrued, revenue = first.debit_account_id, first.credit_account_id
    receivable = account("receivable", invoice.tenant_id)
    odd = [
        {"debit": accrued, "credit": revenue, "minor": 200, "reverses_id": first.pk},
        {"debit": revenue, "credit": accrued, "minor": 199, "reverses_id": first.pk},
        {"debit": revenue, "credit": receivable, "minor": 200, "reverses_id": first.pk},
        {"debit": revenue, "credit": accrued, "minor": 200, "reverses_id": 10**12},
    ]
    for each in odd:
        refused(invoice, moved(invoice, **each), "not the opposite")
    good = {"debit": revenue, "credit": accrued, "minor": 200, "reverses_id": first.pk}
    with tenant_scope(invoice.tenant_id):
        reversal = moved(invoice, **good)()
    refused(invoice, moved(invoice, **good, idem=f"{invoice.pk}:again"), "transfer_reversed_once")
    back = {"debit": accrued, "credit": revenue, "minor": 200, "reverses_id": reversal.pk}
    refused(invoice, moved(invoice, **back, idem=f"{invoice.pk}:back"), "not the opposite")


def test_another_tenants_transfer_is_not_reversed() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    first = transfers(theirs)[0]
    legs = account("revenue"), account("accrued", ours.tenant_id)
    refused(ours, moved(ours, *legs, minor=200, reverses_id=first.pk), "not the opposite")


def test_b16_a_wallet_never_goes_below_nothing_however_many_transfers_come_at_once() -> None:
    invoice = create_final_invoice()
    wallet, cash = opened(invoice.tenant_id, "wallet_paid"), account("revenue")
    with tenant_scope(invoice.tenant_id):
        moved(invoice, cash, wallet, 100)()
    receivable = account("receivable", invoice.tenant_id)
    draw = {"debit": wallet, "credit": receivable}
    refused(invoice, moved(invoice, **draw, minor=101, idem=f"{invoice.pk}:a"), "balance_above_its_floor")

    def in_two() -> None:
        rows = [moved(invoice, **draw, minor=minor, idem=f"{invoice.pk}:{minor}") for minor in (60, 41)]
        for row in rows:
            row()

    refused(invoice, in_two, "balance_above_its_floor")
    with tenant_scope(invoice.tenant_id):
        moved(invoice, **draw, minor=100, idem=f"{invoice.pk}:b")()
    assert account_balances(invoice.tenant_id)["wallet_paid"] == 0


def test_an_account_is_opened_once() -> None:
    invoice = create_final_invoice()
    refused(invoice, lambda: opened(invoice.tenant_id, "receivable"), "ledger_account_once")


def test_nobody_sees_anothers_books() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    with tenant_scope(ours.tenant_id):
        assert {each.tenant_id for each in LedgerTransfer.objects.all()} == {ours.tenant_id}
        assert {each.tenant_id for each in AccountBalance.objects.all()} == {ours.tenant_id}
        seen = set(LedgerAccount.objects.values_list("tenant_id", flat=True))
    assert seen == {ours.tenant_id, None}
    assert theirs.tenant_id not in seen


@pytest.mark.parametrize("kind", list(AccountType))
def test_the_database_and_the_domain_agree_on_every_type(kind: AccountType) -> None:
    """On which side it grows, whether it has a floor, and whose it is."""
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        if kind in TENANT_ACCOUNT_TYPES and kind not in ("receivable", "accrued"):
            opened(invoice.tenant_id, kind)
        elif kind not in TENANT_ACCOUNT_TYPES:
            say(f"SELECT open_platform_account('{kind}', 'EUR', now())")()
    mine = account(kind, invoice.tenant_id if kind in TENANT_ACCOUNT_TYPES else None)
    other = account("revenue") if kind != "revenue" else account("receivable", invoice.tenant_id)
    before = on_all(mine)
    legs = (other, mine) if kind in CREDIT_NORMAL_TYPES else (mine, other)
    with tenant_scope(invoice.tenant_id):
        moved(invoice, *legs, minor=7)()
    assert on_all(mine) == before + 7
    with system_scope():
        assert (AccountBalance.objects.get(pk=mine).floor == 0) is (kind in FLOORED_TYPES)


def on_all(pk: int) -> int:
    with system_scope():
        return AccountBalance.objects.get(pk=pk).minor
