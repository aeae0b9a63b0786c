"""Invalid credits, corrections and disputes are refused with a reason.
booked.
"""

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils.html import strip_tags

from billing.models import Correction, CreditNote, Dispute, Invoice, TenantCorrection
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from ports import clock
from tenants.domain.roles import Role
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.corrections.correction_setup import (
    BEN,
    approve_correction,
    create_ten_hour_lease,
    propose_correction,
)
from tests.billing.histories import EURO, HOUR, add_ended_lease, create_priced_offering, utc
from tests.billing.ledger.ledger_rows import transfers_of
from tests.billing.payments.payable_invoices import NOW
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.keyed_requests import post_keyed

pytestmark = pytest.mark.django_db
WHY = "it was down"


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


@pytest.fixture
def october(kestrel: TenantContext) -> Invoice:
    add_ended_lease(kestrel.project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


@pytest.fixture
def november(kestrel: TenantContext) -> Invoice:
    """A draft."""
    add_ended_lease(kestrel.project, create_priced_offering(2 * EURO), utc("2026-11-01 00:00:00"), 60)
    lease_rating.rate_tenant_leases(kestrel.tenant, now=NOW)
    drafts.refresh_drafts(kestrel.tenant, now=NOW)
    with tenant_scope(kestrel.tenant.pk):
        return Invoice.objects.get(status="draft")


@pytest.fixture
def api(kestrel: TenantContext) -> Any:
    return ApiClient(kestrel.token(Role.BILLING, now=NOW))


def words(answer: Any) -> str:
    return " ".join(unescape(strip_tags(answer.content.decode().replace("<", " <"))).split())


def void(invoice: Invoice) -> None:
    with tenant_scope(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")


def nothing(invoice: Invoice) -> bool:
    with tenant_scope(invoice.tenant_id):
        return not (Dispute.objects.exists() or CreditNote.objects.exists())


def test_a_void_invoice_is_not_credited(operator: Client, october: Invoice) -> None:
    before = transfers_of(october)
    void(october)
    typed = {"line-1": "0.50", "seen": "0", "reason": WHY}
    answer = operator.post(f"/ops/invoices/{october.pk}/", typed)
    assert answer.status_code == 409
    assert "This invoice is void." in words(answer)
    whole = operator.post(f"/ops/invoices/{october.pk}/credit/?seen=0", {"reason": WHY})
    assert "This invoice is void." in words(whole)
    for body in ({}, {"lines": [{"line": 1, "amount": "0.50"}]}):
        found = credit(operator, october, body)
        assert (found.status_code, found.json()["detail"]) == (409, "This invoice is void.")
    assert nothing(october)
    assert transfers_of(october) == before


def credit(operator: Client, invoice: Invoice, body: dict[str, Any]) -> Any:
    where = f"/api/v1/ops/invoices/{invoice.pk}/credit-note"
    return post_keyed(operator, where, {"credited": "0", "reason": WHY} | body)


def test_the_api_credits_a_part_once_and_then_the_remaining_amount(operator: Client, october: Invoice) -> None:
    part = {"lines": [{"line": 1, "amount": "0.50"}]}
    made = credit(operator, october, part)
    assert made.status_code == 201, made.content
    assert (made.json()["total"]["amount"], made.json()["tenant"]["name"]) == ("0.500000", "Kestrel")
    assert made.json()["lines"][0]["line"] == 1
    again = credit(operator, october, part)
    assert again.status_code == 409
    assert "has been credited" in again.json()["detail"]
    rest = credit(operator, october, {"credited": "0.50"})
    assert (rest.json()["total"]["amount"], rest.json()["reason"]) == ("1.500000", WHY)
    assert operator.get("/api/v1/ops/credit-notes").json()["total_estimate"] == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"lines": [{"line": 1, "amount": "2.01"}]}, "of line 1 can be credited"),
        ({"lines": [{"line": 9, "amount": "1"}]}, "The invoice has no line 9."),
        ({"lines": [{"line": 1, "amount": "0"}]}, "The credit for line 1 is zero"),
        ({"lines": [{"line": 1, "amount": "one"}]}, "'one' is not an amount in EUR"),
        ({"lines": [{"line": 1, "amount": "1"}, {"line": 1, "amount": "1"}]}, "Line 1 is listed twice."),
        ({"lines": []}, "lines"),
        ({"credited": "x"}, "'x' is not an amount in EUR"),
        ({"reason": "x" * 151}, "A reason must have 1 to 150 characters."),
    ],
)
def test_an_invalid_credit_is_refused_over_the_api_with_a_reason(
    body: dict[str, Any], said: str, operator: Client, october: Invoice
) -> None:
    answer = credit(operator, october, body)
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert nothing(october)


