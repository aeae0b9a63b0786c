"""Pages of a tenant whose costs are only shown offer no payment."""

from typing import Any

import pytest
from django.test import Client

from billing.services.funds.accounts import account_terms
from ports import clock
from tenants.domain.roles import Role
from tests.billing.histories import OPERATOR
from tests.simulation import NOW, TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments")]


@pytest.fixture
def shown() -> TenantContext:
    """Return a tenant with show-back."""
    owner = create_tenant("Internal")
    account_terms.set_account_terms(
        owner.tenant, payment="showback", account_status="good", why="internal", actor=OPERATOR, now=NOW
    )
    return owner


def test_pages_hide_cards_and_top_ups_and_say_why(shown: TenantContext, client: Client) -> None:
    client.force_login(shown.create_member(Role.OWNER))
    with clock.frozen_at(NOW):
        pages = {path: client.get(path).content.decode() for path in ("/payment-method/", "/wallet/", "/invoices/")}
    for path in ("/payment-method/", "/wallet/"):
        assert "pays nothing here." in pages[path]
        assert "Add card" not in pages[path]
        assert 'action="/wallet/' not in pages[path]
        assert "How payments work" not in pages[path]
    assert "/payment-method/" not in pages["/invoices/"]


def test_cards_and_top_ups_are_refused_by_api(shown: TenantContext, settings: Any) -> None:
    api: Any = ApiClient(shown.token(Role.BILLING, now=NOW))
    with clock.frozen_at(NOW):
        rule = api.send("PUT", "topup-rule", {"threshold": "10.00", "amount": "20.00"})
        topup = api.send("POST", "topups", {"amount": "20.00"})
    for refused in (rule, topup):
        assert (refused.status_code, refused.json()["code"]) == (409, "topup-not-allowed")
        assert "its costs are only shown" in refused.json()["detail"]


def test_paying_tenant_still_has_its_payment_page(client: Client) -> None:
    owner = create_tenant("Paying")
    client.force_login(owner.create_member(Role.OWNER))
    with clock.frozen_at(NOW):
        assert "pays nothing here" not in client.get("/payment-method/").content.decode()
        assert 'action="/wallet/top-up/"' in client.get("/wallet/").content.decode()
