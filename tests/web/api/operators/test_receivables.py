"""Operators' API of bank transfers, statements, write-offs, reviews, credit and scheduled prices."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import BankReceipt, BillingPeriod, Invoice, PriceVersion
from billing.services.catalogue import price_list
from ports import clock
from tenants.models import User
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import EURO, OPERATOR, create_priced_offering
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, reload_invoice

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments")]
LATER = NOW + timedelta(days=30)


class OperatorApi:
    """An operator's session against the API."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def send(self, method: str, path: str, body: dict[str, Any], key: str = "k") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        return self.client.generic(
            method, f"/api/v1/ops/{path}", data=json.dumps(body), content_type="application/json",
            headers=headers,
        )  # fmt: skip


@pytest.fixture
def api(settings: Any) -> Iterator[OperatorApi]:
    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    with clock.frozen_at(LATER):
        yield OperatorApi(client)


def transfer(invoice: Invoice, amount: str = "1.50", **more: Any) -> dict[str, Any]:
    return {"tenant": invoice.tenant_id, "amount": amount, "received_on": "2026-11-05", **more}


def test_transfer_is_recorded_once_per_key_and_reversed(api: OperatorApi) -> None:
    invoice = create_final_invoice()
    made = [api.send("POST", "bank-receipts", transfer(invoice)) for _ in range(2)]
    assert [each.status_code for each in made] == [201, 201]
    body = made[0].json()
    assert body == made[1].json()
    assert body["invoices"][0]["number"] == "2026-10-0001"
    assert (body["amount"]["amount"], body["left"]["amount"]) == ("1.500000", "0.000000")
    reused = api.send("POST", "bank-receipts", transfer(invoice, "1.60"))
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency-key-reuse")
    assert api.send("POST", "bank-receipts", transfer(invoice), key="").status_code == 400
    undone = api.send("PATCH", f"bank-receipts/{body['id']}", {"reversed": True, "reason": "typed twice"})
    assert (undone.status_code, undone.json()["reversal_reason"]) == (200, "typed twice")
    assert reload_invoice(invoice).status == "finalized"
    assert api.send("PATCH", f"bank-receipts/{body['id']}", {"reversed": True}).status_code == 400


def test_a_transfer_in_an_unknown_currency_is_refused(api: OperatorApi) -> None:
    invoice = create_final_invoice()
    for currency in ("-pk", "\U000ddd5e", "XXX"):
        refused = api.send("POST", "bank-receipts", transfer(invoice, currency=currency), key=ascii(currency))
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "currency")


def test_a_change_without_its_field_says_what_to_send(api: OperatorApi) -> None:
    invoice = create_final_invoice()
    made = api.send("POST", "bank-receipts", transfer(invoice, "3.00", pays="balance")).json()
    for body, field in (({}, "invoice"), ({"reversed": True}, "reason")):
        refused = api.send("PATCH", f"bank-receipts/{made['id']}", body).json()
        assert (refused["errors"][0]["field"], refused["fix"]["text"][:5]) == (field, "Send ")


def test_rest_of_a_transfer_is_assigned(api: OperatorApi) -> None:
    invoice = create_final_invoice()
    made = api.send("POST", "bank-receipts", transfer(invoice, "3.00", pays="balance")).json()
    answer = api.send("PATCH", f"bank-receipts/{made['id']}", {"invoice": invoice.pk})
    assert (answer.status_code, answer.json()["left"]["amount"]) == (200, "1.000000")
    assert reload_invoice(invoice).status == "paid"


@pytest.mark.parametrize("content", ["not base64!", "\u008c=?"])
def test_a_statement_that_is_not_base64_is_refused(api: OperatorApi, content: str) -> None:
    refused = api.send("POST", "bank-statements", {"file_name": "a.csv", "content": content})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "content")


