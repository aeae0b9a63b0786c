"""Where the process and its sessions live changes nothing; `make test-abroad` runs most of billing's tests so."""

import time

import pytest
from django.db import connection

from tests import abroad


@pytest.mark.skipif("not __import__('os').environ.get('TESTS_ABROAD')", reason="make test-abroad moves there")
@pytest.mark.django_db
def test_we_are_abroad_where_it_was_asked_for() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('TimeZone'), '2026-07-01 00:00:00+00'::timestamptz")
        session, moment = cursor.fetchone()
    assert session == abroad.SESSIONS
    assert moment.utcoffset().total_seconds() == -9000
    assert time.localtime(0).tm_hour == 5
