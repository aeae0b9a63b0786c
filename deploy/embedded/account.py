"""Unprivileged user account that the processes run as.

PostgreSQL refuses root, and none of our processes needs it.
"""

import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.embedded.startup_error import StartupError


@dataclass(frozen=True)
class UnprivilegedAccount:
    """Unprivileged user to whom root gives processes and files."""

    name: str
    uid: int
    gid: int

    def switch(self) -> dict[str, Any]:
        """Return Popen arguments that start a process as this user, without root's groups."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can(self, *command: str) -> bool:
        """Return whether a command succeeds as this user: permissions are tried, not computed."""
        try:
            done = subprocess.run(command, capture_output=True, cwd="/", timeout=30, **self.switch())
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


def unprivileged_account() -> UnprivilegedAccount | None:
    """Return the user to run as if root starts us, else None."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return UnprivilegedAccount(name, entry.pw_uid, entry.pw_gid)
    raise StartupError(
        "PostgreSQL does not run as root, and this machine has neither a user postgres nor a user nobody.\n"
        "Create one (useradd --system postgres) or start gpubroker as an ordinary user."
    )


def account_for_python(account: UnprivilegedAccount | None, checkout: Path) -> UnprivilegedAccount | None:
    """Return the unprivileged user for our processes, if it can read what they need."""
    if account is None:
        return None
    look = f"import django, pathlib; pathlib.Path({str(checkout / 'manage.py')!r}).read_bytes()"
    return account if account.can(sys.executable, "-c", look) else None


def give_ownership(path: Path, account: UnprivilegedAccount | None) -> None:
    """Make the account the owner of a file or directory; does nothing without root."""
    if account is not None:
        os.chown(path, account.uid, account.gid)
