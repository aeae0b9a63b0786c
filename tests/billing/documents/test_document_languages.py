"""Documents in German, for customers that chose it."""

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from billing.domain.document_formats import ENGLISH, Language, document_format
from billing.domain.document_texts_de import GERMAN_TEXTS
from billing.domain.documents import TwoLineCell
from billing.models import CreditNote
from billing.services.documents import document_store
from billing.services.documents.account_statements import account_statement_document
from billing.services.ledger import account_entries
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import START, close_and_get_invoice
from tests.billing.agreements.test_commitments import create_commitment_terms
from tests.billing.agreements.test_minimums import create_test_minimum
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.documents.e_invoices.test_e_invoices import KESTREL
from tests.billing.documents.sample_documents import document_text, document_words
from tests.billing.histories import HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import LUMEN, create_october_invoice, set_billing_details, set_tax_rate

pytestmark = pytest.mark.django_db
GERMAN = document_format("de")
BERLIN = replace(KESTREL, language="de")


@pytest.fixture(autouse=True)
def _supplier(settings: Any, simulated_payments: None) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)


def test_german_documents_have_german_words_days_and_numbers() -> None:
    document = document_text(create_october_invoice(123456, party=BERLIN))
    assert (document.title, document.language) == ("Rechnung", "de")
    assert document.facts[:3] == (
        ("Ausgestellt", "1. November 2026"),
        ("Fällig", "15. November 2026"),
        ("Leistungszeitraum", "01.10.2026 – 31.10.2026"),
    )
    assert [column.head for column in document.columns] == ["#", "Beschreibung", "Menge", "Einheit", "Preis", "Betrag"]
    assert document.groups[0].rows[0][2:] == (TwoLineCell("1", "3.600 s"), "Std.", "1.234,56\xa0€", "1.234,56\xa0€")
    assert (document.sums[1].label, document.sums[1].amount) == ("USt 19 % auf 1.234,56\xa0€", "234,57\xa0€")
    assert dict(document.labels)["Page {page} of {pages}"] == "Seite {page} von {pages}"


def test_credit_notes_and_statements_follow_the_language_of_the_customer() -> None:
    invoice = create_october_invoice(2000, party=BERLIN)
    note = issue_note(invoice, {1: 100})
    document = document_text(note)
    assert document.title == "Gutschrift (Rechnungskorrektur)"
    assert document.groups[0].rows[0][6] == "19 %"
    assert [each.label for each in document.sums] == [
        "Zwischensumme",
        "USt 19 % auf 1,00\xa0€",
        "Gutgeschrieben",
        "Vom offenen Betrag abgezogen",
    ]
    with tenant_scope(invoice.tenant_id):
        account = account_entries.read_account(
            invoice.tenant_id, "EUR", since=utc("2026-01-01 00:00:00"), until=utc("2027-01-01 00:00:00")
        )
        statement = account_statement_document(invoice.tenant, account)
    assert [row[1] for row in statement.groups[0].rows] == [f"Rechnung {invoice}", f"Gutschrift {note}"]
    with tenant_scope(invoice.tenant_id):
        note = CreditNote.objects.select_related("invoice__period", "invoice__tenant").get(pk=note.pk)
    assert document_store.credit_note_pdf(note, now=NOW).pdf.startswith(b"%PDF")


def test_the_language_of_a_final_invoice_does_not_change() -> None:
    invoice = create_october_invoice(2000, party=BERLIN)
    set_billing_details(invoice.tenant, replace(BERLIN, language="en"))
    assert document_text(invoice).title == "Rechnung"


def test_every_line_has_quantity_unit_and_price() -> None:
    tenant, project = create_customer()
    set_billing_details(tenant, BERLIN)
    offering = create_priced_offering()
    create_commitment_terms(tenant, offering, 1, until=START.replace(day=3))
    add_ended_lease(project, offering, START, 90)
    create_test_minimum(tenant)
    invoice = close_and_get_invoice(tenant)
    invoice.tenant = tenant
    document = document_text(invoice)
    rows = [row for group in document.groups for row in group.rows]
    assert [row[2:5] for row in rows] == [
        (TwoLineCell("0,025", "90 s"), "Std.", "1,00\xa0€"),
        ("1", "Monat", "38,00\xa0€"),
        (TwoLineCell("23,975", "86.310 s"), "Std.", "0,50\xa0€"),
    ]
    assert "Nicht genutzte Abnahmeverpflichtung" in document_words(document)


def test_every_german_text_has_the_values_of_its_original() -> None:
    def values(text: str) -> list[str]:
        return sorted(part.partition("}")[0] for part in text.split("{")[1:])

    assert [english for english, german in GERMAN_TEXTS.items() if values(english) != values(german)] == []


def test_unknown_languages_are_english() -> None:
    assert document_format("xx") == document_format(Language.ENGLISH) == ENGLISH
    assert GERMAN.text("no such text") == "no such text"
    assert GERMAN.day_range(utc("2026-10-01 00:00:00"), utc("2026-10-02 00:00:00"), ZoneInfo("UTC")) == "01.10.2026"
    assert (GERMAN.rate(2_375_000_000, "EUR"), GERMAN.hours(HOUR + 1)) == ("2,375\xa0€", "1,0003")
    assert GERMAN.decimal(921_500, 6) == "0,9215"
