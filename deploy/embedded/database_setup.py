"""Database setup of a start: roles, database, migrations and demo rows."""

import json
from pathlib import Path
from typing import Any

from deploy.embedded import migrations, roles
from deploy.embedded.product_processes import ProductInstallation
from deploy.embedded.startup_error import StartupError
from deploy.embedded.supervisor import Supervisor

SEEDING = "seeding"


def prepare_database_for_start(product: ProductInstallation, supervisor: Supervisor) -> bool:
    """Create or update roles, database and tables; return whether the database is new."""
    server = product.server
    if roles.read_comment(server, roles.DATABASE).endswith(SEEDING):
        roles.drop_database(server, roles.DATABASE)  # an aborted first start: begin again
    new = roles.prepare_database(server)
    wanted = migrations.fingerprint()
    # The fingerprint is a comment on the database itself, so it is dropped and copied with it.
    if roles.read_comment(server, roles.DATABASE) != wanted:
        need_upgradable(server)
        with supervisor.progress.step(f"Migrations: {'create' if new else 'update'} the tables"):
            supervisor.run(
                product.manage_command("migrate", "migrate", "--database", "owner", "--no-input", role=roles.OWNER)
            )
        roles.write_comment(server, roles.DATABASE, wanted)
    if new:
        roles.write_comment(server, roles.DATABASE, f"{wanted} {SEEDING}")
    return new


def need_upgradable(server: roles.Server, database: str = roles.DATABASE) -> None:
    """Refuse a database whose migrations this checkout cannot continue."""
    if migrations.are_from_before_the_squash(server, database):
        raise StartupError(
            "This data folder belongs to an unreleased earlier version: run make run FRESH=1, which deletes its data.\n"
            "With DATABASE_URL, drop the database gpubroker on that server instead."
        )


def seed_demo(product: ProductInstallation, supervisor: Supervisor, *, new: bool) -> dict[str, Any]:
    """Seed a new database; return the seed's output, from now or an earlier start."""
    server, answer = product.server, product.folders.data / "demo.json"
    if new or not answer.exists():
        fresh = answer.with_suffix(".new")
        # The seed makes weeks of commits, which need not wait for the disk.
        with supervisor.progress.step("Seed: fill in demo data"), roles.without_sync_commit(server, roles.DATABASE):
            supervisor.run(product.manage_command("seed", "seed", output=fresh))
        read_seed_result(fresh)
        fresh.rename(answer)
        roles.write_comment(server, roles.DATABASE, migrations.fingerprint())
    return read_seed_result(answer)


def read_seed_result(answer: Path) -> dict[str, Any]:
    """Return the seed's result, which is the last line it printed."""
    lines = answer.read_text().strip().splitlines()
    try:
        row = json.loads(lines[-1])
    except (IndexError, ValueError):
        row = None
    if not isinstance(row, dict):
        raise StartupError(
            f"The seed returned no result: {answer} contains no JSON line.\nStart over: make run FRESH=1"
        )
    return row
