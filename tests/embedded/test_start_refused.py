"""A start that cannot succeed says why and what to do, and leaves nothing running."""

import errno
import os
import socket
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.embedded import account, folders, listening
from deploy.embedded.complaint import Complaint
from deploy.embedded.roles import Server, need_address, prepare_database
from deploy.embedded.run import installation
from tests import ground
from tests.database import OwnDatabase
from tests.embedded.conftest import Start

Begin = Callable[..., Start]
WORD = "hunter2"


def options(data: Path, port: int, *, fresh: bool = False) -> Namespace:
    return Namespace(data=data, port=port, host="127.0.0.1", fresh=fresh)


def test_a_port_in_use_names_who_uses_it_and_how_to_choose_another(data: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with (
            pytest.raises(
                Complaint, match=rf"Port {port}.* is in use by .* \(process {os.getpid()}\)"
            ) as told,
            installation(options(data, port)),
        ):
            pytest.fail("started on a port that was taken")
    assert f"make run PORT={port + 100}" in str(told.value)
    assert not (data / "postgres").exists()


def test_the_port_of_the_events_must_be_free_too(data: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        with pytest.raises(Complaint, match=f"Port {port + 1}, needed for live events"):
            installation(options(data, port)).__enter__()


def test_somebody_else_at_localhosts_other_address_is_named(port: int) -> None:
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind(("::1", port))
        except OSError:
            pytest.skip("this machine has no IPv6")
        taken.listen()
        with pytest.raises(Complaint, match=rf"Port {port}.* is in use by .* \(process {os.getpid()}\)"):
            listening.need_free("127.0.0.1", port, what="the portal", option="PORT")


@pytest.mark.parametrize("number", [0, 32_768, 70_000])
def test_a_port_that_fails_now_and_then_is_refused_at_once(number: int) -> None:
    with pytest.raises(Complaint, match="out of range"):
        listening.need_free("127.0.0.1", number, what="the portal", option="PORT")


def test_an_address_of_another_machine_is_refused(port: int) -> None:
    with pytest.raises(Complaint, match=r"cannot listen on 192\.0\.2\.1"):
        listening.need_free("192.0.2.1", port, what="The portal", option="PORT")


def test_a_second_start_on_the_same_data_is_refused(start: Begin, data: Path, port: int) -> None:
    first = start("sleeper")
    first.until_ready()
    with pytest.raises(Complaint, match=rf"already runs .*\(process {first.popen.pid}\)"):
        installation(options(data, port)).__enter__()
    assert first.popen.poll() is None


def test_a_data_folder_nobody_may_write_is_refused(port: int) -> None:
    with pytest.raises(Complaint) as told:
        installation(options(Path("/proc/gpubroker"), port)).__enter__()
    assert "make run DATA=<folder>" in str(told.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_data_folder_is_refused(data: Path, port: int) -> None:
    data.chmod(0o500)
    with pytest.raises(Complaint, match="No permission to write"):
        installation(options(data, port)).__enter__()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the servers to another user")
def test_a_data_folder_that_the_servers_user_cannot_reach_is_refused(data: Path) -> None:
    data.chmod(0o700)
    with pytest.raises(Complaint, match=r"The user \w+, whom PostgreSQL runs as, cannot reach"):
        folders.prepare(data / "inside", servers=account.unprivileged(), products=None)


def test_a_disk_that_is_nearly_full_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "NEEDED_BYTES", 10**18)
    with pytest.raises(Complaint, match="nearly full"):
        folders.prepare(data, servers=None, products=None)


def test_a_disk_that_fills_up_is_named_as_such(data: Path) -> None:
    full = OSError(28, "No space left on device", "/data/secret_key")
    assert folders.describe(full, data).startswith("The disk is full: /data/secret_key")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_place_that_may_not_be_written_is_named_with_what_to_do(data: Path, number: int) -> None:
    said = folders.describe(OSError(number, os.strerror(number), "/data/secret_key"), data)
    assert said.startswith("No permission to write /data/secret_key.")
    assert "make run DATA=<folder>" in said


def test_a_database_server_that_cannot_be_reached_is_named(port: int) -> None:
    with pytest.raises(Complaint, match=r"could not be reached.*(?s:.*)DATABASE_URL"):
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
def test_an_address_that_is_none_is_refused_in_words_without_the_password(
    nonsense: str, data: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", nonsense)
    with pytest.raises(Complaint, match="DATABASE_URL=postgresql://user") as told:
        installation(options(data, port)).__enter__()
    assert WORD not in str(told.value)
    assert list(data.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    ["postgresql://boss:word@db.example:5433/app?sslmode=require", "postgresql:///postgres?host=/run/pg"],
)
def test_an_address_that_is_one_passes(address: str) -> None:
    need_address(address)


def test_a_login_without_rights_is_told_which_it_lacks(own_database: OwnDatabase) -> None:
    with pytest.raises(Complaint, match=r"lacks rights.*(?s:.*)CREATEROLE"):
        prepare_database(Server(own_database.web_url), ground.database_name("never"))


def test_a_fresh_start_never_empties_a_server_that_is_not_ours(
    data: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://someone@127.0.0.1/postgres")
    with pytest.raises(Complaint, match="FRESH=1 will not empty"):
        installation(options(data, port, fresh=True)).__enter__()


def belongings(folder: Path) -> None:
    """Lay somebody's files in a folder, some in folders named as ours are."""
    for name in ("thesis.txt", "photos/one.jpg", "files/letter.txt", "postgres/PG_VERSION"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("15")


def listed(folder: Path) -> set[str]:
    return {str(place.relative_to(folder)) for place in folder.rglob("*")}


@pytest.mark.parametrize("fresh", [True, False])
def test_a_folder_of_somebody_elses_is_refused_and_left_as_it_is(data: Path, port: int, fresh: bool) -> None:
    belongings(data)
    before = listed(data)
    with pytest.raises(Complaint, match=r"not empty and not gpubroker's.*(?s:.*)make run DATA=<folder>"):
        installation(options(data, port, fresh=fresh)).__enter__()
    assert listed(data) == before


def test_a_fresh_start_that_is_refused_forgets_nothing(data: Path, port: int) -> None:
    folders.take(data).close()
    (data / "demo.json").write_text("{}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(Complaint, match="is in use"):
            installation(options(data, port, fresh=True)).__enter__()
    assert (data / "demo.json").exists()


def test_forgetting_takes_our_state_away_and_nothing_that_was_laid_beside_it(data: Path) -> None:
    folders.take(data).close()
    folders.prepare(data, servers=None, products=None)
    for name in ("administrator", "demo.json", "thesis.txt"):
        (data / name).write_text("words")
    folders.forget(data)
    assert listed(data) == {folders.MARK, "lock", "thesis.txt"}


def test_the_state_of_an_earlier_version_is_known_by_what_every_start_left(data: Path) -> None:
    for name in ("secrets", "valkey", "postgres"):
        (data / name).mkdir()
    (data / "lock").write_text("17\n")
    folders.need_own(data)


def test_the_top_of_a_disk_counts_as_empty(data: Path) -> None:
    (data / "lost+found").mkdir()
    folders.take(data).close()
    assert (data / folders.MARK).exists()
