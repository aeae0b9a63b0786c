"""The embedded PostgreSQL: one cluster in a folder, reached over a unix socket only."""

import os
import secrets
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg

from deploy.embedded.account import Account, give
from deploy.embedded.binaries import PostgresPrograms
from deploy.embedded.complaint import Complaint
from deploy.embedded.process import Part, Process

ADMINISTRATOR = "gpubroker_admin"
PLAIN_ENV = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


@dataclass(frozen=True)
class Cluster:
    """A data folder of PostgreSQL and the programs that serve it."""

    programs: PostgresPrograms
    data: Path
    sockets: Path
    password_file: Path
    account: Account | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def url(self, database: str = "postgres") -> str:
        """Return the administrator's login."""
        password = quote(self.password_file.read_text().strip())
        return (
            f"postgresql://{ADMINISTRATOR}:{password}@/{database}?host={quote(str(self.sockets), safe='/')}"
        )

    def initialise(self) -> None:
        """Create the cluster, whole or not at all; an existing one stays as it is."""
        if (self.data / "PG_VERSION").exists():
            return
        if not self.password_file.exists():
            self.password_file.touch(mode=0o600)
            self.password_file.write_text(secrets.token_urlsafe(32) + "\n")
        new = self.data.with_name(self.data.name + ".new")
        subprocess.run(["rm", "-rf", str(new)], check=True)
        new.mkdir(mode=0o700)
        give(new, self.account)
        # 17 brought a C.UTF-8 that is the same on every machine; before, the C library's has to do.
        locale = ["--locale=C.UTF-8"]
        if self.programs.major >= 17:
            locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command = [self.programs["initdb"], "-D", str(new), "-U", ADMINISTRATOR, "-A", "scram-sha-256"]
        command += ["-E", "UTF8", "--data-checksums", "--no-instructions", *locale]
        # A file of the account's own: neither root's file nor root's pipe would open for it.
        told = self.sockets / ".password"
        told.touch(mode=0o600)
        told.write_text(self.password_file.read_text())
        give(told, self.account)
        switch = self.account.switch() if self.account else {}
        done = subprocess.run(
            [*command, f"--pwfile={told}"], capture_output=True, text=True, env=PLAIN_ENV, cwd="/", **switch
        )
        told.unlink()
        if done.returncode != 0:
            raise Complaint(f"PostgreSQL could not create {self.data}. It said:\n{done.stderr.strip()}")
        new.rename(self.data)

    def part(self) -> Part:
        """Describe the running server."""
        command = [self.programs["postgres"], "-D", str(self.data)]
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "shared_preload_libraries": "pg_stat_statements",
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
            **self.settings,
        }
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        return Part(
            "postgres",
            command,
            PLAIN_ENV,
            ready=self.answers,
            account=self.account,
            stop=signal.SIGINT,  # "fast": ends the sessions, then writes a checkpoint
            orphaned=signal.SIGINT,
        )

    def answers(self, process: Process | None = None) -> bool:
        """Tell whether a query gets an answer."""
        if not (self.sockets / ".s.PGSQL.5432").exists():
            return False
        try:
            with psycopg.connect(self.url(), connect_timeout=2) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def major_on_disk(self) -> int | None:
        """Return the version that wrote the data, or None when there are none."""
        return major_of(self.data)


def major_of(data: Path) -> int | None:
    """Return the major version that wrote a data folder, or None when there is no cluster in it."""
    try:
        return int((data / "PG_VERSION").read_text())
    except FileNotFoundError:
        return None
