"""Operators see every stuck payment and its reason."""

from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import Invoice
from ports import clock, payments
from tenants.services.rls import tenant_scope
from tests.billing.payments.payable_invoices import (
    NOW,
    create_final_invoice,
    fail_next_charges,
    process_payment,
    request_payment,
)
from web.portal.operators.system import system_page

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.using_gateway(SimulatedGateway()):
        yield


def stuck() -> Invoice:
    invoice = create_final_invoice()
    fail_next_charges(invoice, GatewayFault.REJECTED)
    process_payment(request_payment(invoice))
    return invoice


def read(operator: Client) -> str:
    answer = operator.get("/ops/system/")
    assert answer.status_code == 200
    return " ".join(unescape(strip_tags(answer.content.decode().replace("<", " <"))).split())


def test_without_stuck_payments_there_is_no_notice(operator: Client) -> None:
    body = read(operator)
    assert "attention" not in body
    assert "Pending payments 0" in body


def test_a_stuck_payment_is_listed_with_tenant_amount_and_reason(operator: Client) -> None:
    invoice = stuck()
    request_payment(create_final_invoice())
    with tenant_scope(invoice.tenant_id):
        payer = invoice.tenant.name
    body = read(operator)
    assert "1 payment needs attention." in body
    assert f"{invoice} {payer} The simulated gateway does not accept our credentials." in body
    assert "simulated · bad_credentials · pay_" in body
    assert "€2.00" in body
    assert "Pending payments 1, oldest" in body


def test_of_many_stuck_payments_the_oldest_come_first_and_all_are_counted(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system_page, "MAX_ROWS", 2)
    invoices = [stuck() for _ in range(3)]
    body = read(operator)
    assert "3 payments need attention." in body
    assert "Payments that need attention 3 rows" in body
    assert [str(each) in body for each in invoices].count(True) == 2


def test_the_number_of_queries_is_the_same_with_many_stuck_payments(operator: Client) -> None:
    counts = []
    for _ in range(3):
        stuck()
        with CaptureQueriesContext(connection) as spoken:
            read(operator)
        counts.append(len(spoken))
    assert len(set(counts)) == 1, counts


def test_an_operator_marks_a_payment_as_failed_after_a_confirmation(operator: Client) -> None:
    invoice = stuck()
    with tenant_scope(invoice.tenant_id):
        payment = invoice.payments.get()
        payer = invoice.tenant.name
    address = f"/ops/payments/{payment.pk}/mark-failed/"
    assert f'href="{address}"' in operator.get("/ops/system/").content.decode()
    wanted = unescape(operator.get(address).content.decode())
    assert f"Mark {invoice} of {payer} as failed?" in wanted
    assert f"First search for {payment.pk} at the payment gateway (simulated)." in wanted
    assert "The payment gateway (simulated) is contacted first" in wanted
    with clock.frozen_at(NOW + timedelta(hours=1)):
        refused = operator.post(address, {"reason": ""})
        assert (refused.status_code, "A reason must have 1 to" in refused.content.decode()) == (400, True)
        assert operator.post(address, {"reason": "account closed"})["Location"] == "/ops/system/"
    assert "needs attention." not in read(operator)
    assert operator.post(address, {"reason": "again"}).status_code == 409
    with payments.using_gateway(None):
        assert "The payment gateway (simulated) is no longer configured here" in operator.get(address).content.decode()
