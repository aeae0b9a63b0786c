"""Tax, seller and buyer on invoices and credit notes."""

from typing import Any

import pytest

from billing.domain.documents import Document
from billing.domain.parties import InvoiceParty
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating
from tenants.services.rls import tenant_scope
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.documents.sample_documents import document_text
from tests.billing.histories import create_customer, invoices_of
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import (
    ATELIER,
    LUMEN,
    PERSON,
    SWISS,
    charge_amounts,
    create_october_invoice,
    set_billing_details,
    set_tax_rate,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _supplier(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)


def document_sums(paper: Document) -> list[tuple[str, str]]:
    return [(each.label, each.amount) for each in paper.sums]


def vat_note(paper: Document) -> str:
    return next((note.text for note in paper.notes if note.title == "VAT"), "")


def test_an_invoice_states_its_tax_seller_and_buyer() -> None:
    paper = document_text(create_october_invoice(200, 105, party=PERSON_IN_BERLIN))
    assert document_sums(paper) == [("Subtotal", "€3.05"), ("VAT 19 % of €3.05", "€0.58"), ("Total", "€3.63")]
    assert (paper.supplier.name, paper.supplier.lines) == (
        "Lumen Compute GmbH",
        ("Lichtweg 7", "10115 Berlin", "Germany", "VAT number DE136695976", "books@lumen.example"),
    )
    assert paper.customer.lines[:3] == ("Lichtweg 8", "10115 Berlin", "Germany")
    assert (paper.headline.amount, vat_note(paper)) == ("€3.63", "")


PERSON_IN_BERLIN = InvoiceParty("Marie Weiß", "Lichtweg 8", "", "10115", "Berlin", "DE")


def test_an_invoice_without_domestic_vat_states_the_legal_reason() -> None:
    paper = document_text(create_october_invoice(200, party=ATELIER))
    assert ("VAT 0 % of €2.00", "€0.00") in document_sums(paper)
    assert vat_note(paper).startswith("Reverse charge")
    assert "VAT number FR40303265045" in paper.customer.lines
    assert vat_note(document_text(create_october_invoice(200, party=SWISS))).startswith("Not subject to VAT here")


def test_a_draft_shows_current_parties_and_an_unknown_tax_rate() -> None:
    tenant, project = create_customer()
    set_billing_details(tenant, PERSON)
    charge_amounts(project, 200)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    with tenant_scope(tenant.pk):
        draft = invoices_of(tenant)[0]
    paper = document_text(draft)
    assert (paper.customer.name, paper.supplier.name) == ("Marie Blanc", "Lumen Compute GmbH")
    assert ("VAT of €2.00, rate unknown", "€0.00") in document_sums(paper)


def test_a_credit_note_states_its_tax() -> None:
    invoice = create_october_invoice(200, 105)
    paper = document_text(issue_note(invoice, {1: 100}))
    assert document_sums(paper)[:3] == [("Subtotal", "€1.00"), ("VAT 19 % of €1.00", "€0.19"), ("Credited", "€1.19")]
