"""Fixes in API problems."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/api/v2/leases", "/api/v1/leases/x/nothing"])
def test_an_unknown_address_links_to_the_api_description(path: str) -> None:
    said = Client().get(path).json()
    assert (said["status"], said["code"]) == (404, "not-found")
    assert said["fix"]["href"] == "/api/v1/openapi.json"


def test_an_invalid_token_error_points_to_the_tokens_page() -> None:
    answer = Client().get("/api/v1/leases", headers={"Authorization": "Bearer gpb_live_nonsense"})
    assert answer.status_code == 401
    assert answer.json()["fix"]["text"] == "Create a new token on the Tokens page."
