"""Whom the processes run as: PostgreSQL refuses root, and nothing of ours needs it."""

import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.embedded.complaint import Complaint


@dataclass(frozen=True)
class Account:
    """An unprivileged user that root hands processes and files to."""

    name: str
    uid: int
    gid: int

    def switch(self) -> dict[str, Any]:
        """Return what Popen needs to start a process as this user and with none of root's groups."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can(self, *command: str) -> bool:
        """Tell whether a command succeeds for this user: permissions are asked, not computed."""
        try:
            done = subprocess.run(command, capture_output=True, cwd="/", timeout=30, **self.switch())
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


def unprivileged() -> Account | None:
    """Return the user to run as when root starts us; None when the starting user is good enough."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise Complaint(
        "PostgreSQL will not run as root, and this machine has neither a user postgres nor a user nobody.\n"
        "Create one (useradd --system postgres) or start gpubroker as an ordinary user."
    )


def for_python(account: Account | None, checkout: Path) -> Account | None:
    """Return the user for our own processes: the unprivileged one when it can reach what they need."""
    if account is None:
        return None
    look = f"import django, pathlib; pathlib.Path({str(checkout / 'manage.py')!r}).read_bytes()"
    return account if account.can(sys.executable, "-c", look) else None


def give(path: Path, account: Account | None) -> None:
    """Make the account own a file or folder; nothing to do when we are not root."""
    if account is not None:
        os.chown(path, account.uid, account.gid)
