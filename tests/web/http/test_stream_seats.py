"""Seats of live streams, shared by all events processes."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import connection

from tenants.services import cleanup, stream_seats
from tests.architecture.test_house_rules import ROOT
from tests.database import OwnDatabase

NOW = datetime.fromisoformat("2026-11-21T09:00:00+00:00")
LATER = NOW + timedelta(seconds=stream_seats.ALIVE.total_seconds() + 1)
Held = dict[str, int]
PATIENCE_S = 60


def take(process: str, held: Held, *, limit: int = 2, now: datetime = NOW, tenant: str = "ten_a") -> bool:
    """Take a seat as a process does that holds some, and count it."""
    taken = stream_seats.take_seat(process, tenant, held=held, limit=limit, now=now)
    held[tenant] = held.get(tenant, 0) + taken
    return taken


@pytest.mark.django_db
def test_processes_share_the_seats_of_a_tenant() -> None:
    one: Held = {}
    two: Held = {}
    assert [take("p1", one), take("p2", two), take("p1", one), take("p2", two)] == [True, True, False, False]
    assert take("p2", two, tenant="ten_b"), "another tenant has its own"
    two["ten_a"] = 0
    stream_seats.keep_seats("p2", two, changed={"ten_a"}, now=NOW)
    assert take("p1", one)


@pytest.mark.django_db
def test_a_process_that_died_frees_its_seats_within_seconds() -> None:
    assert [take("p1", {}, limit=1), take("p2", {}, limit=1)] == [True, False]
    assert take("p2", {}, limit=1, now=LATER)
    assert timedelta(seconds=1) < stream_seats.ALIVE <= timedelta(seconds=20)


@pytest.mark.django_db
def test_a_process_that_stays_alive_keeps_its_seats() -> None:
    held: Held = {}
    take("p1", held, limit=1)
    for second in range(5, 60, 5):
        stream_seats.keep_seats("p1", held, changed=(), now=NOW + timedelta(seconds=second))
    assert not take("p2", {}, limit=1, now=NOW + timedelta(seconds=60))


@pytest.mark.django_db
def test_a_process_that_was_taken_for_dead_writes_all_its_seats_again() -> None:
    held: Held = {}
    take("p1", held, limit=1)
    assert cleanup.delete_expired(now=NOW + 2 * stream_seats.ALIVE + timedelta(seconds=1)) == 1
    stream_seats.keep_seats("p1", held, changed=(), now=LATER)
    assert not take("p2", {}, limit=1, now=LATER)


@pytest.mark.django_db
def test_a_process_that_ends_frees_its_seats_at_once() -> None:
    take("p1", {}, limit=1)
    stream_seats.forget_process("p1")
    assert take("p2", {}, limit=1)


@pytest.mark.django_db
def test_a_heartbeat_writes_one_row() -> None:
    held: Held = {}
    for tenant in ("ten_a", "ten_b", "ten_c"):
        take("p1", held, tenant=tenant)
    with connection.cursor() as cursor:
        cursor.execute("SELECT xmin::text FROM stream_seats ORDER BY tenant_id")
        before = cursor.fetchall()
        stream_seats.keep_seats("p1", held, changed=(), now=LATER)
        cursor.execute("SELECT xmin::text FROM stream_seats ORDER BY tenant_id")
        assert cursor.fetchall() == before


# Holds one seat, says so, and then does nothing but stay alive.
PROCESS = """
    import asyncio, datetime, sys
    import django
    django.setup()
    from django.conf import settings
    from tenants.services import stream_seats
    from web.http import stream_seats as of_process
    from web.http.stream_authentication import StreamRefused
    from web.http.stream_seats import StreamSeats
    settings.EVENT_STREAMS_PER_TENANT = 1
    stream_seats.ALIVE, of_process.HEARTBEAT_S = datetime.timedelta(seconds=2), 0.5

    async def hold():
        try:
            async with StreamSeats().hold_seat("ten_shared"):
                print("seated", flush=True)
                await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        except StreamRefused as refused:
            print(refused.status, flush=True)

    asyncio.run(hold())
"""


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    begun: list[subprocess.Popen[str]] = []
    yield begun
    for each in begun:
        each.kill()
        each.communicate()


def start(processes: list["subprocess.Popen[str]"], database: OwnDatabase) -> "subprocess.Popen[str]":
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings", "GPUBROKER_DATABASE_URL": database.web_url}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROCESS)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT,
    )  # fmt: skip
    processes.append(process)
    return process


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_killed_process_frees_its_seats(own_database: OwnDatabase, processes: list["subprocess.Popen[str]"]) -> None:
    """Starts processes, which takes a second each."""
    first = start(processes, own_database)
    assert said(first) == "seated"
    time.sleep(2.5)  # longer than a process counts that says nothing
    assert said(start(processes, own_database)) == "429"
    first.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while (answer := said(start(processes, own_database))) != "seated":
        assert answer == "429"
        assert time.monotonic() < deadline
