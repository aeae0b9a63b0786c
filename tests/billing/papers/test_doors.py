"""Papers at the doors: on pages, over the API, for tenants and for operators."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from billing.models import Invoice
from billing.services import closing, rating
from ports import clock
from tenants.domain.roles import Role
from tests.billing.credits.notes import credit
from tests.billing.histories import HOUR, at, ran, sold
from tests.billing.payments.bills import NOW
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


@pytest.fixture
def october(kestrel: Home) -> Invoice:
    ran(kestrel.project, sold(2 * 10**9), at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=NOW)
    found = closing.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def pdf(answer: Any, name: str) -> bytes:
    """Return the bytes of an answer that is this file."""
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/pdf")
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer.content.startswith(b"%PDF-")
    return bytes(answer.content)


def test_everybody_who_may_have_an_invoice_gets_the_same_bytes(
    kestrel: Home, payer: Client, operator: Client, october: Invoice
) -> None:
    name = "invoice-2026-10-0001.pdf"
    seen = pdf(operator.get(f"/ops/invoices/{october.pk}/pdf/"), name)
    assert pdf(payer.get(f"/invoices/{october.pk}/pdf/"), name) == seen
    api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
    assert pdf(api.ask("GET", f"invoices/{october.pk}/pdf"), name) == seen
    assert pdf(operator.get(f"/api/v1/ops/invoices/{october.pk}/pdf"), name) == seen


def test_everybody_who_may_have_a_credit_note_gets_the_same_bytes(
    kestrel: Home, payer: Client, operator: Client, october: Invoice
) -> None:
    note, name = credit(october, {1: 50}), "credit-note-CN-2026-11-0001.pdf"
    seen = pdf(payer.get(f"/credit-notes/{note.pk}/pdf/"), name)
    assert pdf(operator.get(f"/ops/credit-notes/{note.pk}/pdf/"), name) == seen
    api: Any = Api(kestrel.token(Role.BILLING, now=NOW))
    assert pdf(api.ask("GET", f"credit-notes/{note.pk}/pdf"), name) == seen
    assert pdf(operator.get(f"/api/v1/ops/credit-notes/{note.pk}/pdf"), name) == seen


def test_whoever_has_it_already_is_told_so(kestrel: Home, payer: Client, october: Invoice) -> None:
    path = f"/invoices/{october.pk}/pdf/"
    tag = payer.get(path)["ETag"]
    answer = payer.get(path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")
    api = Client(headers={"Authorization": f"Bearer {kestrel.token(Role.BILLING, now=NOW)}"})
    path = f"/api/v1/invoices/{october.pk}/pdf"
    assert api.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert api.get(path, headers={"Accept": "application/pdf"}).status_code == 200


def test_pages_lead_to_papers_and_what_is_not_there_is_said(
    payer: Client, operator: Client, october: Invoice
) -> None:
    note = credit(october, {1: 50})
    for client, where in ((payer, ""), (operator, "/ops")):
        shown = client.get(f"{where}/invoices/{october.pk}/").content.decode()
        assert f'href="{where}/invoices/{october.pk}/pdf/"' in shown
        assert f'href="{where}/credit-notes/{note.pk}/pdf/"' in shown
        for path in ("invoices/inv_none/pdf/", "credit-notes/crn_none/pdf/"):
            assert client.get(f"{where}/{path}").status_code == 404
