"""Journal entries against the ledger, and DATEV batches against their format."""

import re
from datetime import date
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.domain.datev import COLUMNS
from billing.domain.journal import JournalTransfer, account_name, journal_entries, journal_keys
from billing.domain.journal_accounts import CHARTS, AccountNumber
from billing.domain.ledger import AccountType
from billing.models import Invoice, JournalSettings
from billing.services.ledger import ledger_balances
from billing.services.reports.accounting import debtor_accounts, journal, journal_accounts
from billing.services.reports.accounting.journal import JournalIncomplete
from billing.services.reports.accounting.month_exports import export_journal, export_month
from billing.services.tax import exchange_rates
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, process_payment, request_payment
from tests.billing.tax.taxed_tenants import (
    ATELIER,
    LUMEN,
    PERSON,
    SWISS,
    charge_amounts,
    close_taxed_month,
    create_october_invoice,
    set_billing_details,
    set_tax_rate,
)

pytestmark = pytest.mark.django_db
BEGIN, END = utc("2026-01-01 00:00:00"), utc("2027-01-01 00:00:00")
NOVEMBER = "2026-11"


@pytest.fixture(autouse=True)
def _supplier(settings: Any, simulated_payments: None) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    set_tax_rate("FR", 20)


def read_entries() -> list[tuple[str, str, int]]:
    with staff_scope():
        found = journal.read_journal(since=BEGIN, until=END)
        return [(str(each.debit), str(each.credit), each.minor) for each in found]


def german_invoice(*cents: int) -> Invoice:
    return create_october_invoice(*cents)


def test_an_invoice_is_booked_without_the_clearing_account() -> None:
    create_october_invoice(1000)
    assert read_entries() == [
        ("receivable", "revenue:domestic", 1000),
        ("receivable", "tax_payable:domestic", 190),
    ]


def test_income_is_kept_apart_by_tax_treatment() -> None:
    for party in (ATELIER, PERSON, SWISS):
        create_october_invoice(1000, party=party)
    assert sorted(read_entries()) == [
        ("receivable", "revenue:destination", 1000),
        ("receivable", "revenue:outside", 1000),
        ("receivable", "revenue:reverse_charge", 1000),
        ("receivable", "tax_payable:destination", 200),
    ]


def test_a_credit_note_reverses_income_and_tax_to_where_the_money_goes() -> None:
    invoice = create_october_invoice(1000)
    issue_note(invoice, {1: 100})
    process_payment(request_payment(invoice))
    issue_note(invoice, {1: 200})
    assert sorted(read_entries()[2:]) == sorted(
        [
            ("revenue:domestic", "receivable", 100),
            ("tax_payable:domestic", "receivable", 19),
            ("cash", "receivable", 1071),
            ("revenue:domestic", "wallet_paid", 200),
            ("tax_payable:domestic", "wallet_paid", 38),
        ]
    )


def book_much() -> None:
    """Book invoices, draws, payments, credit notes and grants of several tenants and currencies."""
    paid = create_october_invoice(1000, 333, party=ATELIER)
    process_payment(request_payment(paid))
    issue_note(paid, {2: 33})
    tenant, project = create_customer()
    create_grant(tenant, 250)
    charge_amounts(project, 999, 1)
    issue_note(close_taxed_month(tenant), {1: 500})
    dollars, root = create_customer(currency="USD")
    set_billing_details(dollars, SWISS)
    add_ended_lease(root, create_priced_offering(7 * EURO, currency="USD"), utc("2026-10-03 00:00:00"), HOUR)
    close_taxed_month(dollars)


def test_the_journal_has_every_amount_of_the_ledger() -> None:
    book_much()
    with staff_scope():
        balances = {
            (line.currency, line.type): line.debit - line.credit
            for totals in ledger_balances.stored_trial_balance()
            for line in totals.lines
        }
        entries = list(journal.read_journal(since=BEGIN, until=END))
    sums = dict[tuple[str, str], int]()
    for each in entries:
        for key, minor in ((each.debit, each.minor), (each.credit, -each.minor)):
            account = each.transfer.currency, key.type
            sums[account] = sums.get(account, 0) + minor
    assert {key: minor for key, minor in sums.items() if minor} == {key: n for key, n in balances.items() if n}


