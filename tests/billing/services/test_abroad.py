"""Where the process and its sessions live changes nothing; `make test-abroad` runs most of money's tests elsewhere."""

import os
import time

import pytest
from django.db import connection

from tests import abroad


@pytest.mark.django_db
def test_process_and_sessions_live_where_it_was_asked_for() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('TimeZone'), '2026-07-01 00:00:00+00'::timestamptz")
        session, moment = cursor.fetchone()
    elsewhere = bool(os.environ.get("TESTS_ABROAD"))
    assert session == (abroad.SESSIONS if elsewhere else "UTC")
    assert moment.utcoffset().total_seconds() == (-9000 if elsewhere else 0)
    assert time.localtime(0).tm_hour == (5 if elsewhere else 0)
