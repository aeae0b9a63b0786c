"""A Stripe of this process behind every test here, through which payments go; hints go nowhere."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.billing.payments.bills import Rung
    from tests.billing.portal.desks import Desk
    from tests.fakestripe.server import FakeStripe


@pytest.fixture(autouse=True, scope="module")
def _worker(template_database: str) -> Iterator[None]:
    """Workers call Stripe; the web has no right to write what is sent there."""
    from tests.database import WORKER, logged_in_as

    with logged_in_as(WORKER):
        yield


@pytest.fixture(autouse=True)
def fake() -> "Iterator[FakeStripe]":
    from django.test import override_settings

    from billing.gateways.stripe import connecting
    from billing.gateways.stripe.gateway import StripeGateway
    from ports import payments
    from tests.billing.stripe.purses import SECRETS
    from tests.fakestripe.server import ACCOUNT, KEY, FakeStripe

    made = FakeStripe()
    set_ = {
        "STRIPE_SECRET_KEY": KEY,
        "STRIPE_WEBHOOK_SECRETS": ",".join(SECRETS),
        "STRIPE_ACCOUNT": ACCOUNT,
        "STRIPE_CALLS_PER_S": 10**6,
    }
    with override_settings(**set_), connecting.over(made), payments.through(StripeGateway()):
        yield made


@pytest.fixture(autouse=True)
def rung() -> "Iterator[Rung]":
    """The hints that were given, first to last."""
    from tests.billing.payments.bills import heard

    with heard() as hints:
        yield hints


@pytest.fixture
def desk(db: None, fake: "FakeStripe") -> "Iterator[Desk]":
    from tests.billing.portal.desks import opened  # Django is set up by now

    with opened() as made:
        yield made
