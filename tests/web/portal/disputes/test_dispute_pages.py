"""Tenants open disputes and operators answer them, on pages and over the API."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from billing.gateways.simulated import GatewayFault
from billing.models import Dispute, Invoice
from billing.services.invoicing.disputes import dispute_answers, dispute_requests
from billing.services.invoicing.month_close import close_month
from billing.services.payments import disputed_amounts
from billing.services.rating import lease_rating
from ports import clock, payments
from tenants.domain.roles import Role
from tenants.models import User
from tenants.services.rls import tenant_scope
from tests.billing.histories import HOUR, add_ended_lease, create_priced_offering, utc
from tests.billing.payments.payable_invoices import MIRA, NOW, fail_next_charges, process_payment, request_payment
from tests.simulation import TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.keyed_requests import patch_json
from tests.web.portal.page_text import page_words
from web.portal.invoices import invoice_disputes

pytestmark = pytest.mark.django_db
WHY = "that GPU was down all night"
AFTER = utc("2026-11-16 00:00:00")


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


@pytest.fixture
def october(kestrel: TenantContext) -> Invoice:
    """A month with lines of 2.00 and 1.05."""
    for n, cents in enumerate((200, 105)):
        add_ended_lease(kestrel.project, create_priced_offering(cents * 10**7), utc(f"2026-10-0{n + 1} 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=NOW)
    found = close_month.close_period(kestrel.tenant, "2026-10", now=NOW)
    assert found is not None
    return found


@pytest.fixture
def admin(kestrel: TenantContext) -> Client:
    """Return the browser of an admin, who can read but not pay invoices."""
    client = Client()
    client.force_login(kestrel.create_member(Role.ADMIN))
    return client


def the_one(invoice: Invoice) -> Dispute:
    with tenant_scope(invoice.tenant_id):
        return Dispute.objects.get(invoice=invoice)


def opened(invoice: Invoice) -> Dispute:
    return dispute_requests.dispute_lines(invoice, lines={1: None}, reason=WHY, actor=MIRA, now=NOW)[0]


def test_a_charge_is_disputed_and_withdrawn_on_the_invoice_page(payer: Client, october: Invoice) -> None:
    page = f"/invoices/{october.pk}/"
    before = page_words(payer.get(f"{page}?line=1"))
    assert "lines can be disputed until 15 Nov 2026" in before
    assert "Dispute this charge" in before
    answer = payer.post(f"{page}dispute/", {"line": "1", "amount": "0.50", "reason": WHY})
    assert (answer.status_code, answer["Location"]) == (302, f"{page}#disputes")
    after = page_words(payer.get(f"{page}?line=1"))
    assert "Dispute opened. Your operator will review it" in after
    assert f"Line 1 00:05 {WHY}" in after
    assert the_one(october).pk in after
    assert "€0.50 is not collected until the dispute is resolved" in after
    assert "€2.55 due; €0.50 disputed. It is collected automatically once the dispute is resolved." in after
    assert "you pay the full €3.05" in after
    assert "by bank transfer" not in after
    assert "€0.50 of this line disputed since" in after
    assert "Dispute this charge" not in after
    payer.post(f"/disputes/{the_one(october).pk}/withdraw/")
    assert the_one(october).status == "withdrawn"
    assert "Dispute this charge" in page_words(payer.get(f"{page}?line=1"))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"line": "x"}, "No invoice line was given."),
        ({"line": "9"}, "The invoice has no line 9."),
        ({"line": "1", "amount": "2.01"}, "At most €2.00 of line 1 can be credited."),
        ({"line": "1", "amount": "-1"}, "'-1' is not an amount in EUR"),
        ({"line": "1", "reason": ""}, "A reason must have 1 to 500 characters."),
    ],
)
def test_an_invalid_dispute_shows_its_error_and_is_not_stored(
    payer: Client, october: Invoice, typed: dict[str, str], said: str
) -> None:
    answer = payer.post(f"/invoices/{october.pk}/dispute/", {"reason": WHY} | typed, follow=True)
    assert said in page_words(answer)
    with tenant_scope(october.tenant_id):
        assert not Dispute.objects.exists()


def test_an_admin_sees_a_dispute_but_cannot_open_or_withdraw_one(admin: Client, october: Invoice) -> None:
    found = opened(october)
    page = f"/invoices/{october.pk}/"
    shown = page_words(admin.get(f"{page}?line=2"))
    assert WHY in shown
    assert "Tenant owners and tenant-wide billing members can dispute it." in shown
    assert "Withdraw" not in shown
    assert admin.post(f"{page}dispute/", {"line": "2", "reason": WHY}).status_code == 403
    assert admin.post(f"/disputes/{found.pk}/withdraw/").status_code == 403


def test_after_the_dispute_period_the_page_states_that_it_has_ended(payer: Client, october: Invoice) -> None:
    with clock.frozen_at(AFTER):
        payer.logout()
        payer.force_login(User.objects.get(pk=payer_of(october)))
        shown = page_words(payer.get(f"/invoices/{october.pk}/?line=1"))
    assert "can be disputed until" not in shown
    assert "The dispute period for this charge has ended." in shown


def payer_of(invoice: Invoice) -> Any:
    from tenants.models import Member

    with tenant_scope(invoice.tenant_id):
        return Member.objects.get(tenant=invoice.tenant_id, role=Role.BILLING).user_id


def test_disabled_disputes_are_not_offered_on_the_invoice_page(payer: Client, october: Invoice, settings: Any) -> None:
    settings.DISPUTE_WINDOW_DAYS = 0
    with tenant_scope(october.tenant_id):
        draft_like = Invoice.objects.get(pk=october.pk)
    assert draft_like.disputable_until is not None  # what it said it keeps
    assert "can be disputed until" in page_words(payer.get(f"/invoices/{october.pk}/"))


def test_open_disputes_can_be_answered_after_disputes_are_disabled(
    payer: Client, operator: Client, october: Invoice, settings: Any
) -> None:
    found = opened(october)
    settings.DISPUTE_WINDOW_DAYS = 0
    page = f"/invoices/{october.pk}/"
    # As of one that became final before invoices said until when.
    with patch.object(disputed_amounts, "dispute_window_end", lambda invoice: None):
        shown = page_words(payer.get(f"{page}?line=1"))
        assert f"Line 1 00:05 {WHY}" in shown
        assert "€2.00 of this line disputed since" in shown
        assert "lines can be disputed until" not in shown
        assert "· Dispute" not in page_words(payer.get(f"{page}?line=2"))
        answered = {"verb": "decline", "answer": "it ran all night"}
        assert operator.post(f"/ops/disputes/{found.pk}/", answered).status_code == 302
        assert "Response: it ran all night" in page_words(payer.get(page))


def test_the_invoice_page_states_what_happens_to_a_disputed_amount(payer: Client, october: Invoice) -> None:
    page = f"/invoices/{october.pk}/"
    payment = request_payment(october)
    assert "reviews the dispute once the payment in progress has settled" in page_words(payer.get(f"{page}?line=1"))
    found = opened(october)
    shown = page_words(payer.get(page))
    assert "A payment that may include the amount is in progress." in shown
    process_payment(payment)
    shown = page_words(payer.get(f"{page}?line=2"))
    assert "€2.00 is already paid. Credited amounts are added to your balance" in shown
    assert "The invoice is paid, so credited amounts are added to your balance." in shown
    assert "is not collected" not in shown
    dispute_answers.accept_dispute(found, minor=None, answer="", actor=MIRA, now=NOW)
    assert "€2.00 was added to your balance." in page_words(payer.get(page))


def test_a_declined_payment_is_not_retried_while_a_line_is_disputed(payer: Client, october: Invoice) -> None:
    fail_next_charges(october, GatewayFault.DECLINED)
    process_payment(request_payment(october))
    opened(october)
    shown = page_words(payer.get(f"/invoices/{october.pk}/"))
    assert "It is not retried automatically while €2.00 of the invoice is disputed." in shown


def test_without_a_gateway_disputed_amounts_are_not_requested_by_transfer(payer: Client, october: Invoice) -> None:
    opened(october)
    with payments.using_gateway(None):
        shown = page_words(payer.get(f"/invoices/{october.pk}/"))
    assert "€1.05 due; €2.00 disputed. Online payment is not available: pay the amount due by bank transfer" in shown


def test_the_page_shows_only_the_latest_closed_disputes(
    payer: Client, october: Invoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invoice_disputes, "MAX_CLOSED_DISPUTES", 1)
    for reason in ("older", "newer"):
        (found,) = dispute_requests.dispute_lines(
            october, lines={1: None}, reason=f"the {reason} one", actor=MIRA, now=NOW
        )
        dispute_requests.withdraw_dispute(found, actor=MIRA, now=NOW)
    opened(october)
    shown = page_words(payer.get(f"/invoices/{october.pk}/"))
    assert [reported in shown for reported in ("the older one", "the newer one", WHY)] == [False, True, True]
    assert "Older disputes are not shown" in shown


def test_withdrawing_an_unknown_dispute_returns_404(payer: Client, october: Invoice) -> None:
    assert payer.post("/disputes/dsp_none/withdraw/").status_code == 404


def test_operators_see_open_disputes_and_accept_a_part_of_the_amount(
    operator: Client, payer: Client, october: Invoice
) -> None:
    assert "No open disputes" in page_words(operator.get("/ops/disputes/"))
    found = opened(october)
    assert f"Line 1 of {october} Kestrel" in page_words(operator.get("/ops/disputes/"))
    assert "1 line is disputed: line 1 ." in page_words(operator.get(f"/ops/invoices/{october.pk}/"))
    page = f"/ops/disputes/{found.pk}/"
    shown = page_words(operator.get(page))
    assert WHY in shown
    assert "Leases on this line" in shown
    assert "3,600" in shown
    assert "is in progress" not in shown
    payment = request_payment(october)
    assert "A payment of this invoice is in progress." in page_words(operator.get(page))
    fail_next_charges(october, GatewayFault.DECLINED)
    process_payment(payment)
    refused = page_words(operator.post(page, {"verb": "accept", "amount": "9"}), 400)
    assert "At most €2.00 is disputed." in refused
    assert operator.post(page, {"verb": "accept", "amount": "0.40", "answer": "an hour of it"}).status_code == 302
    after = page_words(operator.get(page))
    assert "CN-2026-11-0001 credited €0.40 . an hour of it" in after
    assert "No open disputes" in page_words(operator.get("/ops/disputes/"))
    assert "Accepted in part" in page_words(operator.get("/ops/disputes/?state=all"))
    assert "Response: an hour of it" in page_words(payer.get(f"/invoices/{october.pk}/"))


def test_operators_decline_a_dispute_with_a_reason(operator: Client, october: Invoice) -> None:
    page = f"/ops/disputes/{opened(october).pk}/"
    assert "A reason must have 1 to 500" in page_words(operator.post(page, {"verb": "decline", "answer": ""}), 400)
    assert operator.post(page, {"verb": "decline", "answer": "it ran all night"}).status_code == 302
    assert "Declined. it ran all night" in page_words(operator.get(page))
    assert "It was closed as declined on" in page_words(operator.post(page, {"verb": "accept"}), 409)
    assert operator.get("/ops/disputes/dsp_none/").status_code == 404


def test_the_api_opens_withdraws_and_accepts_disputes(
    kestrel: TenantContext, operator: Client, october: Invoice
) -> None:
    api: Any = ApiClient(kestrel.token(Role.BILLING, now=NOW))
    values = {"invoice": october.pk, "lines": [{"line": 1, "amount": "0.50"}, {"line": 2}], "reason": WHY}
    made = api.send("POST", "/api/v1/disputes", values)
    assert made.status_code == 201, made.content
    first, second = made.json()["items"]
    assert (first["line"], first["amount"]["amount"], first["status"]) == (1, "0.500000", "open")
    assert [step["status"] for step in first["steps"]] == ["open"]
    assert api.get(f"/api/v1/disputes?invoice={october.pk}").json()["total_estimate"] == 2
    assert api.send("POST", "/api/v1/disputes", values).status_code == 409
    assert api.send("POST", "/api/v1/disputes", values | {"invoice": "inv_none"}).status_code == 400
    twice = values | {"lines": [{"line": 1}, {"line": 1, "amount": "0.01"}]}
    assert b"Line 1 is listed twice." in api.send("POST", "/api/v1/disputes", twice).content
    done = api.send("POST", f"/api/v1/disputes/{second['id']}/withdraw", {})
    assert done.json()["status"] == "withdrawn"
    body = operator.get(f"/api/v1/ops/disputes/{first['id']}").json()
    assert body["tenant"]["name"] == "Kestrel"
    assert [each["unit_seconds"] for each in body["leases"]] == [3600]
    assert body["leases"][0]["lease"].startswith("lse_")
    answer = {"status": "accepted", "amount": "0.40", "answer": "an hour of it"}
    where = f"/api/v1/ops/disputes/{first['id']}"
    accepted = patch_json(operator, where, answer).json()
    assert (accepted["status"], accepted["steps"][1]["amount"]["amount"]) == ("accepted", "0.400000")
    again = patch_json(operator, where, {"status": "declined", "answer": "no"})
    assert again.status_code == 409
    assert operator.get("/api/v1/ops/disputes?status=open").json()["total_estimate"] == 0
    assert api.get(f"/api/v1/invoices/{october.pk}").json()["disputable_until"] == "2026-11-16T00:00:00Z"


def test_the_api_declines_a_dispute_with_a_reason(operator: Client, october: Invoice) -> None:
    where = f"/api/v1/ops/disputes/{opened(october).pk}"
    assert patch_json(operator, where, {"status": "declined"}).status_code == 400
    done = patch_json(operator, where, {"status": "declined", "answer": "it ran"})
    assert (done.json()["status"], done.json()["answer"]) == ("declined", "it ran")
