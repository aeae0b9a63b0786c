"""Tax of bad debts: lowered by a write-off, raised again by money that comes later."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from billing.models import Invoice, JournalSettings
from billing.services.payments import write_offs
from billing.services.payments.bank_receipts.receipt_reversal import NotReversible, reverse_receipt
from billing.services.reports.accounting import journal, vat_report
from tenants.services.rls import staff_scope
from tests.billing.bank_receipts.receipts import account_sums, assert_books_hold, receive
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import OPERATOR, utc
from tests.billing.payments.payable_invoices import reload_invoice
from tests.billing.tax.taxed_tenants import ATELIER, LUMEN, PERSON, create_october_invoice, set_tax_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments", "captured")]
DECEMBER = utc("2026-12-05 12:00:00")
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _supplier(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    set_tax_rate("FR", 20)


def write_off(invoice: Invoice, *, now: Any = DECEMBER) -> Any:
    return write_offs.write_off_invoice(invoice, why="insolvent", actor=OPERATOR, now=now)


def months() -> dict[str, tuple[int, int, int, int]]:
    """Return net, tax, and of them bad debts, by month of the VAT report."""
    with staff_scope():
        lines = vat_report.vat_lines("2026-10", "2027-03")
    return {each.month: (each.net, each.tax, each.net_bad_debts, each.tax_bad_debts) for each in lines}


def reported_tax() -> int:
    with staff_scope():
        return sum(each.tax for each in vat_report.vat_lines("2026-10", "2027-03"))


def test_write_off_lowers_the_tax_in_its_month_and_later_money_raises_it_again() -> None:
    invoice = create_october_invoice(1000)
    assert write_off(invoice).tax == 190
    assert account_sums() == {"bad_debt": 1000, "revenue": 1000}
    receive(invoice, 595, now=DECEMBER + 40 * DAY)
    assert account_sums() == {"bad_debt": 500, "revenue": 1000, "tax_payable": 95, "bank": 595}
    assert months() == {
        "2026-10": (1000, 190, 0, 0),
        "2026-12": (-1000, -190, -1000, -190),
        "2027-01": (500, 95, 500, 95),
    }
    receive(invoice, 595, now=DECEMBER + 41 * DAY)
    assert reload_invoice(invoice).status == "paid"
    assert account_sums() == {"revenue": 1000, "tax_payable": 190, "bank": 1190}
    assert_books_hold(DECEMBER)


def test_only_the_tax_in_what_is_due_is_corrected() -> None:
    invoice = create_october_invoice(1000)
    issue_note(invoice, {1: 100})
    receive(invoice, 71)
    assert (reload_invoice(invoice).due, write_off(invoice).tax) == (1000, 160)  # 171 × 1000 / 1071, half up
    assert reported_tax() == account_sums()["tax_payable"] == 11
    assert_books_hold(DECEMBER)


def test_undone_write_off_owes_the_rest_of_the_tax_again() -> None:
    invoice = create_october_invoice(1000)
    write_off(invoice)
    receive(invoice, 119, now=DECEMBER + DAY)
    write_offs.undo_write_off(invoice, why="they answered", actor=OPERATOR, now=DECEMBER + 2 * DAY)
    assert reload_invoice(invoice).due == 1071
    assert account_sums() == {"receivable": 1071, "revenue": 1000, "tax_payable": 190, "bank": 119}
    assert reported_tax() == 190
    assert_books_hold(DECEMBER)


def test_destination_tax_is_corrected_and_reverse_charge_lowers_the_net() -> None:
    consumer, business = create_october_invoice(1000, party=PERSON), create_october_invoice(1000, party=ATELIER)
    assert (write_off(consumer).tax, write_off(business).tax) == (200, 0)
    with staff_scope():
        lines = vat_report.sum_by_return(vat_report.vat_lines("2026-12", "2026-12"))
    assert [(each.return_name, each.net, each.tax) for each in lines] == [
        ("One Stop Shop", -1000, -200),
        ("Recapitulative statement", -1000, 0),
    ]


def test_journal_and_datev_book_the_correction_on_the_account_of_the_tax() -> None:
    invoice = create_october_invoice(1000)
    write_off(invoice)
    with staff_scope():
        chosen = JournalSettings()
        entries = journal.read_journal(since=utc("2026-12-01 00:00:00"), until=utc("2027-01-01 00:00:00"))
        booked = [(str(each.debit), str(each.credit), each.minor) for each in entries]
        batch = b"".join(journal.datev_batch("2026-12", chosen, now=DECEMBER)).decode("cp1252").splitlines()
    assert booked == [("bad_debt", "receivable", 1000), ("tax_payable:domestic", "receivable", 190)]
    assert [line.split(";")[:8] for line in batch[2:]] == [
        ["10,00", '"S"', '"EUR"', "", "", "", "2400", "1410"],
        ["1,90", '"H"', '"EUR"', "", "", "", "1410", "1776"],
    ]


def test_reversed_transfer_after_an_undone_write_off_is_owed_again_in_full() -> None:
    invoice = create_october_invoice(1000)
    write_off(invoice)
    receipt = receive(invoice, 119, now=DECEMBER + DAY)
    write_offs.undo_write_off(invoice, why="they answered", actor=OPERATOR, now=DECEMBER + 2 * DAY)
    reverse_receipt(receipt, why="wrong account", actor=OPERATOR, now=DECEMBER + 3 * DAY)
    assert reload_invoice(invoice).due == 1190
    assert account_sums() == {"receivable": 1190, "revenue": 1000, "tax_payable": 190}
    assert_books_hold(DECEMBER)


def test_transfer_before_a_write_off_is_reversed_after_the_write_off_is_undone() -> None:
    invoice = create_october_invoice(1000)
    early = receive(invoice, 190)
    write_off(invoice)
    with pytest.raises(NotReversible, match="was written off after this transfer"):
        reverse_receipt(early, why="wrong", actor=OPERATOR, now=DECEMBER + DAY)
    write_offs.undo_write_off(invoice, why="the bank took it back", actor=OPERATOR, now=DECEMBER + DAY)
    reverse_receipt(early, why="wrong", actor=OPERATOR, now=DECEMBER + DAY)
    assert write_off(invoice, now=DECEMBER + 2 * DAY).minor == 1190
    assert account_sums() == {"bad_debt": 1000, "revenue": 1000}
    assert_books_hold(DECEMBER)


@bounded(max_examples=10)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.integers(1, 2000))
def test_parts_of_a_bad_debt_add_up_to_exactly_its_tax(parts: list[int], net: int) -> None:
    invoice = create_october_invoice(net)
    before = reported_tax()
    write_off(invoice)
    for n, minor in enumerate(parts):
        if reload_invoice(invoice).status != "paid":
            receive(invoice, minor, now=DECEMBER + n * DAY)
    if (left := invoice.total - reload_invoice(invoice).received) > 0:
        receive(invoice, left, now=DECEMBER + 10 * DAY)
    assert reported_tax() == before == account_sums().get("tax_payable", 0)