@settings(max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 500)), min_size=1, max_size=8))
def test_joined_transfers_keep_every_balance(legs: list[tuple[bool, int]]) -> None:
    transfers = [
        JournalTransfer(
            id=n,
            tenant_id="ten_x",
            tenant="X",
            debit="receivable" if into else "accrued",
            credit="accrued" if into else "revenue",
            currency="EUR",
            minor=minor,
            at=NOW,
            kind="invoice",
            document="1",
            treatment="domestic",
            event="e",
        )
        for n, (into, minor) in enumerate(legs)
    ]
    found = list(journal_entries(transfers))
    owed = sum(minor for into, minor in legs if into)
    earned = sum(minor for into, minor in legs if not into)
    assert sum(each.minor for each in found if each.debit.type == "receivable") == owed
    assert sum(each.minor for each in found if each.credit.type == "revenue") == earned
    cleared = sum(each.minor for each in found if "accrued" in (each.debit.type, each.credit.type))
    assert cleared == abs(owed - earned)


def datev_lines(label: str = NOVEMBER, **more: Any) -> list[list[str]]:
    with staff_scope():
        made = export_month("datev", label, JournalSettings(**more), now=NOW)
    assert made.content.endswith(b"\r\n")
    return [line.split(";") for line in made.content.decode("cp1252").removesuffix("\r\n").split("\r\n")]


def test_a_datev_batch_has_the_fields_of_its_format() -> None:
    invoice = create_october_invoice(1000)
    issue_note(invoice, {1: 100})
    header, heads, *rows = datev_lines(advisor=29098, client=55003, fiscal_year_month=4)
    assert header[:5] == ['"EXTF"', "700", "21", '"Buchungsstapel"', "13"]
    assert re.fullmatch(r"\d{17}", header[5])
    assert header[10:16] == ["29098", "55003", "20260401", "4", "20261101", "20261130"]
    assert (header[18], header[20], header[21], len(header)) == ("1", "0", '"EUR"', 31)
    assert heads == list(COLUMNS)
    assert {len(row) for row in rows} == {125}
    shown = [(row[0], row[1], row[2], *row[6:11]) for row in rows]
    number = f'"{invoice}"'
    assert shown[:2] == [
        ("10,00", '"S"', '"EUR"', "1410", "8400", '"40"', "0111", number),
        ("1,90", '"S"', '"EUR"', "1410", "1776", "", "0111", number),
    ]
    assert sorted(shown[2:]) == [  # income and tax stay the contra account, to which the key belongs
        ("0,19", '"H"', '"EUR"', "1410", "1776", "", "0111", '"CN-2026-11-0001"'),
        ("1,00", '"H"', '"EUR"', "1410", "8400", '"40"', "0111", '"CN-2026-11-0001"'),
    ]
    for row in rows:
        assert re.fullmatch(r"\d{1,10},\d{2}", row[0])
        assert re.fullmatch(r'"[A-Za-z0-9$&%*+\-/]{0,36}"', row[10])
        assert len(row[13]) <= 62


def test_foreign_currencies_need_a_rate_and_state_the_base_amount() -> None:
    tenant, project = create_customer(currency="USD")
    set_billing_details(tenant, SWISS)
    add_ended_lease(project, create_priced_offering(100 * EURO, currency="USD"), utc("2026-10-03 00:00:00"), HOUR)
    close_taxed_month(tenant)
    with pytest.raises(JournalIncomplete, match="no exchange rate of USD to EUR"):
        datev_lines()
    exchange_rates.add_exchange_rate(
        currency="USD", day=date(2026, 11, 30), rate=800_000, source="ECB", actor=OPERATOR, now=END
    )
    (row,) = datev_lines()[2:]
    assert row[:6] == ["100,00", '"S"', '"USD"', "1,250000", "80,00", '"EUR"']


def test_an_account_without_a_number_is_named() -> None:
    create_october_invoice(1000)
    chart = {key: number for key, number in CHARTS["skr03"].items() if key != "receivable"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CHARTS, "skr03", chart)
        with pytest.raises(JournalIncomplete, match="No account number is set for Receivables"):
            datev_lines()


def test_both_charts_number_every_account() -> None:
    known = {str(key) for key in journal_keys()}
    for chart in CHARTS.values():
        assert known - set(chart) == set()
    assert account_name(AccountType.TAX_PAYABLE) == "VAT payable"
    assert account_name("something_new") == "Something new"


