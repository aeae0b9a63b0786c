"""What papers say of tax, and of who charges whom."""

from typing import Any

import pytest

from billing.domain.papers import Paper
from billing.domain.parties import Party
from billing.services import drafts, rating
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit
from tests.billing.histories import customer, invoices
from tests.billing.papers.sheets import said
from tests.billing.payments.bills import NOW
from tests.billing.tax.papers import ATELIER, LUMEN, PERSON, SWISS, october, taxed, told, used

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _supplier(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    taxed("DE", 19)


def sums(paper: Paper) -> list[tuple[str, str]]:
    return [(each.label, each.amount) for each in paper.sums]


def treated(paper: Paper) -> str:
    return next((note.text for note in paper.notes if note.title == "VAT"), "")


def test_an_invoice_says_what_is_tax_and_who_owes_it() -> None:
    paper = said(october(200, 105, party=PERSON_IN_BERLIN))
    assert sums(paper) == [("Subtotal", "€3.05"), ("VAT 19 % of €3.05", "€0.58"), ("Total", "€3.63")]
    assert (paper.supplier.name, paper.supplier.lines) == (
        "Lumen Compute GmbH",
        ("Lichtweg 7", "10115 Berlin", "Germany", "VAT DE136695976", "books@lumen.example"),
    )
    assert paper.customer.lines[:3] == ("Lichtweg 8", "10115 Berlin", "Germany")
    assert (paper.headline.amount, treated(paper)) == ("€3.63", "")


PERSON_IN_BERLIN = Party("Marie Weiß", "Lichtweg 8", "", "10115", "Berlin", "DE")


def test_where_the_customer_owes_the_tax_it_says_by_which_law() -> None:
    paper = said(october(200, party=ATELIER))
    assert ("VAT 0 % of €2.00", "€0.00") in sums(paper)
    assert treated(paper).startswith("Reverse charge")
    assert "VAT FR40303265045" in paper.customer.lines
    assert treated(said(october(200, party=SWISS))).startswith("Not subject to VAT here")


def test_a_draft_names_both_as_they_are_and_a_rate_that_nobody_knows() -> None:
    tenant, project = customer()
    told(tenant, PERSON)
    used(project, 200)
    rating.rate_tenant(tenant, now=NOW)
    drafts.refresh(tenant, now=NOW)
    with as_tenant(tenant.pk):
        draft = invoices(tenant)[0]
    paper = said(draft)
    assert (paper.customer.name, paper.supplier.name) == ("Marie Blanc", "Lumen Compute GmbH")
    assert ("VAT of €2.00, rate not known", "€0.00") in sums(paper)


def test_a_credit_note_says_what_of_it_is_tax() -> None:
    invoice = october(200, 105)
    paper = said(credit(invoice, {1: 100}))
    assert sums(paper)[:3] == [("Before VAT", "€1.00"), ("VAT on it", "€0.19"), ("Given back", "€1.19")]
