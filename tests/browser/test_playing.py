"""Isolation of browser test modules."""

import pytest
from django.db import connection

from tests.browser.playing import start_chromium

pytestmark = [pytest.mark.browser, pytest.mark.django_db]


def test_database_connections_are_closed_with_the_browser() -> None:
    with start_chromium():
        connection.ensure_connection()
    with start_chromium():
        assert connection.connection is None
