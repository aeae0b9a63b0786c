"""The page of payments and its calls: what is saved, who may add a card, and what a disputed invoice says."""

from typing import Any

import pytest

from billing.domain.stripe_events import read
from billing.gateways.simulated import SimulatedGateway
from billing.models import CardForm, Invoice
from billing.services import closing, rating
from billing.services.stripe import inbox, saving, working
from ports import clock, payments
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.walls import as_tenant
from tests.billing.histories import HOUR, at, ran
from tests.billing.payments.bills import collect, pay
from tests.billing.portal.desks import Desk
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import holder
from tests.tenants.people import Api
from tests.world import Home, home, offering

pytestmark = pytest.mark.django_db


def work(desk: Desk) -> CardForm:
    with as_tenant(desk.owner.tenant.pk):
        form = CardForm.objects.get()
    saving.work(form.pk, form.tenant_id, now=desk.life.now)
    with as_tenant(desk.owner.tenant.pk):
        return CardForm.objects.get()


def test_a_card_is_added_on_the_page_and_typed_at_stripe(desk: Desk, fake: FakeStripe) -> None:
    assert "No card yet" in desk.read("/payment/")
    answer = desk.post("/payment/")
    assert answer.status_code == 302
    assert "Stripe&#x27;s form is being opened" in desk.read(
        answer["Location"]
    ) or "is being opened" in desk.read(answer["Location"])
    form = work(desk)
    assert f'href="{form.url}"' in desk.get(answer["Location"]).content.decode()
    things.fill_in(fake.things, form.session_id)
    back = f"/payment/?form={form.pk}"
    assert "Stripe is asked about the card" in desk.read(back)
    work(desk)
    page = desk.read(back)
    assert "The card is saved" in page
    assert "Visa ending in" in page
    assert "4242" in page


def test_a_form_that_failed_says_why(desk: Desk, fake: FakeStripe) -> None:
    where = desk.post("/payment/")["Location"]
    fake.ill = lambda _: "unauthorized"
    work(desk)
    page = desk.read(where)
    assert "No card was added" in page
    assert "does not accept our credentials" in page
    assert "sk_test" not in page


@pytest.mark.parametrize(
    ("gateway", "words"),
    [(SimulatedGateway(), "only simulated here"), (None, "paid by transfer")],
)
def test_without_stripe_the_page_says_what_it_is(desk: Desk, gateway: Any, words: str) -> None:
    with payments.through(gateway):
        page = desk.read("/payment/")
        assert words in page
        assert "Add a card" not in page
        assert desk.post("/payment/").status_code == 409


def test_another_tenants_form_is_not_shown(desk: Desk, fake: FakeStripe) -> None:
    other = home("Osprey")
    with as_tenant(other.tenant.pk):
        form = CardForm.objects.create(
            tenant=other.tenant, asked_at=desk.life.now, asked_by="x", state="open", url="https://x.example"
        )
    assert "x.example" not in desk.read(f"/payment/?form={form.pk}")


# The same over the API

NOW = at("2026-11-01 00:05:00")


def api(owner: Home, role: Role = Role.BILLING) -> Api:
    return Api(owner.token(role, now=NOW))


def test_a_form_is_asked_for_over_the_api_and_told_in_the_trail(kestrel: Home, fake: FakeStripe) -> None:
    with clock.standing_at(NOW):
        asked = api(kestrel).ask("POST", "/api/v1/card-forms", Idempotency_Key="k-1")
        assert asked.status_code == 202
        assert asked.json()["state"] == "wanted"
        form_id = asked.json()["id"]
        saving.work(form_id, kestrel.tenant.pk, now=NOW)
        told = api(kestrel).ask("GET", f"/api/v1/card-forms/{form_id}").json()
        assert (told["state"], told["url"][:29]) == ("open", "https://checkout.stripe.com/c")
        assert api(kestrel, Role.ADMIN).ask("GET", f"/api/v1/card-forms/{form_id}").json()["url"] == ""
        with as_tenant(kestrel.tenant.pk):
            session = CardForm.objects.get().session_id
        things.fill_in(fake.things, session)
        with as_tenant(kestrel.tenant.pk):
            CardForm.objects.update(due_at=NOW)
        saving.work(form_id, kestrel.tenant.pk, now=NOW)
        (card,) = api(kestrel).ask("GET", "/api/v1/cards").json()["items"]
    assert (card["brand"], card["last4"], card["ends"]) == ("visa", "4242", "2029-07")
    with as_tenant(kestrel.tenant.pk):
        assert AuditEvent.objects.filter(action="card.ask").count() == 1


def test_a_disputed_and_refunded_invoice_says_so(desk: Desk, fake: FakeStripe) -> None:
    life = desk.life
    ran(desk.owner.project, offering("1g.10gb"), at("2026-10-05 00:00:00"), HOUR)
    life.clock.at = life.now.replace(month=11, day=1, hour=3)
    rating.rate(now=life.now)
    with as_tenant(desk.owner.tenant.pk):
        final = closing.close_period(desk.owner.tenant, "2026-10", now=life.now)
    assert isinstance(final, Invoice)
    holder(fake, desk.owner.tenant.pk)
    paid = collect(pay(final, now=life.now), now=life.now)
    (intent,) = fake.things.all("payment_intent").values()
    things.disputed(fake.things, paid.reference)
    things.new_refund(fake.things, {"payment_intent": intent["id"], "amount": "1"})
    inbox.keep([read(each) for each in fake.things.events], now=life.now)
    for event_id in inbox.due(now=life.now):
        working.work(event_id, now=life.now)
    page = desk.read(f"/invoices/{final.pk}/")
    assert "disputed, since" in page
    assert "needs_response" in page
    assert "went back to the card" in page
    told = Api(desk.owner.token(Role.BILLING, now=life.now)).ask("GET", f"/api/v1/payments/{paid.pk}").json()
    assert [each["status"] for each in told["disputes"]] == ["needs_response"]
    assert [each["amount"]["amount"] for each in told["refunds"]] == ["0.010000"]
