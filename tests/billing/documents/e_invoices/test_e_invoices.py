"""Electronic invoices and credit notes: Factur-X in the PDF, and XRechnung."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import facturx
import pytest
from django.test import Client
from lxml import etree

from billing.domain.parties import InvoiceParty
from billing.models import CreditNote, Invoice, StoredDocument
from billing.services.documents import document_store, pdf_rendering
from billing.services.documents.e_invoices.e_invoice_files import factur_x_xml, xrechnung_xml
from billing.services.documents.e_invoices.e_invoice_offers import EInvoiceOffer, offered_e_invoices
from billing.services.documents.e_invoices.invoice_parties import EInvoiceImpossible
from billing.services.documents.invoice_documents import invoice_document
from ports import clock
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import START, close_and_get_invoice, create_discount
from tests.billing.agreements.test_commitments import create_commitment_terms
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.documents.e_invoices.schematron import failed_rules, failed_xrechnung_rules
from tests.billing.histories import HOUR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW, create_draft_invoice
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
from tests.simulation import create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
SUPPLIER = replace(LUMEN, phone="+49 30 1234567")
KESTREL = InvoiceParty(
    "Kestrel GmbH", "Weg 1", "", "10115", "Berlin", "DE", "DE811907980", "rechnung@kestrel.example", language="de"
)
RAM = "{urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100}"


@pytest.fixture(autouse=True)
def _supplier(settings: Any, simulated_payments: None) -> None:
    """Sell as a German supplier with the VAT rates of Germany and France."""
    settings.SUPPLIER = SUPPLIER.as_dict()
    set_tax_rate("DE", 19)
    set_tax_rate("FR", 20)


def in_scope(of: Invoice | CreditNote) -> Any:
    return tenant_scope(of.tenant_id)


def reloaded(invoice: Invoice) -> Invoice:
    with in_scope(invoice):
        return Invoice.objects.select_related("period", "tenant").get(pk=invoice.pk)


def written_xml(of: Invoice | CreditNote) -> bytes:
    with in_scope(of):
        found = factur_x_xml(of)
    assert found is not None
    return found


def value(xml: bytes, name: str) -> str:
    return etree.fromstring(xml).find(f".//{RAM}{name}").text


def committed_invoice() -> Invoice:
    tenant, project = create_customer()
    set_billing_details(tenant, KESTREL)
    offering = create_priced_offering(1_234_567_891)
    create_commitment_terms(tenant, offering, 2, until=START.replace(day=3))
    add_ended_lease(project, offering, START, 10 * HOUR + 1, quantity=3)
    create_discount(tenant, percent_bp=1234)
    return reloaded(close_and_get_invoice(tenant))


@pytest.mark.parametrize("party", [KESTREL, ATELIER, PERSON, SWISS], ids=lambda party: party.country + party.vat_id[:2])
def test_invoices_of_every_tax_treatment_are_valid(party: InvoiceParty) -> None:
    invoice = reloaded(create_october_invoice(1999, 105, party=party))
    xml = written_xml(invoice)
    assert failed_rules(xml) == []
    assert Decimal(value(xml, "GrandTotalAmount")) * 100 == invoice.total
    assert Decimal(value(xml, "TaxTotalAmount")) * 100 == invoice.tax


def test_discounts_and_commitments_are_allowances_of_exact_quantities() -> None:
    invoice = committed_invoice()
    xml = written_xml(invoice)
    assert failed_rules(xml) == []
    assert value(xml, "BilledQuantity") == str(30 * HOUR + 3)
    assert (value(xml, "ChargeAmount"), value(xml, "BasisQuantity")) == ("123456.7891", "360000000")
    assert "commitment" in value(xml, "Reason") or "Abnahmeverpflichtung" in value(xml, "Reason")
    assert Decimal(value(xml, "DuePayableAmount")) * 100 == invoice.total


def test_a_credit_note_names_its_invoice_and_is_valid() -> None:
    invoice = reloaded(create_october_invoice(1999, 105, party=KESTREL))
    note = issue_note(invoice, {1: 999})
    with in_scope(note):
        note = CreditNote.objects.select_related("invoice__period", "invoice__tenant").get(pk=note.pk)
    xml = written_xml(note)
    assert failed_rules(xml) == []
    assert value(xml, "TypeCode") == "381"
    assert etree.fromstring(xml).find(f".//{RAM}InvoiceReferencedDocument/{RAM}IssuerAssignedID").text == str(invoice)
    assert Decimal(value(xml, "GrandTotalAmount")) * 100 == note.total


def test_an_invoice_names_the_account_to_transfer_to_and_the_order(settings: Any) -> None:
    settings.SUPPLIER_BANK = {"iban": "DE02120300000000202051", "bic": "BYLADEM1001", "bank": "DKB", "holder": "Lumen"}
    invoice = reloaded(create_october_invoice(1999, party=KESTREL))
    invoice.po_number, invoice.collected = "PO-4711", False
    with in_scope(invoice):
        xml = xrechnung_xml(invoice)
    assert (value(xml, "IBANID"), value(xml, "BICID")) == ("DE02120300000000202051", "BYLADEM1001")
    assert value(xml, "BuyerReference") == "PO-4711"
    assert b"PO-4711" in etree.tostring(etree.fromstring(xml).find(f".//{RAM}BuyerOrderReferencedDocument"))
    assert failed_xrechnung_rules(xml) == []


def test_the_pdf_of_an_invoice_contains_its_electronic_invoice() -> None:
    invoice = reloaded(create_october_invoice(1999, party=KESTREL))
    pdf = document_store.invoice_pdf(invoice, now=NOW).pdf
    name, xml = facturx.get_xml_from_pdf(pdf, check_xsd=True)
    assert (name, xml) == ("factur-x.xml", written_xml(invoice))
    assert b"pdfaid" in pdf or b"/OutputIntents" in pdf
    assert document_store.invoice_pdf(invoice, now=NOW).pdf == pdf


def test_without_an_address_the_pdf_has_no_electronic_invoice() -> None:
    invoice = reloaded(create_october_invoice(1999))
    assert facturx.get_xml_from_pdf(document_store.invoice_pdf(invoice, now=NOW).pdf, check_xsd=False) == (False, False)


def test_xrechnung_names_its_own_rules_and_all_that_they_require() -> None:
    invoice = reloaded(create_october_invoice(1999, party=KESTREL))
    with in_scope(invoice):
        xml = xrechnung_xml(invoice)
    assert value(xml, "BusinessProcessSpecifiedDocumentContextParameter/" + RAM + "ID").startswith("urn:fdc:peppol")
    guideline = etree.fromstring(xml).find(f".//{RAM}GuidelineSpecifiedDocumentContextParameter/{RAM}ID").text
    assert guideline.endswith("xrechnung_3.0")
    # BR-DE-15, -2, -5, -6, -7, -27: buyer's reference, and the seller's contact
    assert value(xml, "BuyerReference") == invoice.tenant_id
    assert value(xml, "CompleteNumber") == SUPPLIER.phone
    assert value(xml, "URIID") == SUPPLIER.email
    assert value(xml, "PersonName") == SUPPLIER.name
    assert failed_rules(xml.replace(b"#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0", b"")) == []
    assert failed_xrechnung_rules(xml) == []
    assert len(failed_xrechnung_rules(xml.replace(b"BuyerReference", b"OtherReference"))) == 1  # BR-DE-15


@pytest.mark.parametrize("party", [ATELIER, SWISS], ids=lambda party: party.country)
def test_xrechnung_is_valid_without_tax(party: InvoiceParty) -> None:
    invoice = reloaded(create_october_invoice(1999, party=replace(party, email="books@kestrel.example")))
    with in_scope(invoice):
        assert failed_xrechnung_rules(xrechnung_xml(invoice)) == []


def test_xrechnung_of_discounts_and_credit_notes_is_valid() -> None:
    invoice = committed_invoice()
    note = issue_note(invoice, {1: 99}, now=utc("2026-12-02 00:00:00"))
    with in_scope(note):
        note = CreditNote.objects.select_related("invoice__period", "invoice__tenant").get(pk=note.pk)
        assert failed_xrechnung_rules(xrechnung_xml(invoice)) == []
        assert failed_xrechnung_rules(xrechnung_xml(note)) == []


def test_xrechnung_says_what_is_missing() -> None:
    drafted = create_draft_invoice()
    nobody = reloaded(create_october_invoice(1999))
    person = reloaded(create_october_invoice(1999, party=PERSON))
    for invoice, words in (
        (reloaded(drafted), "draft"),
        (nobody, "The customer of this invoice has no country"),
        (person, "no email"),
    ):
        with in_scope(invoice), pytest.raises(EInvoiceImpossible, match=words):
            xrechnung_xml(invoice)


def test_xrechnung_needs_the_phone_number_of_the_supplier(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    invoice = reloaded(create_october_invoice(1999, party=KESTREL))
    with in_scope(invoice), pytest.raises(EInvoiceImpossible, match="phone"):
        xrechnung_xml(invoice)


def test_an_invoice_without_a_supplier_has_no_electronic_invoice(settings: Any) -> None:
    settings.SUPPLIER = {**LUMEN.as_dict(), "name": ""}
    invoice = reloaded(create_october_invoice(1999, party=KESTREL))
    with in_scope(invoice):
        assert factur_x_xml(invoice) is None
        with pytest.raises(EInvoiceImpossible, match="names no supplier"):
            xrechnung_xml(invoice)


def test_page_and_api_return_the_same_xrechnung() -> None:
    with clock.frozen_at(NOW):
        kestrel = create_tenant("Kestrel")
        set_billing_details(kestrel.tenant, KESTREL)
        charge_amounts(kestrel.project, 1999)
        invoice = close_taxed_month(kestrel.tenant)
        note = issue_note(invoice, {1: 99})
        payer, api = Client(), ApiClient(kestrel.token(Role.BILLING, now=NOW))
        payer.force_login(kestrel.create_member(Role.BILLING))
        for path in (f"invoices/{invoice.pk}/xrechnung", f"credit-notes/{note.pk}/xrechnung"):
            seen = payer.get(f"/{path}/")
            assert (seen.status_code, seen["Content-Type"]) == (200, "application/xml; charset=utf-8")
            assert seen["Content-Disposition"].endswith('-xrechnung.xml"')
            answer: Any = api.send("GET", path)
            assert answer.content == seen.content
            assert failed_xrechnung_rules(seen.content) == []
        assert f"/invoices/{invoice.pk}/xrechnung/" in payer.get(f"/invoices/{invoice.pk}/").content.decode()


def test_invoice_stored_before_electronic_invoices_has_one_on_request() -> None:
    with clock.frozen_at(NOW):
        kestrel = create_tenant("kestrel")
        set_billing_details(kestrel.tenant, KESTREL)
        charge_amounts(kestrel.project, 1000)
        invoice = close_taxed_month(kestrel.tenant)
        with in_scope(invoice):
            assert offered_e_invoices(invoice) == EInvoiceOffer(factur_x=True, xrechnung=True, embedded=True)
            plain = pdf_rendering.render_pdf(invoice_document(invoice), at=NOW)
            StoredDocument.objects.create(
                tenant=kestrel.tenant,
                invoice=invoice,
                content_sha256="0" * 64,
                pdf=plain,
                pdf_sha256="1" * 64,
                made_at=NOW,
            )
            assert offered_e_invoices(invoice) == EInvoiceOffer(factur_x=True, xrechnung=True, embedded=False)
        payer, api = Client(), ApiClient(kestrel.token(Role.BILLING, now=NOW))
        payer.force_login(kestrel.create_member(Role.BILLING))
        page = payer.get(f"/invoices/{invoice.pk}/").content.decode()
        assert "The PDF is from before PDFs contained an electronic invoice" in page
        assert "?profile=factur-x" in page
        xml = payer.get(f"/invoices/{invoice.pk}/xrechnung/?profile=factur-x")
        same: Any = api.send("GET", f"invoices/{invoice.pk}/xrechnung?profile=factur-x")
        assert (xml.content, xml["Content-Disposition"]) == (same.content, same["Content-Disposition"])
        assert failed_rules(xml.content) == []
        assert document_store.invoice_pdf(invoice, now=NOW).pdf == plain
        assert api.send("GET", f"invoices/{invoice.pk}/xrechnung?profile=ubl").status_code == 400


def test_page_says_why_there_is_no_electronic_invoice() -> None:
    with clock.frozen_at(NOW):
        kestrel = create_tenant("kestrel")
        set_billing_details(kestrel.tenant, ATELIER)
        charge_amounts(kestrel.project, 1000)
        invoice = close_taxed_month(kestrel.tenant)
        payer = Client()
        payer.force_login(kestrel.create_member(Role.BILLING))
        page = payer.get(f"/invoices/{invoice.pk}/").content.decode()
    assert "There is no XRechnung:" in page
    assert "The customer of this invoice has no email." in page
