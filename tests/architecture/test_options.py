"""OPTIONS answers at every API address with the methods of the access table."""

import pytest

from tests.architecture import routes
from tests.architecture.matrix import ROWS
from tests.architecture.visitors import browser

pytestmark = pytest.mark.django_db


def api_routes() -> list[str]:
    return sorted(route for route in ROWS if route.startswith("api/v1/"))


def test_options_names_the_methods_of_every_address_without_a_credential() -> None:
    for route in api_routes():
        answer = browser().options(routes.address(route, *["x"] * routes.places(route)))
        assert answer.status_code == 204, (route, answer.status_code)
        assert set(answer["Allow"].split(", ")) == {*ROWS[route].methods, "HEAD", "OPTIONS"} - (
            set() if "GET" in ROWS[route].methods else {"HEAD"}
        ), route
        assert answer.content == b""


def test_options_ignores_an_invalid_credential_and_unknown_parameters() -> None:
    for route in api_routes():
        address = routes.address(route, *["x"] * routes.places(route)) + "?x=1&dry_run=ture"
        answer = browser().options(address, headers={"Authorization": "Bearer gpb_live_nonsense"})
        assert answer.status_code == 204, (route, answer.status_code)


def test_options_names_the_methods_of_pages() -> None:
    for path, methods in (("/leases/", {"GET"}), ("/ops/", {"GET"}), ("/health", {"GET"}), ("/problems/", {"GET"})):
        answer = browser().options(path)
        assert (answer.status_code, answer.content) == (204, b""), path
        assert methods | {"OPTIONS"} <= set(answer["Allow"].split(", ")), path


def test_options_of_an_unknown_address_is_404() -> None:
    assert browser().options("/api/v1/nowhere").status_code == 404
