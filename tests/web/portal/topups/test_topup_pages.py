"""Topping up on the wallet's page and over the API."""

import re

import pytest
from django.test import Client

from billing.gateways.simulated import GatewayFault
from billing.services.payments.topups import automatic_topups
from ports import clock, payments
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.rls import tenant_scope
from tests.billing.topups.topup_setup import fail_next_topups, process_topup, topups_of, wallet_balance
from tests.simulation import NOW, TenantContext
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.page_text import page_words

pytestmark = pytest.mark.django_db


def visitor(kestrel: TenantContext, role: Role = Role.OWNER) -> Client:
    client = Client()
    client.force_login(kestrel.create_member(role))
    return client


def test_a_payer_tops_up_the_wallet_and_sees_the_result(kestrel: TenantContext) -> None:
    with clock.frozen_at(NOW):
        client = visitor(kestrel, Role.BILLING)
        assert client.post("/wallet/top-up/", {"amount": "50"}).status_code == 302
        shown = page_words(client.get("/wallet/"))
        assert "€50.00 is being collected." in shown
        assert "being collected €50.00" in shown
        assert "is in progress" in page_words(client.post("/wallet/top-up/", {"amount": "50"}, follow=True))
        done = process_topup(topups_of(kestrel)[0])
        assert f"{done.reference} €50.00" in page_words(client.get("/wallet/"))
        for wrong, said in (("0", "A top-up must be €1.00"), ("much", "is not an amount in EUR")):
            assert said in page_words(client.post("/wallet/top-up/", {"amount": wrong}, follow=True))
    assert wallet_balance(kestrel) == 5000


def test_the_statement_shows_the_id_of_a_top_up_below_its_entry(kestrel: TenantContext) -> None:
    with clock.frozen_at(NOW):
        client = visitor(kestrel, Role.BILLING)
        client.post("/wallet/top-up/", {"amount": "50"})
        done = process_topup(topups_of(kestrel)[0])
        page = client.get("/statement/").content.decode()
    assert re.search(rf'Top-up</b>\s*<small class="monospace">{done.pk}</small>', page)


def test_an_automatic_top_up_is_enabled_stopped_after_a_decline_and_disabled(kestrel: TenantContext) -> None:
    with clock.frozen_at(NOW):
        client = visitor(kestrel)
        form = {"threshold": "10", "amount": "50"}
        assert "Auto top-up is on" in page_words(client.post("/wallet/auto-top-up/", form, follow=True))
        assert b'value="10.00"' in client.get("/wallet/").content
        fail_next_topups(kestrel, GatewayFault.DECLINED)
        automatic_topups.open_due_topups(now=NOW)
        process_topup(topups_of(kestrel)[0])
        shown = page_words(client.get("/wallet/"))
        assert "Stopped" in shown
        assert "insufficient funds. Save it again to restart." in shown
        assert "is not an amount" in page_words(
            client.post("/wallet/auto-top-up/", {"threshold": "x", "amount": "1"}, follow=True)
        )
        none = {"threshold": "", "amount": ""}
        assert "Auto top-up is off" in page_words(client.post("/wallet/auto-top-up/", none, follow=True))


def test_readers_and_wallets_without_a_gateway_have_no_top_up_form(kestrel: TenantContext) -> None:
    with clock.frozen_at(NOW):
        visitor(kestrel).post("/wallet/auto-top-up/", {"threshold": "10", "amount": "50"})
        assert b'action="/wallet/top-up/"' not in visitor(kestrel, Role.ADMIN).get("/wallet/").content
        with payments.using_gateway(None):
            shown = page_words(visitor(kestrel).get("/wallet/"))
        assert "Auto top-up adds €50.00 when less than €10.00 is available." in shown


def test_the_api_tops_up_once_per_key_and_stores_the_auto_top_up_rule(kestrel: TenantContext) -> None:
    with clock.frozen_at(NOW):
        api = ApiClient(kestrel.token(Role.OWNER))
        first = api.send("POST", "topups", {"amount": "50.00"}, Idempotency_Key="one")
        again = api.send("POST", "topups", {"amount": "50.00"}, Idempotency_Key="one")
        assert (first.status_code, again.json()["id"]) == (202, first.json()["id"])  # type: ignore[attr-defined]
        with tenant_scope(kestrel.tenant.pk):
            assert AuditEvent.objects.filter(action="topup.open").count() == 1
        (row,) = api.get("/api/v1/topups").json()["items"]
        assert (row["status"], row["amount"]) == ("pending", {"amount": "50.000000", "currency": "EUR"})
        assert api.get(f"/api/v1/topups/{row['id']}").json() == row
        assert api.send("POST", "topups", {"amount": "0"}).status_code == 400  # type: ignore[attr-defined]
        assert api.get("/api/v1/topup-rule").json()["amount"] is None
        answer = api.send("PUT", "topup-rule", {"threshold": "10.00", "amount": "50.00"})
        assert answer.json()["threshold"]["amount"] == "10.000000"  # type: ignore[attr-defined]
        assert api.send("DELETE", "topup-rule").status_code == 204  # type: ignore[attr-defined]
        assert api.get("/api/v1/topup-rule").json()["threshold"] is None
