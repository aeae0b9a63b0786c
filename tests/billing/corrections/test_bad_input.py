"""What cannot be given back, corrected or disputed: each is refused in words, on pages and over the API, and nothing is
booked.
"""

from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils.html import strip_tags

from billing.models import Correction, CorrectionShare, CreditNote, Dispute, Invoice
from billing.services import closing, drafts, rating
from ports import clock
from tenants.domain.roles import Role
from tenants.services.walls import as_staff, as_tenant
from tests.billing.corrections.corrected import BEN, approved, proposed, ten_hours
from tests.billing.histories import EURO, HOUR, at, ran, sold
from tests.billing.ledger.ledgers import booked
from tests.billing.payments.bills import NOW
from tests.tenants.people import Api
from tests.world import Home

pytestmark = pytest.mark.django_db
WHY = "it was down"


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


@pytest.fixture
def october(kestrel: Home) -> Invoice:
    ran(kestrel.project, sold(2 * EURO), at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=NOW)
    found = closing.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


@pytest.fixture
def november(kestrel: Home) -> Invoice:
    """A draft."""
    ran(kestrel.project, sold(2 * EURO), at("2026-11-01 00:00:00"), 60)
    rating.rate_tenant(kestrel.tenant, now=NOW)
    drafts.refresh(kestrel.tenant, now=NOW)
    with as_tenant(kestrel.tenant.pk):
        return Invoice.objects.get(status="draft")


@pytest.fixture
def api(kestrel: Home) -> Any:
    return Api(kestrel.token(Role.BILLING, now=NOW))


def words(answer: Any) -> str:
    return " ".join(unescape(strip_tags(answer.content.decode().replace("<", " <"))).split())


def void(invoice: Invoice) -> None:
    with as_tenant(invoice.tenant_id):
        Invoice.objects.filter(pk=invoice.pk).update(status="void")


def nothing(invoice: Invoice) -> bool:
    with as_tenant(invoice.tenant_id):
        return not (Dispute.objects.exists() or CreditNote.objects.exists())


def test_a_void_invoice_is_not_credited(operator: Client, october: Invoice) -> None:
    before = booked(october)
    void(october)
    typed = {"line-1": "0.50", "seen": "0", "reason": WHY}
    answer = operator.post(f"/ops/invoices/{october.pk}/", typed)
    assert answer.status_code == 409
    assert "This invoice is void." in words(answer)
    whole = operator.post(f"/ops/invoices/{october.pk}/give-back/?seen=0", {"reason": WHY})
    assert "This invoice is void." in words(whole)
    for body in ({}, {"lines": [{"n": 1, "amount": "0.50"}]}):
        told = put(operator, october, body)
        assert (told.status_code, told.json()["detail"]) == (409, "This invoice is void.")
    assert nothing(october)
    assert booked(october) == before


def put(operator: Client, invoice: Invoice, body: dict[str, Any]) -> Any:
    where = f"/api/v1/ops/invoices/{invoice.pk}/credit-note"
    return operator.put(where, {"seen": "0", "reason": WHY} | body, content_type="application/json")


def test_over_the_api_it_is_given_back_once_and_then_all_of_it(operator: Client, october: Invoice) -> None:
    part = {"lines": [{"n": 1, "amount": "0.50"}]}
    made = put(operator, october, part)
    assert made.status_code == 200, made.content
    assert (made.json()["total"]["amount"], made.json()["tenant"]["name"]) == ("0.500000", "Kestrel")
    assert made.json()["lines"][0]["n"] == 1
    again = put(operator, october, part)
    assert again.status_code == 409
    assert "was given back by now" in again.json()["detail"]
    rest = put(operator, october, {"seen": "0.50"})
    assert (rest.json()["total"]["amount"], rest.json()["reason"]) == ("1.500000", WHY)
    assert operator.get("/api/v1/ops/credit-notes").json()["total_estimate"] == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"lines": [{"n": 1, "amount": "2.01"}]}, "Of line 1 no more than"),
        ({"lines": [{"n": 9, "amount": "1"}]}, "It has no line 9."),
        ({"lines": [{"n": 1, "amount": "0"}]}, "nothing would be given back"),
        ({"lines": [{"n": 1, "amount": "one"}]}, "'one' is no amount of EUR"),
        ({"lines": [{"n": 1, "amount": "1"}, {"n": 1, "amount": "1"}]}, "Line 1 is named twice."),
        ({"lines": []}, "lines"),
        ({"seen": "x"}, "'x' is no amount of EUR"),
        ({"reason": "x" * 151}, "A reason has 1 to 150 characters."),
    ],
)
def test_what_cannot_be_given_back_is_said_over_the_api(
    body: dict[str, Any], said: str, operator: Client, october: Invoice
) -> None:
    answer = put(operator, october, body)
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert nothing(october)


