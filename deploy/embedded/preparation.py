"""Bring the database to what this checkout expects: roles, database, migrations, demo rows."""

import json
from pathlib import Path
from typing import Any

from deploy.embedded import migrations, roles
from deploy.embedded.complaint import Complaint
from deploy.embedded.product import Product
from deploy.embedded.supervisor import Supervisor


def prepare(product: Product, supervisor: Supervisor) -> dict[str, Any]:
    """Do what is missing, and only that; return what the seed said, now or at an earlier start."""
    server, answer = product.server, product.folders.data / "demo.json"
    new = roles.prepare_database(server)
    wanted = migrations.fingerprint()
    # The note lies on the database itself, so it cannot outlive it or be true of another one.
    if roles.note(server, roles.DATABASE) != wanted:
        supervisor.run(
            product.manage("migrate", "migrate", "--database", "owner", "--no-input", role=roles.OWNER)
        )
        roles.write_note(server, roles.DATABASE, wanted)
    if new or not answer.exists():
        fresh = answer.with_suffix(".new")
        supervisor.run(product.manage("seed", "seed", output=fresh))
        read(fresh)
        fresh.rename(answer)
    return read(answer)


def read(answer: Path) -> dict[str, Any]:
    """Return the seed's answer: the last line it printed."""
    lines = answer.read_text().strip().splitlines()
    try:
        told = json.loads(lines[-1])
    except (IndexError, ValueError):
        told = None
    if not isinstance(told, dict):
        raise Complaint(
            f"The seed did not say what it made; {answer} holds no JSON line.\nBegin anew: make run FRESH=1"
        )
    return told
