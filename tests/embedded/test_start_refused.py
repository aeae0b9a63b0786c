"""Refused starts: reasons, fixes and unchanged data."""

import errno
import os
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.embedded import account, folders, port_check
from deploy.embedded.database_setup import need_upgradable
from deploy.embedded.progress import Progress
from deploy.embedded.roles import Server, prepare_database, require_database_url
from deploy.embedded.run import installation
from deploy.embedded.run_lock import lock_data_directory
from deploy.embedded.startup_error import StartupError
from tests import session
from tests.database import OwnDatabase
from tests.embedded.conftest import Start

Begin = Callable[..., Start]
WORD = "hunter2"


def options(data: Path, port: int, *, fresh: bool = False) -> Namespace:
    return Namespace(data=data, port=port, host="127.0.0.1", fresh=fresh)


def test_a_port_in_use_is_refused_with_its_process_and_another_port(data: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with (
            pytest.raises(StartupError, match=rf"Port {port}.* is in use by .* \(process {os.getpid()}\)") as error,
            installation(options(data, port)),
        ):
            pytest.fail("started on a port that was taken")
    assert f"make run PORT={port + 100}" in str(error.value)
    assert "\n" not in str(error.value)
    assert not (data / "postgres").exists()


def test_the_port_of_the_event_server_must_be_free(data: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        with pytest.raises(StartupError, match=f"Port {port + 1}, needed for live events"):
            installation(options(data, port)).__enter__()


def test_a_listener_on_ipv6_localhost_is_named(port: int) -> None:
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind(("::1", port))
        except OSError:
            pytest.skip("this machine has no IPv6")
        taken.listen()
        with pytest.raises(StartupError, match=rf"Port {port}.* is in use by .* \(process {os.getpid()}\)"):
            port_check.require_free_port("127.0.0.1", port, what="the portal", option="PORT")


@pytest.mark.parametrize("number", [0, 32_768, 70_000])
def test_a_port_out_of_range_is_refused(number: int) -> None:
    with pytest.raises(StartupError, match="out of range"):
        port_check.require_free_port("127.0.0.1", number, what="the portal", option="PORT")


@pytest.mark.parametrize("text", ["abc", "99999", "0", "32767", "-1", "8000.5", "", "９", "8" * 5000])
def test_an_invalid_port_option_is_refused_in_one_sentence_with_an_example(text: str, data: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.embedded", "run", f"--port={text}", "--data", str(data / "new")],
        cwd=session.CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"PORT={text} is not a port that gpubroker can use: choose a number from 1 to 32766, "
        "for example make run PORT=8100.\n"
    )
    assert not (data / "new").exists()


@pytest.mark.parametrize("text", ["1", "8100", "32766"])
def test_a_port_up_to_32766_is_accepted(text: str) -> None:
    assert port_check.parse_port(text) == int(text)


def test_an_address_of_another_machine_is_refused(port: int) -> None:
    with pytest.raises(StartupError, match=r"192\.0\.2\.1:\d+ cannot be used for the portal"):
        port_check.require_free_port("192.0.2.1", port, what="the portal", option="PORT")


@pytest.mark.deep
def test_a_second_start_on_the_same_data_is_refused(start: Begin, data: Path, port: int) -> None:
    first = start("sleeper")
    first.until_ready()
    with pytest.raises(StartupError, match=rf"already runs .*\(process {first.popen.pid}\)"):
        installation(options(data, port)).__enter__()
    assert first.popen.poll() is None


def test_a_data_folder_without_write_permission_is_refused(port: int) -> None:
    with pytest.raises(StartupError) as error:
        installation(options(Path("/proc/gpubroker"), port)).__enter__()
    assert "make run DATA=<folder>" in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_data_folder_is_refused(data: Path, port: int) -> None:
    data.chmod(0o500)
    with pytest.raises(StartupError, match="No permission to write"):
        installation(options(data, port)).__enter__()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the servers to another user")
def test_a_data_folder_that_the_servers_user_cannot_reach_is_refused(data: Path) -> None:
    data.chmod(0o700)
    with pytest.raises(StartupError, match=r"The user \w+, whom PostgreSQL runs as, cannot reach"):
        folders.create_directories(data / "inside", servers=account.unprivileged_account(), products=None)


def test_a_disk_that_is_nearly_full_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "NEEDED_BYTES", 10**18)
    with pytest.raises(StartupError, match="nearly full"):
        folders.create_directories(data, servers=None, products=None)


def test_a_full_disk_is_described_with_its_path(data: Path) -> None:
    full = OSError(28, "No space left on device", "/data/secret_key")
    assert folders.describe_os_error(full, data).startswith("The disk is full: /data/secret_key")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_missing_write_permission_is_described_with_a_fix(data: Path, number: int) -> None:
    said = folders.describe_os_error(OSError(number, os.strerror(number), "/data/secret_key"), data)
    assert said.startswith("No permission to write /data/secret_key.")
    assert "make run DATA=<folder>" in said


def test_a_database_server_that_cannot_be_reached_is_named(port: int) -> None:
    with pytest.raises(StartupError, match=r"could not be reached.*(?s:.*)DATABASE_URL"):
        prepare_database(Server(f"postgresql://nobody:password@127.0.0.1:{port}/postgres"))


@pytest.mark.parametrize(
    "nonsense",
    [
        "nonsense",
        "postgres",
        f"mysql://boss:{WORD}@db.example/app",
        f"postgresql://boss:{WORD}@db.example:port/app",
        f"postgresql://boss:{WORD}@[db.example/app",
        f"postgresql://boss:{WORD}@db.example/app?no_such_option=1",
        f"host=db.example user=boss password={WORD}",
    ],
)
def test_an_invalid_database_url_is_refused_without_showing_the_password(
    nonsense: str, data: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", nonsense)
    with pytest.raises(StartupError, match="DATABASE_URL=postgresql://user") as error:
        installation(options(data, port)).__enter__()
    assert WORD not in str(error.value)
    assert list(data.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    ["postgresql://boss:word@db.example:5433/app?sslmode=require", "postgresql:///postgres?host=/run/pg"],
)
def test_a_valid_database_url_is_accepted(address: str) -> None:
    require_database_url(address)


def test_a_login_without_rights_is_refused_with_the_missing_ones(own_database: OwnDatabase) -> None:
    with pytest.raises(StartupError, match=r"lacks rights.*(?s:.*)CREATEROLE"):
        prepare_database(Server(own_database.web_url), session.database_name("never"))


def test_a_fresh_start_never_empties_a_server_that_is_not_ours(
    data: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://someone@127.0.0.1/postgres")
    with pytest.raises(StartupError, match="FRESH=1 does not delete databases"):
        installation(options(data, port, fresh=True)).__enter__()


def create_foreign_files(folder: Path) -> None:
    """Create foreign files in a folder, some in folders with our names."""
    for name in ("thesis.txt", "photos/one.jpg", "files/letter.txt", "postgres/PG_VERSION"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("15")


def listed(folder: Path) -> set[str]:
    return {str(place.relative_to(folder)) for place in folder.rglob("*")}


@pytest.mark.parametrize("fresh", [True, False])
def test_a_foreign_data_folder_is_refused_and_left_unchanged(data: Path, port: int, fresh: bool) -> None:
    create_foreign_files(data)
    before = listed(data)
    with pytest.raises(StartupError, match=r"not empty and not gpubroker's.*(?s:.*)make run DATA=<folder>"):
        installation(options(data, port, fresh=fresh)).__enter__()
    assert listed(data) == before


def test_a_refused_fresh_start_deletes_nothing(data: Path, port: int) -> None:
    lock_data_directory(data, Progress()).close()
    (data / "demo.json").write_text("{}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(StartupError, match="is in use"):
            installation(options(data, port, fresh=True)).__enter__()
    assert (data / "demo.json").exists()


def test_deleting_the_state_keeps_foreign_files(data: Path) -> None:
    lock_data_directory(data, Progress()).close()
    folders.create_directories(data, servers=None, products=None)
    for name in ("administrator", "demo.json", "thesis.txt"):
        (data / name).write_text("words")
    folders.delete_state(data)
    assert listed(data) == {folders.MARKER_FILE, "lock", "thesis.txt"}


def test_a_data_folder_of_an_earlier_version_is_recognised(data: Path) -> None:
    for name in ("secrets", "valkey", "postgres"):
        (data / name).mkdir()
    (data / "lock").write_text("17\n")
    folders.require_own_directory(data)


def test_a_folder_with_only_lost_and_found_counts_as_empty(data: Path) -> None:
    (data / "lost+found").mkdir()
    lock_data_directory(data, Progress()).close()
    assert (data / folders.MARKER_FILE).exists()


def test_a_database_from_before_the_squashed_migrations_is_refused_with_a_fix(
    own_database: OwnDatabase,
) -> None:
    server, name = own_database.server, own_database.name
    need_upgradable(server, name)
    with server.as_administrator(name) as connection:
        connection.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('tenants', '0002_walls', now())")
    with pytest.raises(StartupError, match="unreleased earlier version: run make run FRESH=1"):
        need_upgradable(server, name)
    with server.as_administrator(name) as connection:
        connection.execute("DROP TABLE django_migrations")
    need_upgradable(server, name)
