"""Fixtures: a tenant, its payer, and a signed-in user."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.test import Client

    from tests.simulation import TenantContext
    from tests.web.portal.signed_in_user import PortalSession


@pytest.fixture
def kestrel() -> "TenantContext":
    from tests.simulation import create_tenant  # Django is set up by now

    return create_tenant("Kestrel")


@pytest.fixture
def payer(kestrel: "TenantContext") -> "Client":
    """Return the browser of a member with the billing role."""
    from django.test import Client

    from tenants.domain.roles import Role

    client = Client()
    client.force_login(kestrel.create_member(Role.BILLING))
    return client


@pytest.fixture
def portal(db: None) -> Iterator["PortalSession"]:
    from tests.web.portal.signed_in_user import open_portal  # Django is set up by now

    with open_portal() as made:
        yield made
