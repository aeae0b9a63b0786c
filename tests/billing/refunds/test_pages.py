"""Operators send money back on a page and over the API, and the tenant reads of it on the invoice."""

from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client

from billing.models import Invoice, PaymentRefund
from ports import clock, payments
from tenants.models import User
from tests.billing.payments.bills import NOW, Ill, ill
from tests.billing.refunds.ways import balance, every, paid, payment, send_back, sent, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("op@example.org", is_staff=True))
    return client


def address(invoice: Invoice) -> str:
    return f"/ops/payments/{payment(invoice).pk}/refund/"


def test_an_operator_sends_back_what_was_given_back(operator: Client) -> None:
    invoice = paid()
    with clock.standing_at(NOW):
        assert f'href="{address(invoice)}"' in operator.get(f"/ops/invoices/{invoice.pk}/").content.decode()
        page = operator.get(address(invoice)).content.decode()
        assert "At most 1.20 EUR." in page
        form = {"amount": "0.50", "seen": "0", "reason": "wrong slice"}
        assert operator.post(address(invoice), form)["Location"] == address(invoice)
        again = operator.post(address(invoice), form)
        assert (again.status_code, "is pending" in again.content.decode()) == (409, True)
    (made,) = every(invoice)
    assert (made.minor, made.why, work(made).status) == (50, "wrong slice", "succeeded")
    assert "wrong slice" in operator.get(address(invoice)).content.decode()


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"amount": "3.06", "seen": "0", "reason": "x"}, "The payment took €3.05"),
        ({"amount": "abc", "seen": "0", "reason": "x"}, "is no amount"),
        ({"amount": "0.50", "reason": "x"}, "does not say how much had gone back"),
        ({"amount": "0.50", "seen": "0", "reason": ""}, "A reason has 1 to"),
    ],
)
def test_what_cannot_go_back_is_said_where_it_was_asked(
    operator: Client, form: dict[str, str], why: str
) -> None:
    invoice = paid()
    answer = operator.post(address(invoice), form)
    assert (answer.status_code, why in answer.content.decode()) == (400, True)
    assert (every(invoice), balance(invoice)) == ([], 120)


def test_where_nothing_was_given_back_the_page_says_what_to_do_first(operator: Client) -> None:
    invoice = paid(credited=0)
    assert "by a credit note" in operator.get(address(invoice)).content.decode()
    assert operator.get("/ops/payments/pay_gone/refund/").status_code == 404


def test_what_is_stuck_is_asked_for_again_on_the_page_and_over_the_api(operator: Client) -> None:
    invoice = paid()
    ill(invoice, Ill.REJECTED, Ill.REJECTED)
    stuck = work(send_back(invoice, 40))
    page = operator.get(address(invoice)).content.decode()
    assert "Ask again" in page
    assert "Nothing more can go back now." in page
    assert 'name="amount"' not in page
    again = f"/ops/refunds/{stuck.pk}/ask-again/"
    with clock.standing_at(NOW):
        assert operator.post(again)["Location"] == address(invoice)
        assert b"is pending" in operator.post(again, follow=True).content
        assert work(stuck).status == "stuck"
        api, body = f"/api/v1/ops/refunds/{stuck.pk}/ask-again", {"status": "pending"}
        assert operator.put(api, body, content_type="application/json").json()["status"] == "pending"
        assert operator.put(api, body, content_type="application/json").status_code == 409
    assert operator.post("/ops/refunds/ref_gone/ask-again/").status_code == 404
    assert (work(stuck).status, sent(invoice)) == ("succeeded", [40])


def test_the_api_sends_back_once_however_often_it_is_asked(operator: Client) -> None:
    invoice = paid()
    api = f"/api/v1/ops/payments/{payment(invoice).pk}/refund"
    wanted = {"amount": "0.50", "seen": "0", "reason": "wrong slice"}
    with clock.standing_at(NOW):
        first = operator.put(api, wanted, content_type="application/json")
        assert (first.status_code, first.json()["status"]) == (200, "pending")
        assert operator.put(api, wanted, content_type="application/json").status_code == 409
        work(every(invoice)[0])
        assert operator.put(api, wanted, content_type="application/json").status_code == 409
        for odd in ({"amount": "x"}, {"seen": "x"}, {"amount": "9.00", "seen": "0.50"}):
            assert operator.put(api, {**wanted, **odd}, content_type="application/json").status_code == 400
    (told,) = operator.get("/api/v1/ops/refunds", {"payment": payment(invoice).pk}).json()["items"]
    assert (told["status"], told["amount"]["currency"], told["why"]) == ("succeeded", "EUR", "wrong slice")
    assert sent(invoice) == [50]


def test_where_the_gateway_is_gone_nothing_is_offered_and_what_went_back_stays_to_be_seen(
    operator: Client,
) -> None:
    invoice = paid()
    with payments.through(None):
        assert address(invoice) not in operator.get(f"/ops/invoices/{invoice.pk}/").content.decode()
        page = operator.get(address(invoice)).content.decode()
        assert "which is not set here: set it again" in page
        assert 'name="amount"' not in page
    work(send_back(invoice, 40))
    with payments.through(None):
        assert address(invoice) in operator.get(f"/ops/invoices/{invoice.pk}/").content.decode()


def test_nobody_is_told_that_it_is_sent_before_it_is(operator: Client) -> None:
    invoice = paid()
    with clock.standing_at(NOW):
        form = {"amount": "0.50", "seen": "0", "reason": "wrong slice"}
        told = operator.post(address(invoice), form, follow=True).content.decode()
    assert "€0.50 left the balance. simulated is asked to send it back to the card." in told


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("pending", "are on their way back to the card"),
        ("requires_action", "are on their way back to the card"),
        ("succeeded", "went back to the card"),
        ("failed", "did not reach the card"),
        ("canceled", "did not reach the card"),
    ],
)
def test_the_invoice_says_what_became_of_it(status: str, words: str) -> None:
    mark = PaymentRefund(id="re_1", status=status, minor=40, made_at=NOW)
    invoice = Invoice(currency="EUR")
    shown = {"marks": {"refunds": [mark]}, "invoice": invoice}
    assert words in render_to_string("billing/invoice/_marks.html", shown)
