"""Bring the database to what this checkout expects: roles, database, migrations, demo rows."""

import json
from pathlib import Path
from typing import Any

from deploy.embedded import migrations, roles
from deploy.embedded.complaint import Complaint
from deploy.embedded.product import Product
from deploy.embedded.supervisor import Supervisor

SEEDING = "seeding"


def prepare(product: Product, supervisor: Supervisor) -> bool:
    """Make roles, database and tables what they must be; tell whether the database is new."""
    server = product.server
    if roles.note(server, roles.DATABASE).endswith(SEEDING):
        roles.drop_database(server, roles.DATABASE)  # a first start that was cut short: begin again
    new = roles.prepare_database(server)
    wanted = migrations.fingerprint()
    # The note lies on the database itself, so it cannot outlive it or be true of another one.
    if roles.note(server, roles.DATABASE) != wanted:
        supervisor.run(
            product.manage("migrate", "migrate", "--database", "owner", "--no-input", role=roles.OWNER)
        )
        roles.write_note(server, roles.DATABASE, wanted)
    if new:
        roles.write_note(server, roles.DATABASE, f"{wanted} {SEEDING}")
    return new


def fill(product: Product, supervisor: Supervisor, *, new: bool) -> dict[str, Any]:
    """Seed a database that was not; return what the seed said, now or at an earlier start."""
    server, answer = product.server, product.folders.data / "demo.json"
    if new or not answer.exists():
        fresh = answer.with_suffix(".new")
        with roles.hasty(
            server, roles.DATABASE
        ):  # it lives through weeks of commits; the disk may lag behind
            supervisor.run(product.manage("seed", "seed", output=fresh))
        read(fresh)
        fresh.rename(answer)
        roles.write_note(server, roles.DATABASE, migrations.fingerprint())
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
