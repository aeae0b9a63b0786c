"""Every response has a strict content security policy."""

import pytest
from django.conf import settings
from django.test import Client

pytestmark = pytest.mark.django_db
OWN = ["'self'"]
NONE = ["'none'"]


@pytest.mark.parametrize("address", ["/sign-in/", "/problems/", "/nowhere/", "/api/v1/leases", "/health"])
def test_every_response_has_exactly_the_strict_policy(address: str) -> None:
    policy = Client().get(address)["Content-Security-Policy"]
    kept = {name: sources for name, *sources in (each.split() for each in policy.split(";"))}
    assert kept == {
        "default-src": OWN,
        "connect-src": [*OWN, settings.EVENTS_URL, settings.TERMINALS_URL],
        "img-src": OWN,
        "object-src": NONE,
        "base-uri": NONE,
        "form-action": OWN,
        "frame-ancestors": NONE,
    }