def test_settings_change_by_version_and_are_audited() -> None:
    changed = journal_accounts.change_journal_settings(
        {"chart": "skr04", "advisor": 2000}, {"cash": AccountNumber("1465")}, actor=OPERATOR, now=NOW
    )
    assert (changed.chart, changed.advisor, changed.version) == ("skr04", 2000, 1)
    numbers = journal_accounts.account_numbers(journal_accounts.journal_settings())
    assert (numbers["cash"].number, numbers["receivable"].number) == ("1465", "1210")
    same = journal_accounts.change_journal_settings({"advisor": 2000}, {}, actor=OPERATOR, now=NOW)
    assert same.version == 1
    with staff_scope():
        (event,) = AuditEvent.objects.filter(action="journal.settings")
    assert event.detail == {"chart": "skr04", "advisor": 2000, "cash": "1465"}


@pytest.mark.parametrize(
    ("wanted", "numbers", "field"),
    [
        ({"chart": "skr99"}, {}, "chart"),
        ({"advisor": 1}, {}, "advisor"),
        ({"time_zone": "Mars/Olympus"}, {}, "time_zone"),
        ({}, {"cash": AccountNumber("12a")}, "cash"),
        ({}, {"cash": AccountNumber("1200", "12345")}, "cash"),
        ({}, {"gold": AccountNumber("1200")}, "gold"),
    ],
)
def test_impossible_settings_are_refused(wanted: Any, numbers: Any, field: str) -> None:
    with pytest.raises(InvalidValue) as error:
        journal_accounts.change_journal_settings(wanted, numbers, actor=OPERATOR, now=NOW)
    assert error.value.field == field


def test_days_of_bookings_are_those_of_the_settings() -> None:
    create_october_invoice(1000)  # final at 00:05 UTC on 1 November
    with override_settings():
        rows = datev_lines("2026-10", time_zone="America/New_York")[2:]
    assert {row[9] for row in rows} == {"3110"}
    assert datev_lines(time_zone="America/New_York")[2:] == []


def test_neutral_journal_of_any_days() -> None:
    create_final_invoice()
    with staff_scope():
        whole = export_journal(date(2026, 10, 31), date(2026, 11, 1), JournalSettings())
        before = export_journal(date(2026, 10, 1), date(2026, 10, 31), JournalSettings())
        with pytest.raises(InvalidValue, match="at most 366 days"):
            export_journal(date(2026, 10, 2), date(2026, 10, 1), JournalSettings())
    assert whole.name == "journal-2026-10-31-2026-11-01.csv"
    assert [len(each.content.decode().splitlines()) for each in (whole, before)] == [3, 1]  # with the head


def test_receivables_are_on_a_tenants_debtor_account_or_the_collective_one() -> None:
    first, second = create_final_invoice(), create_final_invoice()
    debtor_accounts.set_debtor_accounts({second.tenant_id: "10001"}, actor=OPERATOR, now=NOW)
    with staff_scope():
        rows = export_month("journal", "2026-11", JournalSettings(), now=NOW).content.decode().splitlines()
        batch = b"".join(journal.datev_batch("2026-11", JournalSettings(), now=NOW)).decode("cp1252")
        accounts = {row.split(",")[4]: row.split(",")[6] for row in rows[1:] if "Receivables" in row}
    assert accounts == {first.tenant_id: "1410", second.tenant_id: "10001"}
    assert ";10001;" in batch


def test_tenants_with_receivables_are_numbered_once() -> None:
    first, second = create_final_invoice(), create_final_invoice()
    create_customer()  # owes nothing
    debtor_accounts.set_debtor_accounts({second.tenant_id: "10000"}, actor=OPERATOR, now=NOW)
    assert debtor_accounts.number_debtors(10000, actor=OPERATOR, now=NOW) == 1
    assert debtor_accounts.number_debtors(10000, actor=OPERATOR, now=NOW) == 0
    assert debtor_accounts.debtor_numbers() == {second.tenant_id: "10000", first.tenant_id: "10001"}
    for tenant, number in ((first.tenant_id, "10000"), (first.tenant_id, "70000"), ("ten_x", "10009")):
        with pytest.raises(InvalidValue):
            debtor_accounts.set_debtor_accounts({tenant: number}, actor=OPERATOR, now=NOW)
    debtor_accounts.set_debtor_accounts({first.tenant_id: "10005"}, actor=OPERATOR, now=NOW)
    assert debtor_accounts.debtor_numbers()[first.tenant_id] == "10005"
