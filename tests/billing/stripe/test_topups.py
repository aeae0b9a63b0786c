"""Money for a wallet goes through Stripe as any charge does: asked about when Stripe says so, and compared at night."""

from datetime import timedelta

import pytest

from billing.models import StripeDifference, StripeEvent
from billing.services.stripe import inbox, planning, reconciling, working
from tests.billing.payments.bills import Rung
from tests.billing.stripe.purses import SECRETS, there
from tests.billing.topups.tills import balance, collect, fresh, top_up
from tests.fakestripe import things
from tests.fakestripe.mill import posted
from tests.fakestripe.server import FakeStripe
from tests.fakestripe.tenants import holder
from tests.world import NOW, home

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def test_an_event_has_a_top_up_asked_about_and_the_books_agree(fake: FakeStripe, rung: Rung) -> None:
    owner = home("Kestrel")
    fake.now = NOW
    holder(fake, owner.tenant.pk, how="silent")
    topup = collect(top_up(owner, 5000))
    assert (topup.status, balance(owner)) == ("pending", 0)
    things.bank_pays(fake.things, there(fake)[0])
    inbox.receive(*posted(fake.things.events[-1], SECRETS[0], NOW), now=NOW)
    (event_id,) = inbox.due(now=NOW)
    working.work(event_id, now=NOW)
    assert ("billing.top_up", topup.pk, topup.tenant_id, NOW) in rung
    assert collect(topup).status == "succeeded"
    assert (fresh(topup).reference, balance(owner)) == (there(fake)[0]["id"], 5000)
    fake.now = NOW + DAY
    planning.plan(now=NOW + DAY)
    for day in planning.due(now=NOW + DAY):
        reconciling.work(day, now=NOW + DAY)
    assert not StripeDifference.objects.exists()


def test_a_disputed_top_up_waits_for_a_person(fake: FakeStripe) -> None:
    owner = home("Kestrel")
    fake.now = NOW
    holder(fake, owner.tenant.pk)
    topup = collect(top_up(owner, 5000))
    things.disputed(fake.things, there(fake)[0]["id"])
    inbox.receive(*posted(fake.things.events[-1], SECRETS[0], NOW), now=NOW)
    (event_id,) = inbox.due(now=NOW)
    working.work(event_id, now=NOW)
    event = StripeEvent.objects.get()
    assert event.state == "parked"
    assert f"is of top-up {topup.pk}" in event.why