def test_a_draft_is_not_credited(operator: Client, november: Invoice) -> None:
    assert credit(operator, november, {}).json()["detail"] == "This invoice is draft."
    assert nothing(november)


@pytest.mark.parametrize("kind", ["void", "draft"])
def test_a_void_or_draft_invoice_cannot_be_disputed(
    kind: str, payer: Client, api: Any, october: Invoice, november: Invoice
) -> None:
    invoice = october if kind == "void" else november
    if kind == "void":
        void(october)
    page = payer.post(f"/invoices/{invoice.pk}/dispute/", {"line": "1", "reason": WHY}, follow=True)
    assert f"This invoice is {kind}." in words(page)
    body = {"invoice": invoice.pk, "lines": [{"line": 1}], "reason": WHY}
    answer = api.send("POST", "/api/v1/disputes", body)
    assert answer.status_code == 409
    assert f"This invoice is {kind}." in answer.json()["detail"]
    assert "Only lines of a final invoice" in answer.content.decode()
    assert nothing(invoice)
    shown = words(payer.get(f"/invoices/{invoice.pk}/?line=1"))
    assert "Dispute this charge" not in shown


@pytest.mark.parametrize("amount", ["2.01", "0", "-1", "1.005", "9" * 20, "one"])
def test_an_invalid_dispute_amount_is_refused(amount: str, payer: Client, api: Any, october: Invoice) -> None:
    typed = {"line": "1", "amount": amount, "reason": WHY}
    page = payer.post(f"/invoices/{october.pk}/dispute/", typed, follow=True)
    assert "Dispute opened" not in words(page)
    body = {"invoice": october.pk, "lines": [{"line": 1, "amount": amount}], "reason": WHY}
    answer = api.send("POST", "/api/v1/disputes", body)
    assert answer.status_code == 400
    assert len(answer.json()["detail"]) > 10
    assert nothing(october)


def test_a_correction_credits_at_most_the_charged_amount() -> None:
    _, _, lease = create_ten_hour_lease()
    first = propose_correction(lease, 0, 23)
    assert first.minor == 2000
    assert approve_correction(first).status == "booked"


def test_tenants_cannot_propose_corrections(payer: Client, api: Any, kestrel: TenantContext) -> None:
    _, _, lease = create_ten_hour_lease()
    span = {"since": "2026-10-05T02:00:00Z", "until": "2026-10-05T05:00:00Z", "reason": WHY}
    assert api.send("POST", f"/api/v1/ops/leases/{lease.pk}/correction", span).status_code in (401, 403, 404)
    typed = {
        "what": "back",
        "lease": lease.pk,
        "since": "2026-10-05 02:00",
        "until": "2026-10-05 05:00",
        "reason": WHY,
    }
    assert payer.post("/ops/corrections/", typed).status_code in (302, 403, 404)
    assert not Correction.objects.exists()


def test_a_lease_correction_is_booked_only_for_the_tenant_of_the_lease(kestrel: TenantContext) -> None:
    _, _, lease = create_ten_hour_lease()
    found = propose_correction(lease, 2, 5)
    with (
        tenant_scope(kestrel.tenant.pk),
        pytest.raises(DatabaseError, match="its own tenant"),
        transaction.atomic(),
    ):
        TenantCorrection.objects.create(tenant=kestrel.tenant, correction=found, diff=[], seal=found.seal, minor=-1)
    assert approve_correction(found, by=BEN).status == "booked"
    with staff_scope():
        assert [share.tenant_id for share in found.shares.all()] == [lease.tenant_id]
