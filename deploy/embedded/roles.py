"""PostgreSQL roles and databases: owner, logins, and roles that read across tenants."""

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
import psycopg.conninfo
from psycopg import sql

from deploy.embedded.folders import CHECKOUT
from deploy.embedded.startup_error import StartupError

DATABASE = "gpubroker"
OWNER, WEB, WORKER = LOGINS = ("gpubroker_owner", "gpubroker_web", "gpubroker_worker")
ROLES = CHECKOUT / "deploy" / "roles.sql"
LOGIN_PARAMETERS = ("user", "password", "application_name")
# Concurrent starts or test runs on one server must not create roles at once.
ROLES_LOCK_ID = 7_450_215_001


@dataclass(frozen=True)
class Server:
    """PostgreSQL server, known by its administrator's URL."""

    url: str

    def password(self, role: str) -> str:
        """Derive a role's password from the administrator's login.

        There is nothing to store, and it is the same for everybody with the same login.
        """
        return hmac.new(urlsplit(self.url).netloc.encode(), role.encode(), hashlib.sha256).hexdigest()

    def login(self, role: str, database: str) -> str:
        """Return a role's URL of a database."""
        parts = urlsplit(self.url)
        place = parts.netloc.rpartition("@")[2]
        # sslmode, socket directory and the like belong to the server, not to the login.
        query = [(name, value) for name, value in parse_qsl(parts.query) if name not in LOGIN_PARAMETERS]
        kept = f"?{urlencode(query, safe='/')}" if query else ""
        return f"postgresql://{role}:{quote(self.password(role))}@{place}/{database}{kept}"

    def as_administrator(self, database: str | None = None) -> psycopg.Connection[tuple[object, ...]]:
        """Connect as administrator, in autocommit mode, to the URL's database or another one."""
        url = self.url if database is None else urlsplit(self.url)._replace(path=f"/{database}").geturl()
        try:
            return psycopg.connect(url, autocommit=True, connect_timeout=10)
        except psycopg.OperationalError as failure:
            raise StartupError(
                f"The database server could not be reached: {' '.join(str(failure).split())}\n"
                "Check that it runs, and DATABASE_URL: postgresql://user:password@host:port/name"
            ) from failure


def require_database_url(url: str) -> None:
    """Raise a StartupError unless DATABASE_URL is valid.

    Its text is not printed, since it may contain a password.
    """
    try:
        parts = urlsplit(url)
        psycopg.conninfo.conninfo_to_dict(url)
        whole = parts.scheme in ("postgresql", "postgres") and (parts.port or True)
    except (ValueError, psycopg.ProgrammingError):
        whole = False
    if not whole:
        raise StartupError(
            "DATABASE_URL is not the address of a database.\n"
            "Write it as DATABASE_URL=postgresql://user:password@host:port/name, with %40 for an @ in the password,\n"
            "or leave it out: then make run starts a PostgreSQL of its own."
        )


def prepare_database(server: Server, name: str = DATABASE) -> bool:
    """Create or update roles and database; return whether the database is new."""
    try:
        with server.as_administrator() as connection:
            # Held to the end: roles are server-wide, and concurrent creation fails.
            connection.execute("SELECT pg_advisory_lock(%s)", [ROLES_LOCK_ID])
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if not found:
                connection.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name))
                )
            _make_roles(server, name)
            connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(*map(sql.Identifier, (name, OWNER))))
            # Left over by an aborted `without_sync_commit`.
            connection.execute(sql.SQL("ALTER DATABASE {} RESET synchronous_commit").format(sql.Identifier(name)))
            _grant_connect(connection, name)
    except psycopg.errors.InsufficientPrivilege as failure:
        raise StartupError(
            f"The login of DATABASE_URL lacks rights: {failure.diag.message_primary}.\n"
            "It must create roles and databases: use a superuser, or ALTER ROLE … CREATEROLE CREATEDB."
        ) from failure
    return not found


def _make_roles(server: Server, name: str) -> None:
    """Run roles.sql in the database and set the logins' passwords."""
    with server.as_administrator(name) as connection:
        connection.execute(ROLES.read_bytes())
        for login in LOGINS:
            connection.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(login), sql.Literal(server.password(login)))
            )
        # Optional: a hosted server may not offer or permit it.
        with suppress(
            psycopg.errors.InsufficientPrivilege,
            psycopg.errors.FeatureNotSupported,
            psycopg.errors.UndefinedFile,
        ):
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")


def _grant_connect(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    """Let the product's logins connect; they may create nothing, not even a temporary table."""
    for statement in (
        "REVOKE ALL ON DATABASE {0} FROM PUBLIC, {1}, {2}",
        "GRANT CONNECT ON DATABASE {0} TO {1}, {2}",
    ):
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, (name, WEB, WORKER))))


def clone_database(server: Server, name: str, *, template: str) -> None:
    """Copy a database, including its rows and privileges."""
    with server.as_administrator() as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(*map(sql.Identifier, (name, OWNER, template)))
        )
        _grant_connect(connection, name)  # a template's privileges are not copied


def drop_database(server: Server, name: str) -> None:
    """Drop a database, even if clients are connected to it."""
    with server.as_administrator() as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def without_sync_commit(server: Server, name: str) -> Iterator[None]:
    """Disable synchronous commits in a database; at the end everything is on disk."""
    database = sql.Identifier(name)
    with server.as_administrator() as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(database))
        try:
            yield
        finally:
            # This commit waits for the disk, including everything written before.
            connection.execute(sql.SQL("ALTER DATABASE {} RESET synchronous_commit").format(database))


def rename_database(server: Server, name: str, new: str) -> None:
    """Rename an unused database."""
    with server.as_administrator() as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (name, new))))


def read_comment(server: Server, name: str) -> str:
    """Return the comment of a database that `write_comment` set; empty without one."""
    with server.as_administrator() as connection:
        row = connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [name]
        ).fetchone()
    return str(row[0] or "") if row else ""


def write_comment(server: Server, name: str, text: str) -> None:
    """Set the comment of a database, which is dropped with it."""
    with server.as_administrator() as connection:
        connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(text)))
