"""What the operators' billing tests start from: a fleet with prices, two tenants, and time in hand."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.test import Client

    from tests.world import Home, Life


@pytest.fixture
def life(db: None) -> Iterator["Life"]:
    """Stop the clock and hear every hint."""
    from tests.world import alive

    with alive() as life:
        yield life


@pytest.fixture
def kestrel(life: "Life") -> "Home":
    """Set up four H100 of one node, everything on sale for its price since a month ago, and a tenant."""
    from tests import world

    world.cards(4)
    price_everything(since=life.now - timedelta(days=30))
    return world.home("Kestrel")


def price_everything(*, since: object) -> None:
    from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

    from billing.models import PriceVersion
    from billing.services.prices import list_card
    from broker.models import Offering
    from tests.world import NOW

    PriceVersion.objects.bulk_create(
        PriceVersion(
            rate_card=list_card(),
            offering=offering,
            currency="EUR",
            valid=DateTimeTZRange(since, None),
            nano_per_hour=offering.milli_units * 400_000,
            created_at=NOW,
        )
        for offering in Offering.objects.exclude(price_versions__isnull=False)
    )


@pytest.fixture
def operator(db: None, settings: object) -> "Client":
    """Return the browser of an operator who is signed in."""
    from django.test import Client

    from tenants.models import User

    settings.OPERATORS_NEED_MFA = False  # type: ignore[attr-defined]
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client
