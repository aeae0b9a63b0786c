"""Who comes to the doors of billing: an operator, and whoever pays for a tenant of the usual shape."""

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

if TYPE_CHECKING:
    from tests.world import Home


@pytest.fixture
def kestrel() -> "Home":
    from tests.world import home  # Django is set up by now

    return home("Kestrel")


@pytest.fixture
def operator(settings: Any) -> Client:
    from tenants.models import User

    settings.OPERATORS_NEED_MFA = False
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


@pytest.fixture
def payer(kestrel: "Home") -> Client:
    from tenants.domain.roles import Role

    client = Client()
    client.force_login(kestrel.member(Role.BILLING))
    return client
