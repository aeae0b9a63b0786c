"""Imported bank statements: entries, proposals, and operators' decisions."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import BankEntry, BankStatement, Invoice
from billing.services.payments.bank_receipts.receipt_records import ReceiptUse
from billing.services.payments.bank_receipts.receipt_reversal import reverse_receipt
from billing.services.payments.bank_statements import entry_decisions, entry_matching, statement_import
from billing.services.payments.bank_statements.entry_decisions import EntryDecided
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from tests.billing.bank_receipts.receipts import assert_books_hold, balance_of, receive, tenant_of
from tests.billing.histories import OPERATOR
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, reload_invoice

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("captured")]
CAMT = """<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">
<BkToCstmrStmt><Stmt>{}</Stmt></BkToCstmrStmt>
</Document>"""
ENTRY = """<Ntry><Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>{side}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>
<BookgDt><Dt>2026-11-05</Dt></BookgDt><NtryDtls><TxDtls><Refs><EndToEndId>{e2e}</EndToEndId></Refs>
<RltdPties><Dbtr><Pty><Nm>{payer}</Nm></Pty></Dbtr><DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct>
</RltdPties><RmtInf><Ustrd>{text}</Ustrd></RmtInf>{more}</TxDtls></NtryDtls></Ntry>"""
DECIDE: dict[str, Any] = {"actor": OPERATOR, "now": NOW + timedelta(days=10)}


def ntry(
    amount: str, text: object = "", *, side: str = "CRDT", payer: str = "X", e2e: str = "E", more: str = ""
) -> str:
    return ENTRY.format(amount=amount, text=text, side=side, payer=payer, e2e=e2e, more=more)


def bring(*entries: str) -> BankStatement:
    content = CAMT.format("".join(entries)).encode()
    return statement_import.import_statement(content, file_name="statement.xml", actor=OPERATOR, now=NOW)


def the_entry() -> BankEntry:
    return BankEntry.objects.get(incoming=True)


def status(invoice: Invoice) -> str:
    return reload_invoice(invoice).status


def test_same_file_and_overlapping_files_change_nothing() -> None:
    first = bring(ntry("1.00"), ntry("1.00"))
    assert (first.entries_found, first.entries_new) == (2, 2)
    assert bring(ntry("1.00"), ntry("1.00")).pk == first.pk
    later = bring(ntry("1.00"), ntry("1.00"), ntry("3.00"))
    assert (later.entries_found, later.entries_new) == (3, 1)
    assert BankEntry.objects.count() == 3


def test_proposal_is_booked_only_once_confirmed() -> None:
    invoice = create_final_invoice()
    bring(ntry("2.00", f"Invoice {invoice}"))
    with staff_scope():
        (found,) = entry_matching.propose([the_entry()])
    assert found.match is not None
    assert (found.match.exact, [each.id for each in found.match.invoices]) == (True, [invoice.pk])
    assert status(invoice) == "finalized"
    entry_decisions.book_entry(the_entry(), tenant=tenant_of(invoice), **DECIDE)
    assert status(invoice) == "paid"
    with pytest.raises(EntryDecided):
        entry_decisions.book_entry(the_entry(), tenant=tenant_of(invoice), **DECIDE)
    assert_books_hold()


def test_exact_matches_are_booked_together_and_others_stay_open() -> None:
    first, second = create_final_invoice(), create_final_invoice()
    bring(
        ntry("2.00", first, e2e="1"),
        ntry("1.50", second, e2e="2"),
        ntry("2.00", first, e2e="3"),
        ntry("9.00", "gift", e2e="4"),
    )
    assert entry_decisions.book_exact_matches(**DECIDE) == 1
    assert (status(first), status(second)) == ("paid", "finalized")
    assert BankEntry.objects.filter(status="open").count() == 3
    assert entry_decisions.book_exact_matches(**DECIDE) == 0


def test_account_that_paid_before_is_recognised() -> None:
    invoice = create_final_invoice()
    receive(invoice, 10, payer_account="DE89370400440532013000")
    bring(ntry("0.77", "thanks"))
    with staff_scope():
        (found,) = entry_matching.propose([the_entry()])
    assert found.match is not None
    assert (found.match.tenant_id, found.match.basis) == (invoice.tenant_id, "account")


def test_returned_transfer_reverses_its_receipt() -> None:
    invoice = create_final_invoice()
    bring(ntry("2.00", invoice, e2e="E2E-7"))
    receipt = entry_decisions.book_entry(the_entry(), tenant=tenant_of(invoice), **DECIDE)
    bring(ntry("2.00", side="DBIT", e2e="E2E-7", more="<RtrInf><Rsn><Cd>AC06</Cd></Rsn></RtrInf>"))
    returned = BankEntry.objects.get(incoming=False)
    with staff_scope():
        (found,) = entry_matching.propose([returned])
    assert found.receipt == receipt
    entry_decisions.book_returned(returned, receipt, **DECIDE)
    assert status(invoice) == "finalized"
    assert_books_hold()


def test_wrong_receipt_reversed_lets_its_entry_be_booked_again() -> None:
    wrong, right = create_final_invoice(), create_final_invoice()
    bring(ntry("2.00", "no number"))
    receipt = entry_decisions.book_entry(the_entry(), tenant=tenant_of(wrong), **DECIDE)
    reverse_receipt(receipt, why="another tenant paid", **DECIDE)
    assert the_entry().status == "open"
    entry_decisions.book_entry(
        the_entry(), tenant=tenant_of(right), pays=ReceiptUse.INVOICES, invoices=(right.pk,), **DECIDE
    )
    assert (status(wrong), status(right)) == ("finalized", "paid")
    assert the_entry().receipt not in ("", receipt.pk)


def test_outgoing_payments_need_no_decision_and_dismissed_ones_can_be_reopened() -> None:
    bring(ntry("5.00", side="DBIT"), ntry("7.00", "interest"))
    assert BankEntry.objects.get(incoming=False).status == "outgoing"
    entry = entry_decisions.dismiss_entry(the_entry(), why="interest", **DECIDE)
    assert entry.status == "dismissed"
    assert entry_decisions.reopen_entry(entry, **DECIDE).status == "open"


def test_unreadable_file_leaves_nothing() -> None:
    content = b'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"/>'
    with pytest.raises(InvalidValue, match="no account statement"):
        statement_import.import_statement(content, file_name="x", actor=OPERATOR, now=NOW)
    assert BankStatement.objects.count() == 0


def test_overpaid_entry_leaves_the_rest_on_the_balance() -> None:
    invoice = create_final_invoice()
    bring(ntry("5.00", invoice))
    entry_decisions.book_entry(
        the_entry(), tenant=tenant_of(invoice), pays=ReceiptUse.INVOICES, invoices=(invoice.pk,), **DECIDE
    )
    assert (status(invoice), balance_of(invoice)) == ("paid", 300)
