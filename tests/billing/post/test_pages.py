"""Operators see which letters reached nobody and why, and have them tried again, on the page and over the API."""

from typing import Any
from unittest import mock

import pytest
from django.test import Client

from billing.gateways.simulated import Ill
from billing.models import Invoice, Letter
from billing.services.payments import waiting as rows
from billing.services.post import waiting
from ports import clock
from tenants.models import User
from tenants.services.walls import as_staff, as_tenant
from tests.billing.payments.bills import bill, ill
from tests.billing.post.test_letters import LATER, payer, send
from tests.billing.refunds.ways import paid, payment, send_back, work

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _collected() -> Any:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.bills import heard

    with payments.through(SimulatedGateway()), heard():
        yield


@pytest.fixture
def operator(settings: Any) -> Client:
    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("op@example.org", is_staff=True))
    return client


def unsent(invoice: Invoice) -> Letter:
    with as_tenant(invoice.tenant_id):
        return Letter.objects.get()


def test_a_letter_to_nobody_is_seen_and_tried_again(operator: Client) -> None:
    invoice = bill()
    send()
    letter = unsent(invoice)
    with clock.standing_at(LATER):
        page = operator.get("/ops/system/").content.decode()
        assert "1 letter waits for a person." in page
        assert "1 try ·" in page
        assert "There is no address" in page
        assert f'action="/ops/letters/{letter.pk}/again/"' in page
        payer(invoice)
        assert operator.post(f"/ops/letters/{letter.pk}/again/")["Location"] == "/ops/system/"
        told = operator.post(f"/ops/letters/{letter.pk}/again/", follow=True).content.decode()
        assert "waits for nobody" in told
        assert "Letters that wait for a person" not in told
        assert operator.post("/ops/letters/let_gone/again/").status_code == 404
    assert len(send(now=LATER)) == 1


def test_the_same_over_the_api(operator: Client) -> None:
    invoice = bill()
    send()
    letter = unsent(invoice)
    with clock.standing_at(LATER):
        (told,) = operator.get("/api/v1/ops/letters", {"unsent": "nobody"}).json()["items"]
        assert (told["id"], told["kind"], told["about"]) == (letter.pk, "invoice-final", invoice.pk)
        assert (told["tenant"]["id"], told["sent_at"], told["due_at"]) == (invoice.tenant_id, None, None)
        address, body = f"/api/v1/ops/letters/{letter.pk}/again", {"status": "waiting"}
        assert operator.put(address, {"status": "sent"}, content_type="application/json").status_code == 400
        again = operator.put(address, body, content_type="application/json")
        assert (again.status_code, again.json()["unsent"]) == (200, "")
        assert operator.put(address, body, content_type="application/json").status_code == 409


def test_of_many_the_oldest_are_fetched_and_all_counted() -> None:
    bill()
    bill()
    send()
    with mock.patch.object(rows, "SHOWN", 1), as_staff():
        found = waiting.look()
    assert (len(found.unsent), found.unsent_in_all) == (1, 2)


def test_a_refund_that_is_stuck_is_seen_where_payments_are(operator: Client) -> None:
    invoice = paid()
    ill(invoice, Ill.REJECTED)
    work(send_back(invoice, 40))
    with clock.standing_at(LATER):
        page = operator.get("/ops/system/").content.decode()
    assert "1 refund waits for a person." in page
    assert f'href="/ops/payments/{payment(invoice).pk}/refund/"' in page
