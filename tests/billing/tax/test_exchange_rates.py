"""Exchange rates, and VAT of invoices in another currency than the supplier's."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from billing.models import ExchangeRate, Invoice
from billing.services.documents.e_invoices.e_invoice_files import factur_x_xml
from billing.services.tax import exchange_rates
from billing.services.tax.tax_determination import supplier_currency
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.documents.e_invoices.schematron import failed_rules
from tests.billing.documents.e_invoices.test_e_invoices import KESTREL, SUPPLIER, value
from tests.billing.documents.sample_documents import document_text
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.tax.taxed_tenants import close_taxed_month, set_billing_details, set_tax_rate

pytestmark = pytest.mark.django_db
OCTOBER = date(2026, 10, 31)


@pytest.fixture(autouse=True)
def _supplier(settings: Any) -> None:
    settings.SUPPLIER = SUPPLIER.as_dict()
    set_tax_rate("DE", 19)


def add_rate(rate: str = "0.921234", day: date = OCTOBER, **more: Any) -> ExchangeRate:
    wanted = {"currency": "USD", "source": "ECB", "actor": OPERATOR, "now": utc("2026-10-31 18:00:00")} | more
    return exchange_rates.add_exchange_rate(day=day, rate=exchange_rates.parse_rate(rate), **wanted)


def dollar_invoice() -> Invoice:
    tenant, project = create_customer(currency="USD")
    set_billing_details(tenant, KESTREL)
    add_ended_lease(project, create_priced_offering(100 * EURO, currency="USD"), utc("2026-10-02 00:00:00"), HOUR)
    return close_taxed_month(tenant)


def test_an_invoice_in_dollars_states_its_vat_in_euros_and_the_rate() -> None:
    add_rate()
    invoice = dollar_invoice()
    document = document_text(invoice)
    assert ("USt in EUR", "17,50\xa0€") in [(each.label, each.amount) for each in document.sums]  # 19.00 × 0.921234
    assert any(note.text == "Umgerechnet zu 1 USD = 0,921234 EUR (ECB, 31. Oktober 2026)." for note in document.notes)
    with tenant_scope(invoice.tenant_id):
        xml = factur_x_xml(Invoice.objects.select_related("period", "tenant").get(pk=invoice.pk))
    assert xml is not None
    assert (value(xml, "TaxCurrencyCode"), failed_rules(xml)) == ("EUR", [])
    assert b'currencyID="EUR">17.50<' in xml


def test_a_rate_that_is_added_later_changes_no_final_invoice() -> None:
    add_rate()
    invoice = dollar_invoice()
    before = document_text(invoice)
    add_rate("0.5", date(2026, 10, 30), now=utc("2026-11-03 00:00:00"))
    assert document_text(invoice) == before


def test_without_a_rate_of_the_month_the_invoice_states_no_converted_vat() -> None:
    add_rate(day=date(2026, 9, 1))
    document = document_text(dollar_invoice())
    assert [each.label for each in document.sums if "EUR" in each.label] == []


def test_rates_are_added_once_and_audited() -> None:
    first = add_rate()
    assert add_rate() == first
    with staff_scope():
        (event,) = AuditEvent.objects.filter(action="tax.exchange-rate")
    assert event.detail == {"day": "2026-10-31", "rate": 921234}
    with pytest.raises(InvalidValue, match="already has a rate"):
        add_rate("0.93")
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        ExchangeRate.objects.update(rate=1)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"currency": "EUR"}, "other than EUR"),
        ({"currency": "XXX"}, "known currency"),
        ({"day": date(2026, 12, 1)}, "future"),
        ({"source": " "}, "source"),
    ],
)
def test_impossible_rates_are_refused(wanted: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        add_rate(**wanted)


@pytest.mark.parametrize("text", ["", "0", "0.0000001", "-1", "1,2", "1234567"])
def test_texts_that_are_no_rate_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="not a number"):
        exchange_rates.parse_rate(text)


def test_amounts_are_converted_between_decimals_of_currencies() -> None:
    assert exchange_rates.convert(1000, "JPY", "EUR", 6_100) == 610  # ¥1,000 at 0.0061
    assert exchange_rates.convert(1000, "KWD", "EUR", 3_000_000) == 300
    assert Decimal(exchange_rates.convert(-105, "USD", "EUR", 900_000)) == -95


def test_taxes_are_owed_in_the_currency_of_the_suppliers_country(settings: Any) -> None:
    assert supplier_currency() == "EUR"
    settings.SUPPLIER = SUPPLIER.as_dict() | {"country": "CH"}
    assert supplier_currency() == "CHF"
    settings.SUPPLIER = SUPPLIER.as_dict() | {"name": ""}
    assert supplier_currency() == settings.CURRENCY
