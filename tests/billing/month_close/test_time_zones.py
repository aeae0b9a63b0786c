"""Time zones of the test process and database sessions."""

import os
import time

import pytest
from django.db import connection

from tests import time_zones


@pytest.mark.django_db
def test_the_process_and_database_sessions_use_the_requested_time_zones() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('TimeZone'), '2026-07-01 00:00:00+00'::timestamptz")
        session, moment = cursor.fetchone()
    elsewhere = bool(os.environ.get("TESTS_IN_OTHER_TIME_ZONES"))
    assert session == (time_zones.SESSIONS if elsewhere else "UTC")
    assert moment.utcoffset().total_seconds() == (-9000 if elsewhere else 0)
    assert time.localtime(0).tm_hour == (5 if elsewhere else 0)
