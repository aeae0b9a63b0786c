"""Operators refund on a page and over the API; tenants see it."""

from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client

from billing.gateways.simulated import GatewayFault
from billing.models import Invoice, PaymentRefund
from ports import clock, payments
from tenants.models import User
from tests.billing.payments.payable_invoices import NOW, fail_next_charges
from tests.billing.refunds.refund_setup import (
    balance_of,
    create_paid_invoice,
    payment_of,
    process_refund,
    refunded_amounts,
    refunds_of,
    request_refund,
)
from tests.web.keyed_requests import patch_json, post_keyed

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("op@example.org", is_staff=True))
    return client


def address(invoice: Invoice) -> str:
    return f"/ops/payments/{payment_of(invoice).pk}/refund/"


def test_an_operator_refunds_credit_to_the_card(operator: Client) -> None:
    invoice = create_paid_invoice()
    with clock.frozen_at(NOW):
        assert f'href="{address(invoice)}"' in operator.get(f"/ops/invoices/{invoice.pk}/").content.decode()
        page = operator.get(address(invoice)).content.decode()
        assert "At most 1.20 EUR." in page
        form = {"amount": "0.50", "seen": "0", "reason": "wrong slice"}
        assert operator.post(address(invoice), form)["Location"] == address(invoice)
        again = operator.post(address(invoice), form)
        assert (again.status_code, "is pending" in again.content.decode()) == (409, True)
    (made,) = refunds_of(invoice)
    assert (made.minor, made.why, process_refund(made).status) == (50, "wrong slice", "succeeded")
    assert "wrong slice" in operator.get(address(invoice)).content.decode()


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"amount": "3.06", "seen": "0", "reason": "x"}, "The payment charged €3.05"),
        ({"amount": "abc", "seen": "0", "reason": "x"}, "is not an amount"),
        ({"amount": "0.50", "reason": "x"}, "The form is incomplete"),
        ({"amount": "0.50", "seen": "0", "reason": ""}, "A reason must have 1 to"),
    ],
)
def test_an_invalid_refund_shows_its_error_on_the_form(operator: Client, form: dict[str, str], why: str) -> None:
    invoice = create_paid_invoice()
    answer = operator.post(address(invoice), form)
    assert (answer.status_code, why in answer.content.decode()) == (400, True)
    assert (refunds_of(invoice), balance_of(invoice)) == ([], 120)


def test_without_a_credit_note_the_refund_page_requires_one_first(operator: Client) -> None:
    invoice = create_paid_invoice(credited=0)
    assert "First issue a credit note" in operator.get(address(invoice)).content.decode()
    assert operator.get("/ops/payments/pay_gone/refund/").status_code == 404


def test_a_stuck_refund_is_retried_on_the_page_and_over_the_api(operator: Client) -> None:
    invoice = create_paid_invoice()
    fail_next_charges(invoice, GatewayFault.REJECTED, GatewayFault.REJECTED)
    stuck = process_refund(request_refund(invoice, 40))
    page = operator.get(address(invoice)).content.decode()
    assert "Retry" in page
    assert "No further refund is possible now." in page
    assert 'name="amount"' not in page
    again = f"/ops/refunds/{stuck.pk}/retry/"
    with clock.frozen_at(NOW):
        assert operator.post(again)["Location"] == address(invoice)
        assert b"is pending" in operator.post(again, follow=True).content
        assert process_refund(stuck).status == "stuck"
        api, body = f"/api/v1/ops/refunds/{stuck.pk}", {"status": "pending"}
        assert patch_json(operator, api, body).json()["status"] == "pending"
        assert patch_json(operator, api, body).status_code == 409
    assert operator.post("/ops/refunds/ref_gone/retry/").status_code == 404
    assert (process_refund(stuck).status, refunded_amounts(invoice)) == ("succeeded", [40])


@pytest.mark.deep
def test_a_repeated_refund_request_over_the_api_refunds_once(operator: Client) -> None:
    invoice = create_paid_invoice()
    api = f"/api/v1/ops/payments/{payment_of(invoice).pk}/refund"
    wanted = {"amount": "0.50", "refunded": "0", "reason": "wrong slice"}
    with clock.frozen_at(NOW):
        first = post_keyed(operator, api, wanted)
        assert (first.status_code, first.json()["status"]) == (201, "pending")
        assert post_keyed(operator, api, wanted).status_code == 409
        process_refund(refunds_of(invoice)[0])
        assert post_keyed(operator, api, wanted).status_code == 409
        for odd in ({"amount": "x"}, {"refunded": "x"}, {"amount": "9.00", "refunded": "0.50"}):
            assert post_keyed(operator, api, {**wanted, **odd}).status_code == 400
    (found,) = operator.get("/api/v1/ops/refunds", {"payment": payment_of(invoice).pk}).json()["items"]
    assert (found["status"], found["amount"]["currency"], found["refund_reason"]) == ("succeeded", "EUR", "wrong slice")
    assert refunded_amounts(invoice) == [50]


def test_without_its_gateway_no_refund_is_offered_and_past_ones_stay_visible(
    operator: Client,
) -> None:
    invoice = create_paid_invoice()
    with payments.using_gateway(None):
        assert address(invoice) not in operator.get(f"/ops/invoices/{invoice.pk}/").content.decode()
        page = operator.get(address(invoice)).content.decode()
        assert "which is not configured here. Configure it again" in page
        assert 'name="amount"' not in page
    process_refund(request_refund(invoice, 40))
    with payments.using_gateway(None):
        assert address(invoice) in operator.get(f"/ops/invoices/{invoice.pk}/").content.decode()


def test_a_pending_refund_is_not_shown_as_sent(operator: Client) -> None:
    invoice = create_paid_invoice()
    with clock.frozen_at(NOW):
        form = {"amount": "0.50", "seen": "0", "reason": "wrong slice"}
        text = operator.post(address(invoice), form, follow=True).content.decode()
    assert "€0.50 left the balance. simulated is asked to refund it to the payment card." in text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("pending", "refund to the payment card pending since"),
        ("requires_action", "refund to the payment card pending since"),
        ("succeeded", "refunded to the payment card"),
        ("failed", "could not be refunded to the payment card"),
        ("canceled", "could not be refunded to the payment card"),
    ],
)
def test_the_invoice_shows_the_status_of_its_refund(status: str, words: str) -> None:
    mark = PaymentRefund(id="re_1", status=status, minor=40, made_at=NOW)
    invoice = Invoice(currency="EUR")
    shown = {"marks": {"refunds": [mark]}, "invoice": invoice}
    assert words in render_to_string("invoices/_chargebacks_and_refunds.html", shown)
