"""Know without starting Django whether a database has every migration."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from deploy.embedded.folders import CHECKOUT

FLOORS = ("ports", "tenants", "broker", "billing")
THIRD_PARTY = ("django", "django-allauth")
WALLS = "tenants/models/walls.py"  # the SQL that migrations of every floor are made with


def fingerprint(checkout: Path = CHECKOUT) -> str:
    """Summarise every migration, ours by content and other people's by version."""
    digest = hashlib.sha256()
    for name in THIRD_PARTY:
        digest.update(f"{name} {version(name)}\n".encode())
    for floor in FLOORS:
        for file in sorted((checkout / floor / "migrations").rglob("*")):
            if file.suffix in (".py", ".sql"):
                digest.update(f"{floor} {file.name}\n".encode() + file.read_bytes())
    if (walls := checkout / WALLS).is_file():
        digest.update(walls.read_bytes())
    return digest.hexdigest()[:16]
