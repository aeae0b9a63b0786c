"""Payment card page and its API."""

from typing import Any

import pytest

from billing.domain.stripe_events import parse_event
from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice, PaymentCardForm
from billing.services.invoicing.month_close import close_month
from billing.services.payments.stripe import card_setup, webhook_events, webhook_inbox
from billing.services.rating import lease_rating
from ports import clock, payments
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.rls import tenant_scope
from tests.billing.histories import HOUR, add_ended_lease, utc
from tests.billing.payments.payable_invoices import process_payment, request_payment
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import create_card_holder
from tests.simulation import TenantContext, create_tenant, offering
from tests.tenants.tenant_setup import ApiClient
from tests.web.portal.signed_in_user import PortalSession

pytestmark = pytest.mark.django_db


def process_only_form(portal: PortalSession) -> PaymentCardForm:
    with tenant_scope(portal.owner.tenant.pk):
        form = PaymentCardForm.objects.get()
    card_setup.process_card_form(form.pk, form.tenant_id, now=portal.sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        return PaymentCardForm.objects.get()


def test_a_card_is_added_on_the_page_and_entered_at_stripe(portal: PortalSession, fake: FakeStripe) -> None:
    assert "No payment card yet" in portal.read("/payment-method/")
    answer = portal.post("/payment-method/")
    assert answer.status_code == 302
    assert "Opening the Stripe form" in portal.read(answer["Location"])
    form = process_only_form(portal)
    assert f'href="{form.url}"' in portal.get(answer["Location"]).content.decode()
    things.fill_in(fake.things, form.session_id)
    back = f"/payment-method/?form={form.pk}"
    assert "Confirming the payment card with Stripe" in portal.read(back)
    process_only_form(portal)
    page = portal.read(back)
    assert "Payment card saved" in page
    assert "Visa ending in" in page
    assert "4242" in page


def test_a_failed_card_form_shows_the_reason(portal: PortalSession, fake: FakeStripe) -> None:
    where = portal.post("/payment-method/")["Location"]
    fake.ill = lambda _: "unauthorized"
    process_only_form(portal)
    page = portal.read(where)
    assert "No payment card was added" in page
    assert "does not accept our credentials" in page
    assert "sk_test" not in page


@pytest.mark.parametrize(
    ("gateway", "words"),
    [(SimulatedGateway(), "simulated on this installation"), (None, "by bank transfer")],
)
def test_without_stripe_the_card_page_states_how_invoices_are_paid(
    portal: PortalSession, gateway: Any, words: str
) -> None:
    with payments.using_gateway(gateway):
        page = portal.read("/payment-method/")
        assert words in page
        assert "Add a payment card" not in page
        assert portal.post("/payment-method/").status_code == 409


def test_a_card_form_of_another_tenant_is_not_shown(portal: PortalSession, fake: FakeStripe) -> None:
    other = create_tenant("Osprey")
    with tenant_scope(other.tenant.pk):
        form = PaymentCardForm.objects.create(
            tenant=other.tenant, asked_at=portal.sim.now, asked_by="x", state="open", url="https://x.example"
        )
    assert "x.example" not in portal.read(f"/payment-method/?form={form.pk}")


# The same over the API

NOW = utc("2026-11-01 00:05:00")


def api_client(owner: TenantContext, role: Role = Role.BILLING) -> ApiClient:
    return ApiClient(owner.token(role, now=NOW))


def test_a_card_form_is_requested_over_the_api_and_audited(kestrel: TenantContext, fake: FakeStripe) -> None:
    with clock.frozen_at(NOW):
        answer = api_client(kestrel).send("POST", "/api/v1/payment-card-forms", Idempotency_Key="k-1")
        assert answer.status_code == 202
        assert answer.json()["state"] == "wanted"
        form_id = answer.json()["id"]
        card_setup.process_card_form(form_id, kestrel.tenant.pk, now=NOW)
        body = api_client(kestrel).send("GET", f"/api/v1/payment-card-forms/{form_id}").json()
        assert (body["state"], body["url"][:29]) == ("open", "https://checkout.stripe.com/c")
        assert api_client(kestrel, Role.ADMIN).send("GET", f"/api/v1/payment-card-forms/{form_id}").json()["url"] == ""
        with tenant_scope(kestrel.tenant.pk):
            session = PaymentCardForm.objects.get().session_id
        things.fill_in(fake.things, session)
        with tenant_scope(kestrel.tenant.pk):
            PaymentCardForm.objects.update(due_at=NOW)
        card_setup.process_card_form(form_id, kestrel.tenant.pk, now=NOW)
        (card,) = api_client(kestrel).send("GET", "/api/v1/payment-cards").json()["items"]
    assert (card["brand"], card["last4"], card["ends"]) == ("visa", "4242", "2029-07")
    with tenant_scope(kestrel.tenant.pk):
        assert AuditEvent.objects.filter(action="card.ask").count() == 1


def test_invoice_page_and_api_show_disputes_and_refunds(portal: PortalSession, fake: FakeStripe) -> None:
    sim = portal.sim
    add_ended_lease(portal.owner.project, offering("1g.10gb"), utc("2026-10-05 00:00:00"), HOUR)
    sim.clock.at = sim.now.replace(month=11, day=1, hour=3)
    lease_rating.rate_all_leases(now=sim.now)
    with tenant_scope(portal.owner.tenant.pk):
        final = close_month.close_period(portal.owner.tenant, "2026-10", now=sim.now)
    assert isinstance(final, Invoice)
    create_card_holder(fake, portal.owner.tenant.pk)
    paid = process_payment(request_payment(final, now=sim.now), now=sim.now)
    (intent,) = fake.things.all("payment_intent").values()
    things.disputed(fake.things, paid.reference)
    things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "1"})
    webhook_inbox.store_events([parse_event(each) for each in fake.things.events], now=sim.now)
    for event_id in webhook_inbox.due_events(now=sim.now):
        webhook_events.process_event(event_id, now=sim.now)
    page = portal.read(f"/invoices/{final.pk}/")
    assert "charged back on" in page
    assert "Chargeback status: needs response. The invoice amount stays the same." in page
    assert "refunded to the payment card" in page
    body = ApiClient(portal.owner.token(Role.BILLING, now=sim.now)).send("GET", f"/api/v1/payments/{paid.pk}").json()
    assert [each["status"] for each in body["disputes"]] == ["needs_response"]
    assert [each["amount"]["amount"] for each in body["refunds"]] == ["0.010000"]