def test_statement_is_imported_and_its_entries_are_decided(api: OperatorApi) -> None:
    invoice = create_final_invoice()
    text = f"date,amount,currency,remittance\n2026-11-05,2.00,EUR,{invoice}\n2026-11-05,9.00,EUR,gift\n"
    sent = {"file_name": "a.csv", "content": base64.b64encode(text.encode()).decode()}
    for _ in range(2):
        made = api.send("POST", "bank-statements", sent)
        assert (made.status_code, made.json()["entries_new"]) == (201, 2)
    entries = api.client.get("/api/v1/ops/bank-entries?status=open").json()["items"]
    (named,) = [each for each in entries if each["proposal"]]
    assert (named["proposal"]["invoices"], named["proposal"]["is_exact"]) == ([invoice.pk], True)
    booked = api.send("PATCH", f"bank-entries/{named['id']}", {"status": "booked", "tenant": invoice.tenant_id})
    assert (booked.status_code, booked.json()["status"]) == (200, "booked")
    (gift,) = [each for each in entries if not each["proposal"]]
    address = f"bank-entries/{gift['id']}"
    assert api.send("PATCH", address, {"status": "dismissed"}).status_code == 400
    assert api.send("PATCH", address, {"status": "dismissed", "reason": "gift"}).json()["status"] == "dismissed"
    assert api.send("POST", "bank-statements", {**sent, "content": "%"}, key="other").status_code == 400


def test_invoice_is_written_off_reinstated_and_cancelled(api: OperatorApi) -> None:
    invoice = create_final_invoice()
    for status in ("uncollectible", "finalized", "void"):
        answer = api.send("PATCH", f"invoices/{invoice.pk}", {"status": status, "reason": "because"})
        assert (answer.status_code, answer.json()["status"]) == (200, status)
    (month,) = api.client.get("/api/v1/ops/month-reviews?month=2026-10").json()["items"]
    assert (month["state"], month["total"]["amount"]) == ("held", "2.000000")
    approved = api.send("PATCH", f"month-reviews/{month['id']}", {"state": "approved"})
    assert approved.json()["state"] == "approved"
    assert api.send("PATCH", f"month-reviews/{month['id']}", {"state": "held"}).status_code == 400
    with tenant_scope(invoice.tenant_id):
        assert BillingPeriod.objects.get(label="2026-10").approved_at == LATER


def test_credit_is_taken_back(api: OperatorApi) -> None:
    invoice = create_final_invoice()
    with tenant_scope(invoice.tenant_id):
        grant = create_grant(invoice.tenant, 500)
    answer = api.send("PATCH", f"grants/{grant.pk}", {"state": "revoked", "reason": "trial over"})
    assert (answer.status_code, answer.json()["state"], answer.json()["left"]["amount"]) == (200, "revoked", "0.000000")


def test_scheduled_price_is_withdrawn(api: OperatorApi) -> None:
    offering, since = create_priced_offering(EURO), datetime(2090, 1, 1, tzinfo=UTC)
    version = price_list.publish_price(
        offering=offering, currency="EUR", nano_per_hour=2 * EURO, since=since, actor=OPERATOR, now=LATER
    )
    address = f"price-versions/{version.pk}"
    assert api.send("PATCH", address, {"state": "withdrawn"}).status_code == 204
    assert api.send("PATCH", address, {"state": "withdrawn"}).status_code == 404
    current = PriceVersion.objects.get(offering=offering)
    assert current.valid.upper is None
    begun = api.send("PATCH", f"price-versions/{current.pk}", {"state": "withdrawn"})
    assert (begun.status_code, begun.json()["code"]) == (409, "price-begun")


def test_transfers_are_listed_for_operators_only(api: OperatorApi) -> None:
    api.send("POST", "bank-receipts", transfer(create_final_invoice()))
    with staff_scope():
        assert BankReceipt.objects.count() == 1
    assert len(api.client.get("/api/v1/ops/bank-receipts").json()["items"]) == 1
    assert Client().get("/api/v1/ops/bank-receipts").status_code == 401
