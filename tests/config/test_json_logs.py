"""Log entries contain no secrets of links."""

import json
import logging

import pytest
import structlog
from django.test import Client

from config.json_logs import LOGGING


def logged(record: logging.LogRecord) -> dict[str, str]:
    """Return a record as it is written."""
    wanted = {name: value for name, value in LOGGING["formatters"]["json"].items() if name != "()"}
    written: dict[str, str] = json.loads(structlog.stdlib.ProcessorFormatter(**wanted).format(record))
    return written


@pytest.mark.parametrize("path", ["/join/{}/", "/account/confirm-email/{}/", "/account/password/reset/key/usr_1-{}/"])
def test_the_secret_of_a_link_is_not_logged(path: str) -> None:
    address = path.format("a-secret:of_a-link")
    with structlog.contextvars.bound_contextvars(path=address):
        try:
            raise LookupError(f"nothing at {address}")
        except LookupError as error:
            told = (type(error), error, error.__traceback__)
        record = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "failed: %s", (address,), told)
        written = logged(record)
    assert "a-secret" not in json.dumps(written)
    assert written["path"].startswith(path.partition("{")[0].removesuffix("usr_1-"))
    assert "nothing at" in written["exception"]


@pytest.mark.django_db
def test_a_refused_form_of_an_invitation_does_not_log_its_secret(caplog: pytest.LogCaptureFixture) -> None:
    Client(enforce_csrf_checks=True).post("/join/a-secret-of-an-invitation/")
    (record,) = [each for each in caplog.records if each.name == "django.security.csrf"]
    assert "a-secret" in record.getMessage()  # as Django has it
    assert "a-secret" not in json.dumps(logged(record))


def test_other_addresses_are_logged_as_they_are() -> None:
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "read /api/v1/leases/lse_1 and /join/", (), None)
    assert logged(record)["event"] == "read /api/v1/leases/lse_1 and /join/"
