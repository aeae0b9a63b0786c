"""Document downloads on pages and over the API, for tenants and operators."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from billing.models import Invoice
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from ports import clock
from tenants.domain.roles import Role
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.histories import HOUR, add_ended_lease, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


@pytest.fixture
def october(kestrel: TenantContext) -> Invoice:
    add_ended_lease(kestrel.project, create_priced_offering(2 * 10**9), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def pdf(answer: Any, name: str) -> bytes:
    """Return the bytes of an answer that is this file."""
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/pdf")
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer.content.startswith(b"%PDF-")
    return bytes(answer.content)


def test_tenants_and_operators_download_the_same_invoice_pdf(
    kestrel: TenantContext, payer: Client, operator: Client, october: Invoice
) -> None:
    name = "invoice-2026-10-0001.pdf"
    seen = pdf(operator.get(f"/ops/invoices/{october.pk}/pdf/"), name)
    assert pdf(payer.get(f"/invoices/{october.pk}/pdf/"), name) == seen
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    assert pdf(api.send("GET", f"invoices/{october.pk}/pdf"), name) == seen
    assert pdf(operator.get(f"/api/v1/ops/invoices/{october.pk}/pdf"), name) == seen


def test_tenants_and_operators_download_the_same_credit_note_pdf(
    kestrel: TenantContext, payer: Client, operator: Client, october: Invoice
) -> None:
    note, name = issue_note(october, {1: 50}), "credit-note-CN-2026-11-0001.pdf"
    seen = pdf(payer.get(f"/credit-notes/{note.pk}/pdf/"), name)
    assert pdf(operator.get(f"/ops/credit-notes/{note.pk}/pdf/"), name) == seen
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    assert pdf(api.send("GET", f"credit-notes/{note.pk}/pdf"), name) == seen
    assert pdf(operator.get(f"/api/v1/ops/credit-notes/{note.pk}/pdf"), name) == seen


def test_an_unchanged_pdf_is_answered_as_not_modified(kestrel: TenantContext, payer: Client, october: Invoice) -> None:
    path = f"/invoices/{october.pk}/pdf/"
    tag = payer.get(path)["ETag"]
    answer = payer.get(path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")
    api = Client(headers={"Authorization": f"Bearer {kestrel.token(Role.BILLING, now=NOW)}"})
    path = f"/api/v1/invoices/{october.pk}/pdf"
    assert api.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert api.get(path, headers={"Accept": "application/pdf"}).status_code == 200


def test_pages_link_to_documents_and_unknown_documents_return_404(
    payer: Client, operator: Client, october: Invoice
) -> None:
    note = issue_note(october, {1: 50})
    for client, where in ((payer, ""), (operator, "/ops")):
        shown = client.get(f"{where}/invoices/{october.pk}/").content.decode()
        assert f'href="{where}/invoices/{october.pk}/pdf/"' in shown
        assert f'href="{where}/credit-notes/{note.pk}/pdf/"' in shown
        for path in ("invoices/inv_none/pdf/", "credit-notes/crn_none/pdf/"):
            assert client.get(f"{where}/{path}").status_code == 404
