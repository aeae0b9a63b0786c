"""Pages redirect to the public address of the installation."""

from typing import Any

import pytest
from django.test import Client

PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def here(settings: Any) -> Client:
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "http://localhost:8000", ["*"]
    return Client()


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "[::1]:8000"])
def test_a_page_at_the_ip_address_is_redirected_to_the_host_name(here: Client, host: str) -> None:
    answer = here.get("/spend/?by=month", headers={"Host": host, **PAGE})
    assert (answer.status_code, answer["Location"]) == (302, "http://localhost:8000/spend/?by=month")


@pytest.mark.parametrize("public", ["http://localhost", "http://localhost:80/", "https://localhost:443"])
def test_the_default_port_is_omitted_from_the_redirect(settings: Any, public: str) -> None:
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = public, ["*"]
    answer = Client().get("/spend/", headers={"Host": "127.0.0.1", **PAGE})
    assert (answer.status_code, answer["Location"]) == (302, f"{public.rstrip('/')}/spend/")


@pytest.mark.parametrize(
    ("host", "headers"),
    [
        ("localhost:8000", PAGE),
        ("127.0.0.1:9000", PAGE),  # a tunnel
        ("127.0.0.1", PAGE),
        ("127.0.0.1:8000", {"Accept": "*/*"}),  # a program
        ("127.0.0.1:8000", {**PAGE, "X-Forwarded-For": "192.0.2.7"}),  # a proxy that does not pass Host on
        ("127.0.0.1:8000", {**PAGE, "Forwarded": "for=192.0.2.7"}),
    ],
)
def test_other_requests_are_not_redirected(here: Client, host: str, headers: dict[str, str]) -> None:
    assert here.get("/health", headers={"Host": host, **headers}).status_code == 200


def test_a_form_is_never_redirected(here: Client) -> None:
    assert here.post("/health", headers={"Host": "127.0.0.1:8000", **PAGE}).status_code == 405


def test_a_public_url_with_an_ip_address_redirects_nothing(here: Client, settings: Any) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    assert here.get("/health", headers={"Host": "127.0.0.1:8000", **PAGE}).status_code == 200
