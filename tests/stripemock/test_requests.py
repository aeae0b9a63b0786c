"""Every request that we send to Stripe is one that Stripe's own description of its API takes."""

from datetime import timedelta

import pytest
from django.db import transaction

from billing.models import Invoice
from billing.services.moves import by_hand
from billing.services.payments.collecting import PAYMENTS
from billing.services.stripe import cards, inbox, planning, reconciling, saving, working
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit
from tests.billing.payments.bills import MIRA, NOW, bill, collect, pay
from tests.billing.refunds.ways import send_back, work
from tests.billing.stripe.purses import at, billed, there
from tests.fakestripe import things
from tests.fakestripe.things import ROUTES
from tests.stripemock.beside import Beside

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
# What the tests' Stripe can do besides, and we never ask for.
NEVER = {
    ("get", "/v1/disputes"),
    ("get", r"/v1/events/([a-z_]+_[0-9]+)"),
    ("post", r"/v1/payment_methods/([a-z_]+_[0-9]+)/detach"),
}


def card(beside: Beside) -> Invoice:
    """Have a card saved, as people do."""
    invoice = bill()
    with as_tenant(invoice.tenant_id):
        form = cards.ask(invoice.tenant, actor=MIRA, now=NOW)
    beside.fake.ill = at("customers", "500_done")  # so that the customer is looked for
    for minutes in (0, 1, 2):
        saving.work(form.pk, form.tenant_id, now=NOW + timedelta(minutes=minutes))
    with as_tenant(form.tenant_id):
        form.refresh_from_db()
        things.fill_in(beside.fake.things, form.session_id)
        cards.look_now(form, now=NOW + timedelta(hours=1))
    saving.work(form.pk, form.tenant_id, now=NOW + timedelta(hours=1))
    return invoice


def test_every_request_of_ours_is_one_that_stripe_takes(beside: Beside) -> None:
    beside.fake.now = NOW
    paid = card(beside)
    collect(pay(paid))
    credit(paid)
    beside.fake.ill = at("refunds", "500_done")  # so that it is looked for
    back = work(send_back(paid, 150))
    work(back, now=NOW + DAY)
    collect(pay(billed(beside.fake, how="declined")))  # is voided
    lost = billed(beside.fake)
    beside.fake.ill = at("invoices", "500_done")  # is looked for
    waits = collect(pay(lost))
    collect(waits, now=NOW + timedelta(hours=2))
    off = billed(beside.fake)
    beside.fake.total_off = 1
    stuck = collect(pay(off))  # the draft is deleted
    beside.fake.total_off = 0
    by_hand.nothing_was_taken(PAYMENTS, stuck, why="x", actor=MIRA, now=NOW + timedelta(hours=1))
    collect(stuck, now=NOW + timedelta(hours=1))
    things.disputed(beside.fake.things, there(beside.fake)[0]["id"])
    beside.fake.things.refund_as = "pending"
    slow = work(send_back(paid, 10, seen=150, now=NOW + DAY), now=NOW + DAY)
    work(slow, now=NOW + 2 * DAY)
    now = beside.fake.now = NOW + 3 * DAY
    planning.plan(now=now)
    for day in planning.due(now=now):
        reconciling.work(day, now=now)
    for event_id in inbox.due(now=now):
        working.work(event_id, now=now)
    assert beside.refused == []
    known = {(method, pattern) for method, pattern, _, _ in ROUTES}
    assert known - beside.asked == NEVER


def test_a_request_of_a_wrong_shape_is_refused_by_it(beside: Beside) -> None:
    """So that its silence about ours means something."""
    with transaction.atomic():
        collect(pay(billed(beside.fake)))
    assert beside.refused == []
    from billing.gateways.stripe.connecting import client

    with pytest.raises(AssertionError):
        client().v1.invoices.create({"customer": 5, "no_such": "x"}, {"idempotency_key": "x"})  # type: ignore[typeddict-unknown-key,typeddict-item]
    assert "additional properties are not allowed" in beside.refused[0]
