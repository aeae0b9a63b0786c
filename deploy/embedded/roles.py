"""The logins and powers inside PostgreSQL: who may own, who may read, who may look across tenants."""

import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import sql

from deploy.embedded.complaint import Complaint

DATABASE = "gpubroker"
OWNER, WEB, WORKER = LOGINS = ("gpubroker_owner", "gpubroker_web", "gpubroker_worker")
POWERS = ("gpubroker_staff", "gpubroker_sweep", "gpubroker_door")
# Two starts, or a start and a test run, on one server must not make the roles at the same moment.
MAKING_ROLES = 7_450_215_001


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server, known by its administrator's login."""

    url: str

    def password(self, role: str) -> str:
        """Derive a role's password: nothing to store, and the same for everyone with the same login."""
        return hmac.new(urlsplit(self.url).netloc.encode(), role.encode(), hashlib.sha256).hexdigest()

    def login(self, role: str, database: str) -> str:
        """Return the address with which a role reaches a database."""
        parts = urlsplit(self.url)
        place = parts.netloc.rpartition("@")[2]
        # sslmode, host of a socket and the like belong to the server, not to the person who logs in.
        query = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("user", "password")]
        kept = f"?{urlencode(query, safe='/')}" if query else ""
        return f"postgresql://{role}:{quote(self.password(role))}@{place}/{database}{kept}"

    def as_administrator(self, database: str | None = None) -> psycopg.Connection[tuple[object, ...]]:
        """Connect with all powers, in autocommit, to the login's own database or another one."""
        url = self.url if database is None else urlsplit(self.url)._replace(path=f"/{database}").geturl()
        try:
            return psycopg.connect(url, autocommit=True, connect_timeout=10)
        except psycopg.OperationalError as failure:
            raise Complaint(
                f"The database server could not be reached: {' '.join(str(failure).split())}\n"
                "Check that it runs, and DATABASE_URL: postgresql://user:password@host:port/name"
            ) from failure


def make_roles(server: Server) -> None:
    """Create the roles, or bring them to what they must be."""
    with server.as_administrator() as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [MAKING_ROLES])
        try:
            for role in (*LOGINS, *POWERS):
                _make_role(connection, role, server.password(role) if role in LOGINS else None)
            for login in (WEB, WORKER):
                for power in POWERS:
                    connection.execute(
                        sql.SQL("GRANT {} TO {}").format(sql.Identifier(power), sql.Identifier(login))
                    )
        except psycopg.errors.InsufficientPrivilege as failure:
            raise Complaint(
                f"The login of DATABASE_URL lacks rights: {failure.diag.message_primary}.\n"
                "It must create roles and databases: use a superuser, or ALTER ROLE … CREATEROLE CREATEDB."
            ) from failure


def _make_role(connection: psycopg.Connection[tuple[object, ...]], role: str, password: str | None) -> None:
    found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    # NOINHERIT: a power counts only inside a transaction that took it with SET LOCAL ROLE.
    connection.execute(
        sql.SQL("{} ROLE {} {} NOINHERIT NOCREATEDB NOCREATEROLE {}").format(
            sql.SQL("ALTER" if found else "CREATE"),
            sql.Identifier(role),
            sql.SQL("LOGIN PASSWORD {}").format(sql.Literal(password)) if password else sql.SQL("NOLOGIN"),
            # Only a superuser may even name these two; a new role has neither anyway.
            sql.SQL("NOSUPERUSER NOBYPASSRLS" if _is_superuser(connection) else ""),
        )
    )


def _is_superuser(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    return bool(row and row[0])


def make_database(server: Server, name: str = DATABASE, *, template: str | None = None) -> bool:
    """Create a database that the owner owns, with the extensions; tell whether it is new."""
    with server.as_administrator() as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            return False
        # To hand a database to a role, an administrator who is no superuser must be a member of it.
        if not _is_superuser(connection):
            connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(OWNER)))
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} ENCODING 'UTF8'").format(
                sql.Identifier(name), sql.Identifier(OWNER), sql.Identifier(template or "template1")
            )
        )
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
        connection.execute(
            sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}, {}").format(
                *map(sql.Identifier, (name, WEB, WORKER))
            )
        )
    if template is None:
        make_extensions(server, name)
    return True


def make_extensions(server: Server, name: str) -> None:
    """Add what the tables need (btree_gist) and what an operator likes to have."""
    with server.as_administrator(name) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS btree_gist")
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported):
            return  # nice to have; a hosted server may not offer it
        except psycopg.errors.UndefinedFile:
            return


def drop_database(server: Server, name: str) -> None:
    """Remove a database, whoever is still connected to it."""
    with server.as_administrator() as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def note(server: Server, name: str) -> str:
    """Return the note that `write_note` left on a database; empty when there is none."""
    with server.as_administrator() as connection:
        row = connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [name]
        ).fetchone()
    return str(row[0] or "") if row else ""


def write_note(server: Server, name: str, text: str) -> None:
    """Leave a note on a database; it goes where the database goes and dies with it."""
    with server.as_administrator() as connection:
        connection.execute(
            sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(text))
        )
