"""Embedded PostgreSQL: one database cluster, reachable over a unix socket only."""

import os
import secrets
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg

from deploy.embedded.account import UnprivilegedAccount, give_ownership
from deploy.embedded.binaries import PostgresPrograms
from deploy.embedded.process import Process, ProcessSpec
from deploy.embedded.progress import Progress
from deploy.embedded.startup_error import StartupError

ADMINISTRATOR_LOGIN = "gpubroker_admin"
PLAIN_ENV = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


@dataclass(frozen=True)
class PostgresCluster:
    """PostgreSQL data directory and the programs that serve it."""

    programs: PostgresPrograms
    data: Path
    sockets: Path
    password_file: Path
    account: UnprivilegedAccount | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def url(self, database: str = "postgres") -> str:
        """Return the administrator's URL of a database."""
        password = quote(self.password_file.read_text().strip())
        return f"postgresql://{ADMINISTRATOR_LOGIN}:{password}@/{database}?host={quote(str(self.sockets), safe='/')}"

    def initialise(self, progress: Progress | None = None, keep_open: tuple[int, ...] = ()) -> None:
        """Create the cluster completely or not at all; an existing one is left alone.

        initdb inherits the descriptors to keep open.
        """
        if (self.data / "PG_VERSION").exists():
            return
        if not self.password_file.exists():
            self.password_file.touch(mode=0o600)
            self.password_file.write_text(secrets.token_urlsafe(32) + "\n")
        new = self.data.with_name(self.data.name + ".new")
        subprocess.run(["rm", "-rf", str(new)], check=True)
        new.mkdir(mode=0o700)
        give_ownership(new, self.account)
        # Since version 17 a builtin C.UTF-8 is the same on every machine; before, use the C library's.
        locale = ["--locale=C.UTF-8"]
        if self.programs.major >= 17:
            locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command = [self.programs["initdb"], "-D", str(new), "-U", ADMINISTRATOR_LOGIN, "-A", "scram-sha-256"]
        command += ["-E", "UTF8", "--data-checksums", "--no-instructions", *locale]
        # The account must own this file: it can open neither root's file nor root's pipe.
        password_copy = self.sockets / ".password"
        password_copy.touch(mode=0o600)
        password_copy.write_text(self.password_file.read_text())
        give_ownership(password_copy, self.account)
        switch = self.account.switch() if self.account else {}
        with tempfile.TemporaryFile("w+") as errors:
            initdb = subprocess.Popen(
                [*command, f"--pwfile={password_copy}"],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                text=True,
                env=PLAIN_ENV,
                cwd="/",
                pass_fds=keep_open,
                **switch,
            )
            status = (progress or Progress()).wait(initdb)
            password_copy.unlink()
            if status != 0:
                errors.seek(0)
                raise StartupError(f"PostgreSQL could not create {self.data}. It said:\n{errors.read().strip()}")
        new.rename(self.data)

    def process_spec(self) -> ProcessSpec:
        """Return the specification of the server process."""
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
        return ProcessSpec(
            "postgres",
            command,
            PLAIN_ENV,
            ready=self.responds,
            account=self.account,
            stop_signal=signal.SIGINT,  # "fast": ends the sessions, then writes a checkpoint
            orphan_signal=signal.SIGINT,
        )

    def responds(self, process: Process | None = None) -> bool:
        """Return whether a query succeeds."""
        if not (self.sockets / ".s.PGSQL.5432").exists():
            return False
        try:
            with psycopg.connect(self.url(), connect_timeout=2) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def major_on_disk(self) -> int | None:
        """Return the major version of the data, or None without any."""
        return major_version_of(self.data)


def major_version_of(data: Path) -> int | None:
    """Return the major version of a data directory, or None without a cluster in it."""
    try:
        return int((data / "PG_VERSION").read_text())
    except FileNotFoundError:
        return None
