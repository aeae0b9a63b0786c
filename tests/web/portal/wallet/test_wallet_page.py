"""Payment terms and account status on pages and API."""

import pytest
from django.test import Client

from billing.models import AccountTerms
from ports import clock
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.rls import tenant_scope
from tests.billing.wallets.prepaid_tenants import WHY, give_credit, make_prepaid, set_payment_terms
from tests.simulation import NOW, TenantContext, offering, simulate
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.page_text import page_words
from web.portal.layout.account_status import runway_hours, runway_text

pytestmark = pytest.mark.django_db


def visitor(kestrel: TenantContext, role: Role = Role.BILLING) -> Client:
    client = Client()
    client.force_login(kestrel.create_member(role))
    return client


def test_a_prepaid_tenant_sees_the_available_amount_and_its_duration(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 1000)
        client = visitor(kestrel)
        assert "Wallet €10.00 no spend" in page_words(client.get("/wallet/"))
        sim.create_lease(kestrel, offering(), max_duration_s=9 * 3600)
        shown = page_words(client.get("/wallet/"))
        assert "Wallet €8.98 8 h at this spend rate" in shown
        assert "In use €1.02" in shown
        assert "Available €8.98" in shown
        assert "Your account is prepaid." in shown
        child = kestrel.create_project("below")
        assert child.pk
        assert "h at this spend rate" not in page_words(visitor(kestrel, Role.MEMBER).get("/leases/"))


def test_a_tenant_who_pays_by_invoice_sees_no_available_amount(kestrel: TenantContext) -> None:
    with simulate():
        shown = page_words(visitor(kestrel).get("/wallet/"))
    assert "Available" not in shown
    assert "at this spend rate" not in shown


def test_the_duration_of_the_available_amount_is_shown_in_hours_or_days() -> None:
    assert (
        runway_hours(100, 10**9, "EUR"),
        runway_hours(100, 0, "EUR"),
        runway_hours(100, 10**9, "JPY"),
    ) == (1, None, 100)
    assert (runway_text(47), runway_text(48), runway_text(60), runway_text(None)) == (
        "47 h at this spend rate",
        "2 days at this spend rate",
        "3 days at this spend rate",
        "no spend",
    )


def test_every_page_shows_an_account_status_of_grace_or_suspended(kestrel: TenantContext) -> None:
    with simulate():
        client = visitor(kestrel, Role.MEMBER)
        assert "overdue" not in page_words(client.get("/"))
        set_payment_terms(kestrel, account_status="grace")
        assert f"An invoice is overdue. Leases are not affected yet. {WHY}" in page_words(client.get("/leases/"))
        set_payment_terms(kestrel, account_status="suspended")
        assert f"Running leases continue. {WHY}" in page_words(client.get("/"))


def test_the_launch_page_of_an_empty_wallet_shows_the_available_amount(kestrel: TenantContext) -> None:
    with simulate():
        make_prepaid(kestrel)
        shown = page_words(visitor(kestrel, Role.OWNER).get("/launch/"))
        assert "is available in the wallet" in shown


def test_the_api_shows_payment_terms_and_refuses_leases_without_funds(kestrel: TenantContext) -> None:
    with simulate():
        make_prepaid(kestrel)
        api = ApiClient(kestrel.token(Role.OWNER))
        body = api.get("/api/v1/wallet").json()
        assert (body["payment_terms"], body["account_status"], body["reason"]) == ("prepaid", "good", WHY)
        assert body["available"] == {"amount": "0.000000", "currency": "EUR"}
        values = {
            "project": kestrel.project.pk,
            "offering": offering().pk,
            "name": "x",
            "max_duration_s": 3600,
        }
        answer = api.send("POST", "leases", values)
        assert answer.status_code == 402  # type: ignore[attr-defined]
        assert answer.json()["missing"] == "€1.02"  # type: ignore[attr-defined]


def test_operators_set_payment_terms_with_a_reason_and_it_is_audited(operator: Client, kestrel: TenantContext) -> None:
    address = f"/ops/tenants/{kestrel.tenant.pk}/payment-terms/"
    with clock.frozen_at(NOW):
        assert "Payment terms of Kestrel" in page_words(operator.get(address))
        form = {"payment": "prepaid", "account_status": "good", "reason": WHY}
        page = operator.get(address).content.decode()
        assert [name for name in form if f'name="{name}"' not in page] == []
        for _ in range(2):
            assert operator.post(address, form).status_code == 302
        assert "Payment terms of Kestrel saved." in page_words(operator.get(address))
        for wrong in ({"payment": "never"}, {"account_status": "fine"}, {"reason": " "}):
            assert operator.post(address, form | wrong).status_code == 400
        assert operator.get("/ops/tenants/ten_x/payment-terms/").status_code == 404
        (row,) = operator.get("/api/v1/ops/payment-terms?payment_terms=prepaid").json()["items"]
        assert (row["tenant"]["name"], row["reason"]) == ("Kestrel", WHY)
        assert operator.post(address, form | {"payment": "invoice"}).status_code == 302
    with tenant_scope(kestrel.tenant.pk):
        assert AccountTerms.objects.get().version == 2
        reported = [event.detail for event in AuditEvent.objects.filter(action="terms.set").order_by("pk")]
    assert [(each["before"], each["after"]) for each in reported] == [
        ("invoice, good", "prepaid, good"),
        ("prepaid, good", "invoice, good"),
    ]
