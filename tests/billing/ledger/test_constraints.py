"""PostgreSQL constraints on ledger accounts, transfers and balances."""

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


def assert_refused(invoice: Invoice, attack: Callable[[], Any], match: str) -> None:
    with tenant_scope(invoice.tenant_id), pytest.raises(DatabaseError, match=match), transaction.atomic():
        attack()


def account_id(kind: str, tenant_id: str | None = None, currency: str = "EUR") -> int:
    with system_scope():
        return LedgerAccount.objects.get(type=kind, tenant_id=tenant_id, currency=currency).pk


def open_account(tenant_id: str, kind: str, currency: str = "EUR") -> int:
    with tenant_scope(tenant_id):
        found = {"tenant_id": tenant_id, "type": kind, "currency": currency}
        return LedgerAccount.objects.create(**found, opened_at=NOW).pk


def transfer_write(invoice: Invoice, debit: int, credit: int, minor: int = 1, **otherwise: Any) -> Callable[[], Any]:
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


def sql_write(sql: str) -> Callable[[], Any]:
    def said() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    return said


@pytest.mark.parametrize("table", ["billing_ledgertransfer", "billing_ledgeraccount", "billing_ledgerseal"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_ledger_rows_cannot_be_changed_or_deleted(table: str, verb: str) -> None:
    invoice = create_final_invoice()
    assert_refused(invoice, sql_write(verb.format(table)), "permission denied")


@pytest.mark.parametrize("table", ["billing_ledgertransfer", "billing_ledgeraccount", "billing_accountbalance"])
def test_ledger_triggers_also_refuse_changes_by_the_table_owner(table: str) -> None:
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


def test_no_product_role_can_write_an_account_balance() -> None:
    invoice = create_final_invoice()
    assert_refused(invoice, sql_write("UPDATE billing_accountbalance SET minor = 0"), "permission denied")
    assert_refused(invoice, sql_write("DELETE FROM billing_accountbalance"), "permission denied")
    receivable = account_id("receivable", invoice.tenant_id)
    again = {"account_id": receivable, "tenant_id": invoice.tenant_id, "minor": 0}
    assert_refused(invoice, lambda: AccountBalance.objects.create(**again), "pkey")


def test_a_tenant_cannot_open_a_platform_account() -> None:
    invoice = create_final_invoice()
    opening = {"tenant_id": None, "type": "cash", "currency": "USD", "opened_at": NOW}
    assert_refused(invoice, lambda: LedgerAccount.objects.create(**opening), "row-level security")
    tenants_own = sql_write("SELECT open_platform_account('receivable', 'EUR', now())")
    assert_refused(invoice, tenants_own, "ledger_account_is_somebodys")


@pytest.mark.parametrize("minor", [0, -1])
def test_a_transfer_amount_is_positive(minor: int) -> None:
    invoice = create_final_invoice()
    legs = account_id("receivable", invoice.tenant_id), account_id("revenue")
    assert_refused(invoice, transfer_write(invoice, *legs, minor=minor), "transfer_of_something")


def test_a_transfer_needs_two_different_accounts() -> None:
    invoice = create_final_invoice()
    one = account_id("revenue")
    assert_refused(invoice, transfer_write(invoice, one, one), "transfer_between_two")


def test_a_transfer_is_posted_once() -> None:
    invoice = create_final_invoice()
    legs = account_id("receivable", invoice.tenant_id), account_id("revenue")
    assert_refused(invoice, transfer_write(invoice, *legs, idem=f"{invoice.pk}:total"), "transfer_once")


def test_a_transfer_key_starts_with_its_reference() -> None:
    invoice = create_final_invoice()
    legs = account_id("receivable", invoice.tenant_id), account_id("revenue")
    assert_refused(invoice, transfer_write(invoice, *legs, idem="total"), "transfer_named_after_ref")


def test_a_transfer_between_currencies_is_refused() -> None:
    invoice = create_final_invoice()
    dollars = open_account(invoice.tenant_id, "receivable", "USD")
    assert_refused(invoice, transfer_write(invoice, dollars, account_id("revenue")), "of its own currency")
    euros = account_id("receivable", invoice.tenant_id)
    assert_refused(
        invoice, transfer_write(invoice, euros, account_id("revenue"), currency="USD"), "of its own currency"
    )


def test_a_transfer_to_another_tenants_or_a_missing_account_is_refused() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    foreign = account_id("receivable", theirs.tenant_id)
    for odd in (foreign, 10**12):
        assert_refused(ours, transfer_write(ours, odd, account_id("revenue")), "of its own tenant")
        assert_refused(ours, transfer_write(ours, account_id("revenue"), odd), "of its own tenant")


def test_a_transfer_of_another_tenant_is_refused() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    legs = account_id("receivable", theirs.tenant_id), account_id("revenue")
    assert_refused(ours, transfer_write(ours, *legs, tenant_id=theirs.tenant_id), "row-level security")


def test_a_reversal_is_the_exact_opposite_and_posted_once() -> None:
    invoice = create_final_invoice()
    first = transfers(invoice)[0]  # accrued → revenue
    accrued, revenue = first.debit_account_id, first.credit_account_id
    receivable = account_id("receivable", invoice.tenant_id)
    odd = [
        {"debit": accrued, "credit": revenue, "minor": 200, "reverses_id": first.pk},
        {"debit": revenue, "credit": accrued, "minor": 199, "reverses_id": first.pk},
        {"debit": revenue, "credit": receivable, "minor": 200, "reverses_id": first.pk},
        {"debit": revenue, "credit": accrued, "minor": 200, "reverses_id": 10**12},
    ]
    for each in odd:
        assert_refused(invoice, transfer_write(invoice, **each), "not the opposite")
    good = {"debit": revenue, "credit": accrued, "minor": 200, "reverses_id": first.pk}
    with tenant_scope(invoice.tenant_id):
        reversal = transfer_write(invoice, **good)()
    assert_refused(invoice, transfer_write(invoice, **good, idem=f"{invoice.pk}:again"), "transfer_reversed_once")
    back = {"debit": accrued, "credit": revenue, "minor": 200, "reverses_id": reversal.pk}
    assert_refused(invoice, transfer_write(invoice, **back, idem=f"{invoice.pk}:back"), "not the opposite")


def test_a_transfer_of_another_tenant_cannot_be_reversed() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    first = transfers(theirs)[0]
    legs = account_id("revenue"), account_id("accrued", ours.tenant_id)
    assert_refused(ours, transfer_write(ours, *legs, minor=200, reverses_id=first.pk), "not the opposite")


def test_b16_a_wallet_never_goes_negative_by_one_or_several_transfers() -> None:
    invoice = create_final_invoice()
    wallet, cash = open_account(invoice.tenant_id, "wallet_paid"), account_id("revenue")
    with tenant_scope(invoice.tenant_id):
        transfer_write(invoice, cash, wallet, 100)()
    receivable = account_id("receivable", invoice.tenant_id)
    draw = {"debit": wallet, "credit": receivable}
    assert_refused(
        invoice, transfer_write(invoice, **draw, minor=101, idem=f"{invoice.pk}:a"), "balance_above_its_floor"
    )

    def in_two() -> None:
        rows = [transfer_write(invoice, **draw, minor=minor, idem=f"{invoice.pk}:{minor}") for minor in (60, 41)]
        for row in rows:
            row()

    assert_refused(invoice, in_two, "balance_above_its_floor")
    with tenant_scope(invoice.tenant_id):
        transfer_write(invoice, **draw, minor=100, idem=f"{invoice.pk}:b")()
    assert account_balances(invoice.tenant_id)["wallet_paid"] == 0


def test_an_account_is_opened_once() -> None:
    invoice = create_final_invoice()
    assert_refused(invoice, lambda: open_account(invoice.tenant_id, "receivable"), "ledger_account_once")


def test_a_tenant_sees_only_its_own_ledger() -> None:
    ours, theirs = create_final_invoice(), create_final_invoice()
    with tenant_scope(ours.tenant_id):
        assert {each.tenant_id for each in LedgerTransfer.objects.all()} == {ours.tenant_id}
        assert {each.tenant_id for each in AccountBalance.objects.all()} == {ours.tenant_id}
        seen = set(LedgerAccount.objects.values_list("tenant_id", flat=True))
    assert seen == {ours.tenant_id, None}
    assert theirs.tenant_id not in seen


@pytest.mark.parametrize("kind", list(AccountType))
def test_the_database_and_the_domain_agree_on_every_account_type(kind: AccountType) -> None:
    """On which side it grows, whether it has a floor, and whose it is."""
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        if kind in TENANT_ACCOUNT_TYPES and kind not in ("receivable", "accrued"):
            open_account(invoice.tenant_id, kind)
        elif kind not in TENANT_ACCOUNT_TYPES:
            sql_write(f"SELECT open_platform_account('{kind}', 'EUR', now())")()
    mine = account_id(kind, invoice.tenant_id if kind in TENANT_ACCOUNT_TYPES else None)
    other = account_id("revenue") if kind != "revenue" else account_id("receivable", invoice.tenant_id)
    before = account_balance(mine)
    legs = (other, mine) if kind in CREDIT_NORMAL_TYPES else (mine, other)
    with tenant_scope(invoice.tenant_id):
        transfer_write(invoice, *legs, minor=7)()
    assert account_balance(mine) == before + 7
    with system_scope():
        assert (AccountBalance.objects.get(pk=mine).floor == 0) is (kind in FLOORED_TYPES)


def account_balance(pk: int) -> int:
    with system_scope():
        return AccountBalance.objects.get(pk=pk).minor
