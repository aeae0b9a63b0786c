"""Final papers are PDF/A-3, with metadata as validators such as veraPDF read it."""

from dataclasses import replace
from typing import Any

import pytest
from lxml import etree

from billing.models import CreditNote, Invoice
from billing.services.documents import document_store
from billing.services.documents.e_invoices.pdf_metadata import RDF, correct_metadata, read_metadata
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.documents.e_invoices.test_e_invoices import KESTREL, SUPPLIER
from tests.billing.payments.payable_invoices import NOW, create_final_invoice
from tests.billing.tax.taxed_tenants import create_october_invoice, set_tax_rate

pytestmark = pytest.mark.django_db
PDFA = "{http://www.aiim.org/pdfa/ns/id/}"


def pdf_of(paper: Invoice | CreditNote) -> bytes:
    """Return the stored PDF of an invoice or credit note."""
    if isinstance(paper, Invoice):
        return document_store.invoice_pdf(paper, now=NOW).pdf
    return document_store.credit_note_pdf(paper, now=NOW).pdf


def metadata_of(paper: Invoice | CreditNote) -> etree._Element:
    """Return the XMP metadata of a stored PDF, without its packet wrapper."""
    return etree.fromstring(read_metadata(pdf_of(paper))).find(f"{{{RDF}}}RDF")


@pytest.mark.parametrize("language", ["de", "en"])
def test_metadata_of_electronic_invoices_keeps_the_rules_of_xmp(
    settings: Any, simulated_payments: None, language: str
) -> None:
    settings.SUPPLIER = SUPPLIER.as_dict()
    set_tax_rate("DE", 19)
    invoice = create_october_invoice(2000, party=replace(KESTREL, language=language))
    for paper in (invoice, issue_note(invoice, {1: 100})):
        assert b'<rdf:RDF xmlns:rdf="' in read_metadata(pdf_of(paper))
        metadata = metadata_of(paper)
        about = {each.get(f"{{{RDF}}}about") for each in metadata.iter(f"{{{RDF}}}Description")}
        assert about == {""}
        assert metadata.findtext(f".//{PDFA}part") == "3"


def test_paper_without_an_electronic_invoice_is_archival_too(simulated_payments: None) -> None:
    metadata = metadata_of(create_final_invoice())
    described = metadata.find(f".//{{{RDF}}}Description")
    assert described is not None
    assert "3" in {described.get(f"{PDFA}part"), described.findtext(f"{PDFA}part")}


def test_correct_metadata_stays_as_it_is(simulated_payments: None) -> None:
    pdf = pdf_of(create_final_invoice())
    assert read_metadata(correct_metadata(pdf)) == read_metadata(pdf)
