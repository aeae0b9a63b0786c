"""Operators' pages for money by bank transfer, write-offs, reviews and invoices issued again."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from billing.models import BankEntry, BankReceipt, BillingPeriod, Grant, Invoice
from ports import clock
from tenants.models import User
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.grants.grant_setup import create_grant
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, reload_invoice
from tests.web.portal.page_text import page_words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments")]


@pytest.fixture
def operator(settings: Any) -> Iterator[Client]:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    with clock.frozen_at(NOW + timedelta(days=30)):
        yield client


def record(operator: Client, invoice: Invoice, **fields: str) -> Any:
    typed = {"tenant": invoice.tenant_id, "amount": "1.50", "received_on": "2026-11-05", "pays": "oldest", "key": "k"}
    return operator.post("/ops/bank-receipts/", typed | fields, follow=True)


def test_recorded_transfer_is_listed_with_what_it_paid_and_who_recorded_it(operator: Client) -> None:
    invoice = create_final_invoice()
    shown = page_words(record(operator, invoice, reference="2026-10-0001"))
    assert "€1.50 of" in shown
    assert "2026-10-0001: €1.50" in shown
    assert reload_invoice(invoice).status == "partially_paid"
    with staff_scope():
        receipt = BankReceipt.objects.get()
    assert receipt.recorded_by == "operator@example.org"
    assert "Received on 5 Nov 2026, recorded by operator@example.org" in page_words(
        operator.get(f"/ops/bank-receipts/{receipt.pk}/")
    )


def test_form_sent_twice_records_once_and_wrong_input_is_explained(operator: Client) -> None:
    invoice = create_final_invoice()
    record(operator, invoice)
    record(operator, invoice)
    assert reload_invoice(invoice).received == 150
    answer = record(operator, invoice, key="other", pays="invoices", invoices="2026-10-0099")
    assert answer.status_code == 400
    assert "2026-10-0099 is no invoice of" in answer.content.decode()
    assert 'value="2026-10-0099"' in answer.content.decode()
    assert 'value="2026-11-05"' in answer.content.decode()


def test_reversal_asks_for_a_reason_and_makes_the_invoice_due(operator: Client) -> None:
    invoice = create_final_invoice()
    record(operator, invoice, amount="2.00")
    with staff_scope():
        pk = BankReceipt.objects.get().pk
    assert operator.post(f"/ops/bank-receipts/{pk}/reverse/", {"reason": ""}).status_code == 400
    shown = page_words(operator.post(f"/ops/bank-receipts/{pk}/reverse/", {"reason": "typed twice"}, follow=True))
    assert "reversed" in shown
    assert reload_invoice(invoice).status == "finalized"


def test_imported_statement_is_confirmed_on_its_page(operator: Client) -> None:
    invoice = create_final_invoice()
    text = f"date,amount,currency,payer,remittance\n2026-11-05,2.00,EUR,Kestrel,Invoice {invoice}\n"
    file = SimpleUploadedFile("november.csv", text.encode(), content_type="text/csv")
    shown = page_words(operator.post("/ops/bank-entries/", {"file": file, "currency": "EUR"}, follow=True))
    assert "1 new entry of 1" in shown
    assert "names the invoice and pays what is due" in shown
    assert "Book 1 exact match" in shown
    again = SimpleUploadedFile("november.csv", text.encode(), content_type="text/csv")
    assert "was imported before; nothing changed" in page_words(
        operator.post("/ops/bank-entries/", {"file": again, "currency": "EUR"}, follow=True)
    )
    pk = BankEntry.objects.get().pk
    assert f'value="{invoice}"' in operator.get(f"/ops/bank-entries/{pk}/").content.decode()
    assert "1 transfer booked" in page_words(operator.post("/ops/bank-entries/", {"verb": "book"}, follow=True))
    assert reload_invoice(invoice).status == "paid"


def test_unreadable_file_is_refused_with_a_way_out(operator: Client) -> None:
    file = SimpleUploadedFile("x.xml", b"<html/>")
    answer = operator.post("/ops/bank-entries/", {"file": file})
    assert answer.status_code == 400
    assert "Export the statement as CAMT.053 or CSV" in answer.content.decode()


def test_invoice_is_written_off_and_made_due_again(operator: Client) -> None:
    invoice = create_final_invoice()
    page = f"/ops/invoices/{invoice.pk}/"
    assert "Write off" in page_words(operator.get(page))
    operator.post(f"{page}write-off/", {"reason": "insolvent"})
    assert reload_invoice(invoice).status == "uncollectible"
    again = operator.get(f"{page}write-off/")
    assert again["Location"] == page, "nothing is left to write off"
    assert "Make due again" in page_words(operator.get(page))
    operator.post(f"{page}reinstate/", {"reason": "they answered"})
    assert reload_invoice(invoice).status == "finalized"


def test_invoice_is_cancelled_and_its_month_approved(operator: Client) -> None:
    invoice = create_final_invoice()
    shown = page_words(operator.post(f"/ops/invoices/{invoice.pk}/rebill/", {"reason": "wrong price"}, follow=True))
    assert "is cancelled. Correct the month, then approve it" in shown
    reviews = page_words(operator.get("/ops/month-reviews/"))
    assert "was cancelled: wrong price" in reviews
    with tenant_scope(invoice.tenant_id):
        month = BillingPeriod.objects.get(pk=invoice.period_id)
    shown = page_words(operator.post(f"/ops/month-reviews/{month.pk}/approve/", follow=True))
    assert "2026-10 of" in shown
    assert "approved" in shown
    operator.post(f"/ops/month-reviews/{month.pk}/hold/", {"reason": "wait"})
    operator.post(f"/ops/month-reviews/{month.pk}/release/")
    with tenant_scope(invoice.tenant_id):
        assert BillingPeriod.objects.get(pk=month.pk).held_at is None


def test_credit_is_taken_back_from_the_list(operator: Client) -> None:
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        grant = create_grant(invoice.tenant, 500)
    assert "Take back" in page_words(operator.get("/ops/grants/"))
    shown = page_words(operator.post(f"/ops/grants/{grant.pk}/revoke/", {"reason": "trial over"}, follow=True))
    assert "€5.00 of credit taken back" in shown
    assert "taken back: trial over" in shown
    with staff_scope():
        assert Grant.objects.get().lapse.revoked_by == "operator@example.org"
