"""Content and immutability of invoice and credit note PDFs."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from billing.domain.documents import DocumentParty, TwoLineCell
from billing.models import Invoice, StoredDocument
from billing.services.documents import document_store
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.models import Project, Tenant
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.credit_notes.issued_notes import (
    LATER,
    WHY,
    create_november_invoice,
    create_october_invoice_of,
    issue_note,
)
from tests.billing.documents.sample_documents import document_text, document_words, stored_documents
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_customer, create_priced_offering, set_price, utc
from tests.billing.payments.payable_invoices import (
    NOW,
    create_draft_invoice,
    create_final_invoice,
    process_payment,
    request_payment,
)

pytestmark = pytest.mark.django_db


def invoice_pdf(invoice: Invoice, **more: Any) -> document_store.PdfFile:
    """Return the PDF of an invoice."""
    return document_store.invoice_pdf(invoice, now=more.get("now", NOW))


def test_an_invoice_states_parties_dates_lines_and_amounts() -> None:
    october = create_october_invoice_of(200, 105)
    document = document_text(october)
    assert (document.title, document.number, document.draft) == ("Invoice", "2026-10-0001", False)
    assert document.customer == DocumentParty(tenant_of(october).name)
    assert document.foot == f"Invoice 2026-10-0001 · {october.pk} · {october.tenant_id}"
    assert document.supplier == DocumentParty("gpubroker")
    assert document.facts == (
        ("Issued", "1 November 2026"),
        ("Due", "15 November 2026"),
        ("Period", "1 – 31 October 2026"),
        ("Time zone", "UTC"),
        ("Currency", "EUR"),
    )
    assert (document.headline.amount, document.headline.words) == ("€3.05", "due by 15 November 2026")
    (group,) = document.groups
    assert group.amount == "€3.05"
    hour = TwoLineCell("1", "3,600 s")
    assert [row[2:] for row in group.rows] == [(hour, "h", "€2.00", "€2.00"), (hour, "h", "€1.05", "€1.05")]
    assert [(each.label, each.amount) for each in document.sums] == [("Total", "€3.05")]
    assert [note.code for note in document.notes if note.code] == ["python verify.py invoice-2026-10-0001.json"]
    assert october.pk in document.foot


def test_invoice_lines_are_grouped_by_project_and_state_price_changes() -> None:
    tenant, root = create_customer("Asia/Kolkata")
    with tenant_scope(tenant.pk):
        below = Project.objects.create(
            tenant=tenant, parent=root, path=[root.pk, "prj_below"], name="below", pk="prj_below",
            created_at=NOW,
        )  # fmt: skip
    offering = create_priced_offering(EURO)
    set_price(offering, 2_375 * EURO // 1000, since=utc("2026-10-14 19:00:00"))
    for project in (root, below):
        add_ended_lease(project, offering, utc("2026-10-14 18:00:00"), 2 * HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    october = close_month.close_period(tenant, "2026-10", now=NOW)
    assert october is not None
    document = document_text(october)
    assert sorted((group.name, group.amount) for group in document.groups) == sorted(
        [(root.name, "€3.38"), ("below", "€3.38")]
    )
    subs = {row[1].sub for group in document.groups for row in group.rows if isinstance(row[1], TwoLineCell)}
    assert subs == {"1 lease · on-demand, until 15 Oct", "1 lease · on-demand, from 15 Oct"}
    assert {row[4] for group in document.groups for row in group.rows} == {"€1.00", "€2.375"}
    assert ("Time zone", "Asia/Kolkata") in document.facts


def test_an_invoice_shows_what_the_balance_paid_and_what_is_due() -> None:
    october = create_october_invoice_of(200, 105)
    process_payment(request_payment(october))
    issue_note(october, {1: 150})
    partly = document_text(create_november_invoice(october, 200))
    assert [(each.label, each.amount) for each in partly.sums] == [
        ("Total", "€2.00"),
        ("Paid from your balance", "−€1.50"),
        ("Due", "€0.50"),
    ]
    assert partly.headline.more == "Of €2.00, €1.50 paid from your balance. It is collected automatically."


def test_an_invoice_covered_by_the_balance_has_no_amount_due() -> None:
    october = create_october_invoice_of(200, 105)
    process_payment(request_payment(october))
    issue_note(october, {1: 150})
    document = document_text(create_november_invoice(october, 100))
    assert (document.headline.amount, document.headline.words) == ("€0.00", "no amount due")
    assert document.headline.more == "Of €1.00, €1.00 paid from your balance."


def test_an_invoice_of_zero_has_no_amount_due() -> None:
    assert document_text(create_final_invoice(0)).headline.words == "no amount due"


def test_an_invoice_without_collection_asks_for_a_bank_transfer() -> None:
    october = create_october_invoice_of()
    october.collected = False
    assert document_text(october).headline.more == "Pay by bank transfer with the reference 2026-10-0001."


def test_a_draft_document_is_marked_as_draft_and_not_stored() -> None:
    open_ = create_draft_invoice()
    document = document_text(open_)
    assert (document.draft, document.headline.words) == (True, "so far")
    assert dict(document.facts)["As of"] == "1 November 2026"
    handed = invoice_pdf(open_)
    assert (handed.name, stored_documents(open_)) == ("invoice-2026-11-draft.pdf", [])


@pytest.mark.parametrize(("currency", "shown"), [("JPY", "¥2"), ("KWD", "KWD\xa02.000"), ("EUR", "€2.00")])
def test_document_amounts_have_the_decimals_of_their_currency(currency: str, shown: str) -> None:
    document = document_text(create_final_invoice(currency=currency))
    assert (document.sums[0].amount, document.groups[0].rows[0][4]) == (shown, shown)


def test_a_stored_pdf_keeps_its_bytes_after_renames_and_credit_notes() -> None:
    october = create_october_invoice_of()
    first = invoice_pdf(october)
    with tenant_scope(october.tenant_id):
        Project.objects.filter(tenant=october.tenant_id).update(name="renamed")
        Tenant.objects.filter(pk=october.tenant_id).update(name="another name")
    process_payment(request_payment(october))
    issue_note(october, {1: 150})
    with tenant_scope(october.tenant_id):
        again = Invoice.objects.select_related("period", "tenant").get(pk=october.pk)
    assert "renamed" in document_words(document_text(again))  # as it would be laid out now; who stood on it stays
    assert "another name" not in document_words(document_text(again))
    assert invoice_pdf(again, now=LATER) == first
    assert len(stored_documents(october)) == 1


def test_concurrent_pdf_requests_return_the_stored_document(monkeypatch: pytest.MonkeyPatch) -> None:
    october = create_october_invoice_of()
    lay = document_store.render_pdf

    def slowly(paper: Any, **_: Any) -> bytes:
        monkeypatch.setattr(document_store, "render_pdf", lay)
        invoice_pdf(october)  # somebody else, meanwhile
        return b"%PDF-another"

    monkeypatch.setattr(document_store, "render_pdf", slowly)
    assert invoice_pdf(october).pdf == bytes(stored_documents(october)[0].pdf) != b"%PDF-another"


def test_a_credit_note_shows_its_lines_amounts_reason_and_effect() -> None:
    october = create_october_invoice_of(200, 105)
    note = issue_note(october, {2: 50})
    document = document_text(note)
    assert (document.title, document.number, document.reason) == ("Credit note", "CN-2026-11-0001", WHY)
    assert document.headline.words == "credited of invoice 2026-10-0001"
    assert document.headline.more == "The amount due is reduced by €0.50."
    assert [(row[0], *row[4:]) for row in document.groups[0].rows] == [("2", "€1.05", "€1.05", "", "€0.50")]
    assert ("Invoice", "2026-10-0001") in document.facts


def test_a_credit_note_states_the_amount_added_to_the_balance() -> None:
    october = create_october_invoice_of(200, 105)
    process_payment(request_payment(october))
    note = issue_note(october, {2: 50})
    assert document_text(note).headline.more.startswith("€0.50 was already paid and is added to your balance")
    assert [each.label for each in document_text(note).sums] == ["Credited", "Added to your balance"]


def test_a_credit_note_pdf_is_stored_with_its_hashes() -> None:
    note = issue_note(create_october_invoice_of(), {2: 50})
    first = document_store.credit_note_pdf(note, now=NOW)
    assert first.name == "credit-note-CN-2026-11-0001.pdf"
    with staff_scope():  # as an operator's page asks
        assert document_store.credit_note_pdf(note, now=LATER) == first
    (paper,) = stored_documents(note)
    assert (paper.content_sha256, paper.pdf_sha256) == (document_text(note).sha256, first.sha256)


def test_a_pdf_first_requested_by_an_operator_is_stored_for_the_tenant() -> None:
    october = create_october_invoice_of()
    with staff_scope():
        found = Invoice.objects.select_related("period", "tenant").get(pk=october.pk)
        first = invoice_pdf(found)
    assert invoice_pdf(october, now=LATER) == first


def test_postgresql_refuses_stored_documents_of_drafts_and_of_other_tenants() -> None:
    october, other = create_october_invoice_of(), create_october_invoice_of()
    row = {"content_sha256": "x", "pdf": b"x", "pdf_sha256": "x", "made_at": NOW}
    for invoice in (october.pk, create_draft_of(other)):
        with (
            pytest.raises(DatabaseError, match="a final invoice, or of a credit note, of its tenant"),
            transaction.atomic(),
            tenant_scope(other.tenant_id),
        ):
            StoredDocument.objects.create(tenant_id=other.tenant_id, invoice_id=invoice, **row)


def create_draft_of(invoice: Invoice) -> str:
    with tenant_scope(invoice.tenant_id):
        month = invoice.period
        month.pk, month.label = None, "2030-01"
        month.span = (utc("2030-01-01 00:00:00"), utc("2030-02-01 00:00:00"))
        month.save(force_insert=True)
        made = Invoice.objects.create(tenant_id=invoice.tenant_id, period=month, currency="EUR", refreshed_at=NOW)
        return str(made.pk)


def tenant_of(invoice: Invoice) -> Tenant:
    with tenant_scope(invoice.tenant_id):
        return Tenant.objects.get(pk=invoice.tenant_id)


def test_documents_show_what_grants_paid_and_what_returns_to_them() -> None:
    tenant, project = create_customer()
    create_grant(tenant, 120)
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    october = close_month.close_period(tenant, "2026-10", now=NOW)
    assert october is not None
    document = document_text(october)
    assert [(each.label, each.amount) for each in document.sums] == [
        ("Total", "€2.00"),
        ("Paid by credits", "−€1.20"),
        ("Due", "€0.80"),
    ]
    assert document.headline.more.startswith("Of €2.00, €1.20 paid by credits.")
    note = document_text(issue_note(october))
    assert [(each.label, each.amount) for each in note.sums[1:]] == [
        ("Deducted from the amount due", "€0.80"),
        ("Returned to credits", "€1.20"),
    ]
    assert (
        note.headline.more == "The amount due is reduced by €0.80. €1.20 was paid by credits and is returned to them."
    )
