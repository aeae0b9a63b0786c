"""VAT by return, country and rate, with credit notes and other currencies."""

from datetime import date
from typing import Any

import pytest

from billing.models import Invoice, JournalSettings
from billing.services.ledger import ledger_balances
from billing.services.reports.accounting import vat_report
from billing.services.reports.accounting.month_exports import export_month
from billing.services.reports.accounting.vat_report import VatLine
from billing.services.tax import exchange_rates
from tenants.services.rls import staff_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import (
    ATELIER,
    LUMEN,
    PERSON,
    SWISS,
    close_taxed_month,
    create_october_invoice,
    set_tax_rate,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _supplier(settings: Any, simulated_payments: None) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    set_tax_rate("FR", 20)


def read_lines(first: str = "2026-10", last: str = "2026-11") -> list[VatLine]:
    with staff_scope():
        return vat_report.vat_lines(first, last)


def shown(lines: list[VatLine]) -> list[tuple[str, str, int | None, int, int]]:
    return [(each.return_name, each.country, each.rate_bp, each.net, each.tax) for each in lines]


def test_domestic_oss_reverse_charge_and_outside_are_kept_apart() -> None:
    for party in (None, ATELIER, PERSON, SWISS):
        create_october_invoice(1000, party=party)
    assert shown(vat_report.sum_by_return(read_lines())) == [
        ("One Stop Shop", "FR", 2000, 1000, 200),
        ("Domestic return", "DE", 1900, 1000, 190),
        ("Not taxable here", "CH", 0, 1000, 0),
        ("Recapitulative statement", "FR", 0, 1000, 0),
    ]
    (customer,) = vat_report.sum_by_customer(read_lines())
    assert (customer.vat_id, customer.country_name, customer.net) == (ATELIER.vat_id, "France", 1000)


def test_credit_notes_count_in_the_month_they_were_issued() -> None:
    invoice = create_october_invoice(1000, party=PERSON)
    issue_note(invoice, {1: 100})
    october, november = read_lines()
    assert (october.month, october.net, october.tax, october.credit_notes) == ("2026-10", 1000, 200, 0)
    assert (november.month, november.net, november.tax, november.credit_notes) == ("2026-11", -100, -20, 1)
    (both,) = vat_report.sum_by_return([october, november])
    assert (both.net, both.tax, both.invoices, both.credit_notes) == (900, 180, 1, 1)


def test_the_report_equals_the_ledgers_tax() -> None:
    notes: list[Invoice] = [create_october_invoice(999, 1, party=party) for party in (None, ATELIER, PERSON)]
    for invoice in notes:
        issue_note(invoice, {1: 333})
    with staff_scope():
        (totals,) = ledger_balances.stored_trial_balance()
        booked = {line.type: line.credit - line.debit for line in totals.lines}
    lines = read_lines()
    assert sum(each.tax for each in lines) == booked["tax_payable"]
    assert sum(each.net for each in lines) == booked["revenue"]


def test_tax_in_another_currency_is_converted_or_named() -> None:
    tenant, project = create_customer(currency="USD")
    add_ended_lease(project, create_priced_offering(100 * EURO, currency="USD"), utc("2026-10-03 00:00:00"), HOUR)
    close_taxed_month(tenant)
    (line,) = read_lines()
    assert (line.tax, line.own, line.tax_own) == (1900, "EUR", None)
    exchange_rates.add_exchange_rate(
        currency="USD", day=date(2026, 10, 31), rate=900_000, source="ECB", actor=OPERATOR, now=NOW
    )
    (line,) = read_lines()
    assert (line.net_own, line.tax_own) == (9000, 1710)


def test_the_file_has_a_row_for_each_customer_and_rate() -> None:
    create_october_invoice(1000, party=PERSON)
    with staff_scope():
        made = export_month("vat", "2026-10", JournalSettings(), now=NOW)
    head, row = made.content.decode().splitlines()
    assert head.startswith("month,treatment,country,category,rate_percent")
    assert row.startswith("2026-10,destination,FR,standard,20,EUR,ten_")
    assert row.endswith("10.000000,2.000000,1,0,EUR,10.000000,2.000000,0.000000,0.000000")
