"""Fingerprint of all migrations, computed without starting Django."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from deploy.embedded.folders import CHECKOUT
from deploy.embedded.roles import Server

APPS = ("ports", "tenants", "broker", "billing")
THIRD_PARTY = ("django", "django-allauth")
HELPERS = ("ports/initial_migration.py", "ports/sql_files.py")  # code that migrations of every floor run
# The migrations were squashed before the first release; this one is only in databases from before.
SQUASHED = ("tenants", "0002_walls")


def fingerprint(checkout: Path = CHECKOUT) -> str:
    """Return a hash of every migration: ours by content, third-party ones by version."""
    digest = hashlib.sha256()
    for name in THIRD_PARTY:
        digest.update(f"{name} {version(name)}\n".encode())
    for floor in APPS:
        for file in sorted((checkout / floor / "migrations").rglob("*")):
            if file.suffix in (".py", ".sql"):
                digest.update(f"{floor} {file.name}\n".encode() + file.read_bytes())
    for helper in HELPERS:
        if (file := checkout / helper).is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def are_from_before_the_squash(server: Server, database: str) -> bool:
    """Tell whether a database has migrations that no longer exist."""
    with server.as_administrator(database) as connection:
        row = connection.execute("SELECT to_regclass('public.django_migrations') IS NULL").fetchone()
        if not row or row[0]:
            return False
        found = connection.execute("SELECT FROM django_migrations WHERE (app, name) = (%s, %s)", SQUASHED).fetchone()
    return found is not None
