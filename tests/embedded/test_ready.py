"""A start waits for each process, and each is asked in a way that only the running one answers."""

import os
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from deploy.embedded import folders, product
from deploy.embedded.process import Part
from deploy.embedded.product import Product
from deploy.embedded.roles import Server
from deploy.embedded.valkey import Valkey
from tests.database import OwnDatabase

Labour = Callable[[], dict[str, Part]]


@pytest.fixture
def labour(tmp_path: Path) -> Labour:
    """Return a function that describes what works in the background, as a start would right before it begins."""
    places = folders.prepare(tmp_path, servers=None, products=None)
    valkey = Valkey("valkey-server", places.valkey, places.sockets)
    installed = Product(places, Server("postgresql://boss@db.example/x"), valkey, "127.0.0.1", 8000)
    return lambda: {part.name: part for part in installed.labour()}


def test_nothing_is_taken_for_ready_just_because_it_was_started(labour: Labour) -> None:
    trusted = Part.__dataclass_fields__["ready"].default
    assert {name for name, part in labour().items() if part.ready is trusted} == set()


def test_beat_is_ready_once_it_has_written_its_timetable_anew(labour: Labour, tmp_path: Path) -> None:
    timetable = tmp_path / "files/beat-schedule.db"
    first = labour()["beat"]
    assert not first.ready(None)  # type: ignore[arg-type]
    timetable.write_text("entries")
    assert first.ready(None)  # type: ignore[arg-type]
    second = labour()["beat"]
    assert not second.ready(None)  # type: ignore[arg-type]
    os.utime(timetable, ns=(0, timetable.stat().st_mtime_ns + 1))
    assert second.ready(None)  # type: ignore[arg-type]


def test_the_relay_is_ready_once_it_has_looked_for_hints(
    labour: Labour, own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = own_database.worker_url
    monkeypatch.setattr(Server, "login", lambda self, role, database: url)
    monkeypatch.setattr(product, "DATABASE", own_database.name)
    relay = labour()["relay"]
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT count(*) FROM ports_ring")
        assert not relay.ready(None)  # type: ignore[arg-type]
    name = relay.env["PGAPPNAME"]
    with psycopg.connect(url, application_name=name, autocommit=True) as session:
        session.execute("LISTEN gpubroker_doorbell")
        assert not relay.ready(None)  # type: ignore[arg-type]
        session.execute("SELECT count(*) FROM ports_ring")
        assert relay.ready(None)  # type: ignore[arg-type]


def test_a_relay_whose_database_is_away_is_not_ready(
    labour: Labour, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Server, "login", lambda self, role, database: f"postgresql://worker@127.0.0.1:{port}/gone"
    )
    assert not labour()["relay"].ready(None)  # type: ignore[arg-type]
