"""Failed e-mails on operators' pages and API, and their retry."""

from typing import Any
from unittest import mock

import pytest
from django.test import Client

from billing.gateways.simulated import GatewayFault
from billing.models import Invoice, QueuedEmail
from ports import clock
from tenants.models import User
from tenants.services.rls import tenant_scope
from tests.billing.emails.test_invoice_emails import LATER, add_member, send
from tests.billing.payments.payable_invoices import create_final_invoice, fail_next_charges
from tests.billing.refunds.refund_setup import create_paid_invoice, payment_of, process_refund, request_refund
from tests.web.keyed_requests import patch_json
from web.portal.operators.system import system_page

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _collected() -> Any:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.payable_invoices import captured_messages

    with payments.using_gateway(SimulatedGateway()), captured_messages():
        yield


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("op@example.org", is_staff=True))
    return client


def unsent(invoice: Invoice) -> QueuedEmail:
    with tenant_scope(invoice.tenant_id):
        return QueuedEmail.objects.get()


def test_an_email_without_a_recipient_is_shown_and_can_be_retried(operator: Client) -> None:
    invoice = create_final_invoice()
    send()
    letter = unsent(invoice)
    with clock.frozen_at(LATER):
        page = operator.get("/ops/system/").content.decode()
        assert "1 e-mail needs attention." in page
        assert "1 attempt ·" in page
        assert "No recipient" in page
        assert f'action="/ops/notifications/{letter.pk}/resend/"' in page
        add_member(invoice)
        assert operator.post(f"/ops/notifications/{letter.pk}/resend/")["Location"] == "/ops/system/"
        text = operator.post(f"/ops/notifications/{letter.pk}/resend/", follow=True).content.decode()
        assert "cannot be retried" in text
        assert "E-mails that need attention" not in text
        assert operator.post("/ops/notifications/let_gone/resend/").status_code == 404
    assert len(send(now=LATER)) == 1


def test_an_undelivered_email_is_listed_and_resent_over_the_api(operator: Client) -> None:
    invoice = create_final_invoice()
    send()
    letter = unsent(invoice)
    with clock.frozen_at(LATER):
        (found,) = operator.get("/api/v1/ops/notifications", {"undelivered_reason": "no_recipient"}).json()["items"]
        assert (found["id"], found["kind"], found["subject_id"]) == (letter.pk, "invoice-final", invoice.pk)
        assert (found["tenant"]["id"], found["sent_at"], found["due_at"]) == (invoice.tenant_id, None, None)
        address, body = f"/api/v1/ops/notifications/{letter.pk}", {"status": "waiting"}
        assert patch_json(operator, address, {"status": "sent"}).status_code == 400
        again = patch_json(operator, address, body)
        assert (again.status_code, again.json()["undelivered_reason"]) == (200, "")
        assert patch_json(operator, address, body).status_code == 409


def test_a_page_of_the_oldest_unsent_emails_is_shown_but_all_are_counted(operator: Client) -> None:
    create_final_invoice()
    create_final_invoice()
    send()
    with mock.patch.object(system_page, "MAX_ROWS", 1):
        page = operator.get("/ops/system/").content.decode()
    assert "2 e-mails need attention." in page
    assert page.count("/resend/") == 1


def test_a_stuck_refund_is_shown_on_the_system_page(operator: Client) -> None:
    invoice = create_paid_invoice()
    fail_next_charges(invoice, GatewayFault.REJECTED)
    process_refund(request_refund(invoice, 40))
    with clock.frozen_at(LATER):
        page = operator.get("/ops/system/").content.decode()
    assert "1 refund needs attention." in page
    assert f'href="/ops/payments/{payment_of(invoice).pk}/refund/"' in page
