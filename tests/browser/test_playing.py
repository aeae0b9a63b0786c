"""What one file of browser tests leaves to the next: nothing."""

import pytest
from django.db import connection

from tests.browser.playing import playing

pytestmark = [pytest.mark.browser, pytest.mark.django_db]


def test_connections_made_beside_a_browser_end_with_it() -> None:
    with playing():
        connection.ensure_connection()
    with playing():
        assert connection.connection is None
