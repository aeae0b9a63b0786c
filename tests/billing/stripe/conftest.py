"""In-process Stripe fake and captured messages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.billing.payments.payable_invoices import CapturedMessages
    from tests.fakestripe.server import FakeStripe
    from tests.web.portal.signed_in_user import PortalSession


@pytest.fixture(autouse=True, scope="module")
def _worker(template_database: str) -> Iterator[None]:
    """Workers call Stripe; the web role may not write what is sent there."""
    from deploy.embedded.roles import WORKER
    from tests.database import logged_in_as

    with logged_in_as(WORKER):
        yield


@pytest.fixture(autouse=True)
def fake() -> "Iterator[FakeStripe]":
    from django.test import override_settings

    from billing.gateways.stripe.gateway import StripeGateway
    from ports import payments
    from tests.billing.gateways.transports import use_transport
    from tests.billing.stripe.stripe_customers import SECRETS
    from tests.fakestripe.server import ACCOUNT, KEY, FakeStripe

    made = FakeStripe()
    set_ = {
        "STRIPE_SECRET_KEY": KEY,
        "STRIPE_WEBHOOK_SECRETS": ",".join(SECRETS),
        "STRIPE_ACCOUNT": ACCOUNT,
        "STRIPE_CALLS_PER_S": 10**6,
    }
    with override_settings(**set_), use_transport(made), payments.using_gateway(StripeGateway()):
        yield made


@pytest.fixture(autouse=True)
def enqueued() -> "Iterator[CapturedMessages]":
    """Return the captured messages, oldest first."""
    from tests.billing.payments.payable_invoices import captured_messages

    with captured_messages() as hints:
        yield hints


@pytest.fixture
def portal(db: None, fake: "FakeStripe") -> "Iterator[PortalSession]":
    from tests.web.portal.signed_in_user import open_portal  # Django is set up by now

    with open_portal() as made:
        yield made
