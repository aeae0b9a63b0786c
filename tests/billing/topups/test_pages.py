"""Topping up on the wallet's page and over the API."""

import pytest
from django.test import Client

from billing.gateways.simulated import Ill
from billing.services.topups import by_itself
from ports import clock, payments
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.walls import as_tenant
from tests.billing.pages import words
from tests.billing.topups.tills import balance, collect, every, ill
from tests.tenants.people import Api
from tests.world import NOW, Home

pytestmark = pytest.mark.django_db


def visitor(kestrel: Home, role: Role = Role.OWNER) -> Client:
    client = Client()
    client.force_login(kestrel.member(role))
    return client


def test_whoever_pays_tops_up_and_reads_what_became_of_it(kestrel: Home) -> None:
    with clock.standing_at(NOW):
        client = visitor(kestrel, Role.BILLING)
        assert client.post("/wallet/top-up/", {"amount": "50"}).status_code == 302
        shown = words(client.get("/wallet/"))
        assert "€50.00 are being collected." in shown
        assert "being collected €50.00" in shown
        assert "is under way" in words(client.post("/wallet/top-up/", {"amount": "50"}, follow=True))
        done = collect(every(kestrel)[0])
        assert f"{done.reference} €50.00" in words(client.get("/wallet/"))
        for wrong, said in (("0", "A wallet takes from €1.00"), ("much", "is no amount of EUR")):
            assert said in words(client.post("/wallet/top-up/", {"amount": wrong}, follow=True))
    assert balance(kestrel) == 5000


def test_a_rule_is_set_says_that_it_stopped_and_is_taken_away(kestrel: Home) -> None:
    with clock.standing_at(NOW):
        client = visitor(kestrel)
        form = {"threshold": "10", "amount": "50"}
        assert "topped up by itself from now on" in words(client.post("/wallet/rule/", form, follow=True))
        assert b'value="10.00"' in client.get("/wallet/").content
        ill(kestrel, Ill.DECLINED)
        by_itself.top_up_due(now=NOW)
        collect(every(kestrel)[0])
        shown = words(client.get("/wallet/"))
        assert "Stopped" in shown
        assert "not enough money on it. Set it again to begin anew." in shown
        assert "is no amount" in words(
            client.post("/wallet/rule/", {"threshold": "x", "amount": "1"}, follow=True)
        )
        none = {"threshold": "", "amount": ""}
        assert "by hand only" in words(client.post("/wallet/rule/", none, follow=True))


def test_who_only_reads_and_where_nobody_collects_there_is_no_form(kestrel: Home) -> None:
    with clock.standing_at(NOW):
        visitor(kestrel).post("/wallet/rule/", {"threshold": "10", "amount": "50"})
        assert b'action="/wallet/top-up/"' not in visitor(kestrel, Role.ADMIN).get("/wallet/").content
        with payments.through(None):
            shown = words(visitor(kestrel).get("/wallet/"))
        assert "It is topped up by itself, by €50.00 whenever less than €10.00 is available." in shown


def test_the_api_tops_up_once_a_key_and_keeps_a_rule(kestrel: Home) -> None:
    with clock.standing_at(NOW):
        api = Api(kestrel.token(Role.OWNER))
        first = api.ask("POST", "topups", {"amount": "50.00"}, Idempotency_Key="one")
        again = api.ask("POST", "topups", {"amount": "50.00"}, Idempotency_Key="one")
        assert (first.status_code, again.json()["id"]) == (202, first.json()["id"])  # type: ignore[attr-defined]
        with as_tenant(kestrel.tenant.pk):
            assert AuditEvent.objects.filter(action="topup.open").count() == 1
        (row,) = api.get("/api/v1/topups").json()["items"]
        assert (row["status"], row["amount"]) == ("pending", {"amount": "50.000000", "currency": "EUR"})
        assert api.get(f"/api/v1/topups/{row['id']}").json() == row
        assert api.ask("POST", "topups", {"amount": "0"}).status_code == 400  # type: ignore[attr-defined]
        assert api.get("/api/v1/topup-rule").json()["amount"] is None
        told = api.ask("PUT", "topup-rule", {"threshold": "10.00", "amount": "50.00"})
        assert told.json()["threshold"]["amount"] == "10.000000"  # type: ignore[attr-defined]
        assert api.ask("DELETE", "topup-rule").status_code == 204  # type: ignore[attr-defined]
        assert api.get("/api/v1/topup-rule").json()["threshold"] is None