def test_a_draft_is_not_credited(operator: Client, november: Invoice) -> None:
    assert put(operator, november, {}).json()["detail"] == "This invoice is draft."
    assert nothing(november)


@pytest.mark.parametrize("kind", ["void", "draft"])
def test_what_is_void_or_a_draft_is_not_disputed(
    kind: str, payer: Client, api: Any, october: Invoice, november: Invoice
) -> None:
    invoice = october if kind == "void" else november
    if kind == "void":
        void(october)
    page = payer.post(f"/invoices/{invoice.pk}/dispute/", {"line": "1", "reason": WHY}, follow=True)
    assert f"This invoice is {kind}." in words(page)
    body = {"invoice": invoice.pk, "lines": [{"n": 1}], "reason": WHY}
    answer = api.ask("POST", "/api/v1/disputes", body)
    assert answer.status_code == 409
    assert f"This invoice is {kind}." in answer.json()["detail"]
    assert "Only lines of a final invoice" in answer.content.decode()
    assert nothing(invoice)
    shown = words(payer.get(f"/invoices/{invoice.pk}/?line=1"))
    assert "Dispute this charge" not in shown


@pytest.mark.parametrize("amount", ["2.01", "0", "-1", "1.005", "9" * 20, "one"])
def test_no_more_than_the_line_is_disputed(amount: str, payer: Client, api: Any, october: Invoice) -> None:
    typed = {"line": "1", "amount": amount, "reason": WHY}
    page = payer.post(f"/invoices/{october.pk}/dispute/", typed, follow=True)
    assert "Your dispute is open" not in words(page)
    body = {"invoice": october.pk, "lines": [{"n": 1, "amount": amount}], "reason": WHY}
    answer = api.ask("POST", "/api/v1/disputes", body)
    assert answer.status_code == 400
    assert len(answer.json()["detail"]) > 10
    assert nothing(october)


def test_a_correction_of_more_than_was_charged_gives_back_what_was_charged_and_no_more() -> None:
    _, _, lease = ten_hours()
    first = proposed(lease, 0, 23)
    assert first.minor == 2000
    assert approved(first).status == "booked"


def test_nobody_corrects_a_lease_of_their_own_or_of_another_tenant(
    payer: Client, api: Any, kestrel: Home
) -> None:
    _, _, lease = ten_hours()
    span = {"since": "2026-10-05T02:00:00Z", "until": "2026-10-05T05:00:00Z", "reason": WHY}
    assert api.ask("PUT", f"/api/v1/ops/leases/{lease.pk}/correction", span).status_code in (401, 403, 404)
    typed = {
        "what": "back",
        "lease": lease.pk,
        "since": "2026-10-05 02:00",
        "until": "2026-10-05 05:00",
        "reason": WHY,
    }
    assert payer.post("/ops/corrections/", typed).status_code in (302, 403, 404)
    assert not Correction.objects.exists()


def test_a_correction_of_a_lease_is_booked_for_its_own_tenant_alone(kestrel: Home) -> None:
    _, _, lease = ten_hours()
    found = proposed(lease, 2, 5)
    with (
        as_tenant(kestrel.tenant.pk),
        pytest.raises(DatabaseError, match="its own tenant"),
        transaction.atomic(),
    ):
        CorrectionShare.objects.create(
            tenant=kestrel.tenant, correction=found, diff=[], seal=found.seal, minor=-1
        )
    assert approved(found, by=BEN).status == "booked"
    with as_staff():
        assert [share.tenant_id for share in found.shares.all()] == [lease.tenant_id]
