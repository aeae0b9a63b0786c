"""FOCUS by month: all papers of a tenant, or of all tenants."""

import csv
import io
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import Client

from billing.models import CreditNote, Invoice
from billing.services.cancellations.cancelled_invoices import cancel_and_reopen
from billing.services.documents.focus import charge_fields, focus_months
from ports import clock
from tenants.domain.roles import Role
from tenants.services.rls import staff_scope
from tests.billing.cancellations.test_cancelled_invoices import issue_again
from tests.billing.credit_notes.issued_notes import create_november_invoice, create_october_invoice_of, issue_note
from tests.billing.histories import OPERATOR
from tests.billing.payments.payable_invoices import NOW, create_final_invoice
from tests.simulation import create_tenant
from tests.tenants.tenant_setup import ApiClient
from web.http import downloads

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def rows_of(label: str, tenant_id: str = "") -> list[dict[str, str]]:
    """Return the rows of a month's file."""
    return list(csv.DictReader(io.StringIO("".join(focus_months.month_csv(label, tenant_id=tenant_id)))))


def costs(rows: list[dict[str, str]]) -> dict[str, Decimal]:
    """Return the billed cost by paper, in minor units."""
    found = dict[str, Decimal]()
    for row in rows:
        found[row["InvoiceId"]] = found.get(row["InvoiceId"], Decimal(0)) + Decimal(row["BilledCost"]) * 100
    return found


def test_month_has_the_invoice_its_credit_notes_and_the_one_that_replaces_it() -> None:
    old = create_october_invoice_of(200, 105)
    early = issue_note(old, {1: 80}, now=NOW - DAY)  # on the last day of October
    cancel_and_reopen(old, why="wrong address", actor=OPERATOR, now=NOW + DAY)
    new = issue_again(old)
    create_november_invoice(old, 100)
    october, november = (costs(rows_of(label, old.tenant_id)) for label in ("2026-10", "2026-11"))
    assert october == {str(old): 305, str(early): -80, str(new): 305}
    assert november == {"CN-2026-11-0001": -225, "CN-2026-11-0002": -80, "2026-11-0001": 100}


def test_all_months_add_up_to_all_papers_of_all_tenants() -> None:
    first, second = create_october_invoice_of(200, 105), create_final_invoice()
    issue_note(first, {1: 20})
    issue_note(second, {1: 30}, now=NOW + 40 * DAY)
    months = [rows_of(label) for label in ("2026-10", "2026-11", "2026-12")]
    assert {row["BillingAccountId"] for row in months[0]} == {first.tenant_id, second.tenant_id}
    with staff_scope():
        papers = sum(each.total for each in Invoice.objects.all()) - sum(n.total for n in CreditNote.objects.all())
    assert sum(sum(costs(rows).values()) for rows in months) == papers == 455
    assert rows_of("2026-10", second.tenant_id) == [
        row for row in months[0] if row["BillingAccountId"] == second.tenant_id
    ]


def test_large_months_are_streamed_without_an_open_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    create_october_invoice_of(*range(100, 130))
    monkeypatch.setattr(downloads, "MAX_UNSTREAMED", 500)
    answer = downloads.streamed_csv_response("focus.csv", focus_months.month_csv("2026-10"))
    assert isinstance(answer, StreamingHttpResponse)
    content = answer.streaming_content
    assert isinstance(content, Iterator)
    assert b"".join(content).count(b"\r\n") == 31


def test_tenants_download_their_month_only_by_page_and_api() -> None:
    create_final_invoice()
    owner = create_tenant("focus")
    api: Any = ApiClient(owner.token(Role.BILLING, now=NOW))
    answer = api.get("/api/v1/invoices/focus?month=2026-10")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert answer.content.decode() == ",".join(charge_fields.COLUMNS) + "\r\n"
    refused = api.get("/api/v1/invoices/focus?month=October")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "month")


def test_page_of_the_month_is_not_taken_for_an_invoice(client: Client) -> None:
    owner = create_tenant("focus")
    client.force_login(owner.create_member(Role.BILLING))
    with clock.frozen_at(NOW):
        answer = client.get("/invoices/focus/?month=2026-10")
        assert (answer.status_code, answer["Content-Disposition"]) == (200, 'attachment; filename="focus-2026-10.csv"')
        assert client.get("/invoices/focus/?month=1").status_code == 400
