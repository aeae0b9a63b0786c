"""What the operators' tests start from: one node with four cards, everything on sale, and a tenant."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.test import Client

    from tests.world import Home, Life


@pytest.fixture
def kestrel(life: "Life") -> "Home":
    from tests import world

    world.cards(4)
    return world.home("Kestrel")


@pytest.fixture
def operator(db: None, settings: object) -> "Client":
    """Return the browser of an operator who is signed in."""
    from django.test import Client

    from tenants.models import User

    settings.OPERATORS_NEED_MFA = False  # type: ignore[attr-defined]
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client
