"""Ledger seals reveal every later change (E10)."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from billing.models import Invoice, LedgerSeal, LedgerTransfer
from billing.services.ledger import ledger_balances, ledger_seal, posting
from ports import clock
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.ledger.ledger_rows import transfers
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, process_payment, request_payment
from tests.database import OwnDatabase


def later(days: int = 0) -> datetime:
    """Return a moment when everything written now is committed."""
    return clock.now() + timedelta(days=days, minutes=5)


def verdict(days: int = 0) -> ledger_seal.SealVerification:
    with staff_scope():
        return ledger_seal.verify_seals(now=later(days))


def paid_bill() -> Invoice:
    invoice = create_final_invoice()
    process_payment(request_payment(invoice))
    return invoice


def seals(invoice: Invoice) -> list[LedgerSeal]:
    with tenant_scope(invoice.tenant_id):
        return list(LedgerSeal.objects.order_by("n"))


@pytest.mark.django_db
def test_what_was_posted_is_sealed_once() -> None:
    invoice = paid_bill()
    assert (ledger_seal.seal_ledger(now=later()), ledger_seal.seal_ledger(now=later())) == (3, 0)
    (seal,) = seals(invoice)
    assert (seal.n, seal.transfers) == (1, [each.pk for each in transfers(invoice)])
    found = verdict()
    assert (found.tenants, found.seals, found.transfers, found.unsealed, found.wrong) == (1, 1, 3, 0, ())


@pytest.mark.django_db
def test_what_was_posted_this_moment_waits_until_it_is_surely_committed() -> None:
    create_final_invoice()
    assert ledger_seal.seal_ledger(now=clock.now()) == 0
    assert verdict().unsealed == 2
    assert verdict().wrong == ()


@pytest.mark.django_db
def test_a_later_seal_goes_on_where_the_last_one_ended() -> None:
    invoice = create_final_invoice()
    ledger_seal.seal_ledger(now=later())
    process_payment(request_payment(invoice))
    ledger_seal.seal_ledger(now=later())
    first, second = seals(invoice)
    assert (second.n, bytes(second.before), len(second.transfers)) == (2, bytes(first.hash), 1)
    assert verdict().wrong == ()


@pytest.mark.django_db
def test_what_is_too_much_at_once_is_sealed_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_seal, "BATCH_SIZE", 2)
    invoices = [paid_bill(), paid_bill()]
    assert ledger_seal.seal_ledger(now=later()) == 6
    found = verdict()
    assert (found.tenants, found.transfers, found.unsealed, found.wrong) == (2, 6, 0, ())
    assert sorted(pk for each in invoices for seal in seals(each) for pk in seal.transfers) == sorted(
        row.pk for each in invoices for row in transfers(each)
    )


@pytest.mark.django_db
def test_no_seal_reaches_across_midnight() -> None:
    invoice = create_final_invoice()
    rows = transfers(invoice)
    with tenant_scope(invoice.tenant_id):
        legs = {"debit_account_id": rows[1].debit_account_id, "credit_account_id": rows[1].credit_account_id}
        yesterday = clock.now() - timedelta(days=1)
        LedgerTransfer.objects.create(
            tenant_id=invoice.tenant_id, **legs, currency="EUR", minor=5, at=NOW, kind="invoice", ref=invoice.pk,
            idem=f"{invoice.pk}:late", recorded_at=yesterday,
        )  # fmt: skip
    assert ledger_seal.seal_ledger(now=later()) == 3
    assert [(each.n, each.day) for each in seals(invoice)] == [
        (1, yesterday.astimezone(UTC).date()),
        (2, clock.now().astimezone(UTC).date()),
    ]
    assert verdict().wrong == ()


@pytest.mark.django_db
def test_entries_unsealed_for_a_day_are_reported() -> None:
    invoice = create_final_invoice()
    found = verdict(days=2)
    assert len(found.wrong) == 2
    assert f"of {invoice.tenant_id}, written" in found.wrong[0]
    assert "is not in any seal" in found.wrong[0]


@pytest.mark.django_db
def test_the_head_of_all_chains_changes_with_every_seal() -> None:
    invoice = create_final_invoice()
    heads = [verdict().head]
    ledger_seal.seal_ledger(now=later())
    heads.append(verdict().head)
    process_payment(request_payment(invoice))
    ledger_seal.seal_ledger(now=later())
    heads.append(verdict().head)
    assert len(set(heads)) == 3


def verified() -> str:
    said = StringIO()
    call_command("verify_ledger", stdout=said)
    return said.getvalue()


@pytest.mark.django_db
def test_the_command_reports_a_consistent_ledger() -> None:
    paid_bill()
    ledger_seal.seal_ledger(now=later())
    said = verified()
    assert "trial balance EUR              debit €2.00, credit €2.00" in said
    assert "1, 1 seals over 3 transfers" in said
    assert said.endswith("The ledger is consistent.\n")


EDITS = {
    "a sum": ("UPDATE billing_ledgertransfer SET minor = minor + 1 WHERE kind = 'payment'", "was changed"),
    "a kind": ("UPDATE billing_ledgertransfer SET kind = 'invoice' WHERE kind = 'payment'", "was changed"),
    "a moment": (
        "UPDATE billing_ledgertransfer SET at = at + interval '1 s' WHERE kind = 'payment'",
        "was changed",
    ),
    "two legs": (
        "UPDATE billing_ledgertransfer SET debit_account_id = credit_account_id, credit_account_id = debit_account_id"
        " WHERE kind = 'payment'",
        "was changed",
    ),
    "one less": ("DELETE FROM billing_ledgertransfer WHERE kind = 'payment'", "is missing"),
    "a seal less": ("DELETE FROM billing_ledgerseal WHERE n = 1", "seal 1 is missing"),
    "another seal": (
        "UPDATE billing_ledgerseal SET before = sha256('x') WHERE n = 2",
        "does not continue the previous seal",
    ),
    "a balance": ("UPDATE billing_accountbalance SET minor = minor + 1", "its transfers sum to"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_e10_the_verifier_finds_a_superusers_edit(own_database: OwnDatabase, edit: str) -> None:
    invoice = create_final_invoice()
    ledger_seal.seal_ledger(now=later())
    process_payment(request_payment(invoice))
    ledger_seal.seal_ledger(now=later())
    assert "The ledger is consistent." in verified()
    sql, says = EDITS[edit]
    with own_database.server.as_administrator(own_database.name) as superuser:
        superuser.execute("SET session_replication_role = replica")  # no trigger stands in the way
        superuser.execute(sql)
    with pytest.raises(CommandError, match=says):
        verified()


def test_e10_a_transfer_that_a_superuser_adds_is_found(own_database: OwnDatabase) -> None:
    paid_bill()
    ledger_seal.seal_ledger(now=later())
    columns = "tenant_id, debit_account_id, credit_account_id, currency, minor, at, kind, ref"
    with own_database.server.as_administrator(own_database.name) as superuser:
        superuser.execute("SET session_replication_role = replica")
        superuser.execute(
            f"INSERT INTO billing_ledgertransfer ({columns}, idem, recorded_at)"
            f" SELECT {columns}, idem || 'x', recorded_at - interval '8 days' FROM billing_ledgertransfer"
            " WHERE kind = 'payment'"
        )
    with pytest.raises(CommandError) as found:
        verified()
    assert "is not in any seal" in str(found.value)
    assert "its transfers sum to" in str(found.value)


@pytest.mark.django_db
def test_the_command_names_what_is_not_in_the_books() -> None:
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id), connection.cursor() as cursor:
        # As an older release would: the invoice is taken back, and nobody tells the ledger.
        cursor.execute("UPDATE billing_invoice SET status = 'void'")
    with pytest.raises(CommandError, match=f"{invoice.pk} of {invoice.tenant_id} was voided"):
        verified()
    with tenant_scope(invoice.tenant_id):
        posting.reverse_invoices([invoice.pk], now=NOW)
    assert "The ledger is consistent." in verified()


@pytest.mark.django_db
def test_what_is_left_on_accrued_is_found() -> None:
    invoice = create_final_invoice()
    first = transfers(invoice)[0]
    with tenant_scope(invoice.tenant_id):
        LedgerTransfer.objects.create(
            tenant_id=invoice.tenant_id, debit_account_id=first.debit_account_id,
            credit_account_id=first.credit_account_id, currency="EUR", minor=1, at=NOW, kind="invoice",
            ref=invoice.pk, idem=f"{invoice.pk}:odd",
        )  # fmt: skip
    with staff_scope():
        assert ledger_balances.uncleared_invoices() == [invoice.pk]
    with pytest.raises(CommandError, match="the accrued account is not cleared"):
        verified()
