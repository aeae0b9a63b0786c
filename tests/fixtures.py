"""Fixtures that tests of several layers share."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from datetime import datetime

    from django.test import Client

    from tests.simulation import Simulation, TenantContext


@pytest.fixture
def sim(db: None) -> Iterator["Simulation"]:
    """Stop the clock and hear every hint."""
    from tests.simulation import simulate

    with simulate() as sim:
        yield sim


@pytest.fixture
def operator(db: None, settings: Any) -> "Client":
    """Return the browser of an operator who is signed in."""
    from django.test import Client

    from tenants.models import User

    settings.OPERATORS_REQUIRE_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


@pytest.fixture
def simulated_payments() -> Iterator[None]:
    """Collect through the simulated gateway, and send no message to workers."""
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.payable_invoices import captured_messages

    with payments.using_gateway(SimulatedGateway()), captured_messages():
        yield


@pytest.fixture
def letters() -> Iterator[list[tuple[str, str]]]:
    """Capture sent e-mails: to whom, and subject with text."""
    from ports import mail

    sent: list[tuple[str, str]] = []
    with mail.captured_mail(lambda to, subject, text: sent.append((to, f"{subject}\n{text}"))):
        yield sent


@pytest.fixture
def priced_tenant(db: None, settings: Any) -> "TenantContext":
    """Create a tenant on a priced fleet, with all lease gates."""
    from config.env import EnvironmentSettings
    from tests.billing.histories import EURO, LONG_AGO, set_price
    from tests.simulation import create_fleet, create_tenant, offering

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    create_fleet()
    set_price(offering(), EURO, since=LONG_AGO)
    return create_tenant("Kestrel")


@pytest.fixture
def priced_fleet(sim: "Simulation") -> "TenantContext":
    """Create four priced H100 on one node, and a tenant."""
    from tests import simulation

    simulation.create_gpus(4)
    _price_everything(since=sim.now - timedelta(days=30))
    return simulation.create_tenant("Kestrel")


def _price_everything(*, since: "datetime") -> None:
    from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

    from billing.models import PriceVersion
    from billing.models.prices import list_rate_card
    from broker.models import Offering
    from tests.simulation import NOW

    PriceVersion.objects.bulk_create(
        PriceVersion(
            rate_card=list_rate_card(),
            offering=offering,
            currency="EUR",
            valid=DateTimeTZRange(since, None),
            nano_per_hour=offering.milli_units * 400_000,
            created_at=NOW,
        )
        for offering in Offering.objects.exclude(price_versions__isnull=False)
    )
