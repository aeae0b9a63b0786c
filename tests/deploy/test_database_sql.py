"""The SQL for administrators creates the same database as `make run`."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from deploy.embedded import account, binaries, roles
from deploy.embedded.roles import LOGINS, OWNER, WEB, WORKER, Server
from tests import postgres_server, session

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "database.sql"
# Who owns a database, who may do what in it, whose members the logins are, what a new table gives to whom.
RIGHTS = """
SELECT (SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = current_database()),
       (SELECT array_agg(entry::text ORDER BY entry::text)
          FROM pg_database, unnest(datacl) AS entry WHERE datname = current_database()),
       (SELECT array_agg(nspacl::text) FROM pg_namespace WHERE nspname = 'public'),
       (SELECT array_agg(defaclacl::text ORDER BY defaclobjtype) FROM pg_default_acl),
       (SELECT array_agg(extname::text ORDER BY extname) FROM pg_extension WHERE extname <> 'pg_stat_statements')
"""


@pytest.fixture
def server() -> Server:
    postgres_server.start()
    return postgres_server.server()


@pytest.fixture
def empty(server: Server) -> Iterator[str]:
    """Create an empty database owned by the administrator."""
    name = session.database_name(f"by_hand_{session.worker_number()}")
    with server.as_administrator() as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield name
    roles.drop_database(server, name)


def psql(server: Server, name: str, **passwords: str) -> subprocess.CompletedProcess[str]:
    program = binaries.find_postgres(account.unprivileged_account())["psql"]
    with server.as_administrator(name) as connection:
        info = connection.info
        env = {"PGPASSWORD": info.password, "PATH": os.environ["PATH"], **passwords}
        command = [program, "-X", "-q", "-h", info.host, "-p", str(info.port), "-U", info.user, "-d", name]
    return subprocess.run([*command, "-f", str(SCRIPT)], env=env, capture_output=True, text=True, check=False)


def passwords_of(server: Server) -> dict[str, str]:
    """Return the session's database passwords, which the server shares."""
    of = {"OWNER_PASSWORD": OWNER, "WEB_PASSWORD": WEB, "WORKER_PASSWORD": WORKER}
    return {name: server.password(role) for name, role in of.items()}


def rights(server: Server, name: str) -> tuple[object, ...] | None:
    with server.as_administrator(name) as connection:
        return connection.execute(RIGHTS).fetchone()


@pytest.mark.timeout(600)
def test_the_script_creates_the_same_rights_as_make_run(server: Server, empty: str) -> None:
    for _ in range(2):  # a second run, say with new passwords, does no harm
        done = psql(server, empty, **passwords_of(server))
        assert done.returncode == 0, done.stderr
    ours = session.database_name(f"by_us_{session.worker_number()}")
    try:
        roles.prepare_database(server, ours)
        assert rights(server, empty) == rights(server, ours)
    finally:
        roles.drop_database(server, ours)
    for login in LOGINS:
        with psycopg.connect(server.login(login, empty)) as connection:
            assert connection.execute("SELECT current_user").fetchone() == (login,)


def test_without_passwords_the_script_fails_with_a_message_and_changes_nothing(server: Server, empty: str) -> None:
    before = rights(server, empty)
    done = psql(server, empty, OWNER_PASSWORD="only-one")
    assert done.returncode != 0
    assert "OWNER_PASSWORD, WEB_PASSWORD and WORKER_PASSWORD must be set" in done.stdout
    assert rights(server, empty) == before
