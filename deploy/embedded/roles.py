"""The logins and powers inside PostgreSQL: who may own, who may read, who may look across tenants."""

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
import psycopg.conninfo
from psycopg import sql

from deploy.embedded.complaint import Complaint
from deploy.embedded.folders import CHECKOUT

DATABASE = "gpubroker"
OWNER, WEB, WORKER = LOGINS = ("gpubroker_owner", "gpubroker_web", "gpubroker_worker")
ROLES = CHECKOUT / "deploy" / "roles.sql"
PERSONAL = ("user", "password", "application_name")
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
        query = [(name, value) for name, value in parse_qsl(parts.query) if name not in PERSONAL]
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


def need_address(url: str) -> None:
    """Pass when DATABASE_URL can be an address; what it says stays unsaid, for it may hold a password."""
    try:
        parts = urlsplit(url)
        psycopg.conninfo.conninfo_to_dict(url)
        whole = parts.scheme in ("postgresql", "postgres") and (parts.port or True)
    except (ValueError, psycopg.ProgrammingError):
        whole = False
    if not whole:
        raise Complaint(
            "DATABASE_URL is not the address of a database.\n"
            "Write it as DATABASE_URL=postgresql://user:password@host:port/name, with %40 for an @ in the password,\n"
            "or leave it out: then make run starts a PostgreSQL of its own."
        )


def prepare_database(server: Server, name: str = DATABASE) -> bool:
    """Bring roles and database to what they must be; tell whether the database is new."""
    try:
        with server.as_administrator() as connection:
            # Held to the end: roles belong to the whole server, and two who make them at once collide.
            connection.execute("SELECT pg_advisory_lock(%s)", [MAKING_ROLES])
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if not found:
                connection.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                        sql.Identifier(name)
                    )
                )
            _make_roles(server, name)
            connection.execute(
                sql.SQL("ALTER DATABASE {} OWNER TO {}").format(*map(sql.Identifier, (name, OWNER)))
            )
            # As `hasty` leaves it when it is cut short.
            connection.execute(
                sql.SQL("ALTER DATABASE {} RESET synchronous_commit").format(sql.Identifier(name))
            )
            _open_to_product(connection, name)
    except psycopg.errors.InsufficientPrivilege as failure:
        raise Complaint(
            f"The login of DATABASE_URL lacks rights: {failure.diag.message_primary}.\n"
            "It must create roles and databases: use a superuser, or ALTER ROLE … CREATEROLE CREATEDB."
        ) from failure
    return not found


def _make_roles(server: Server, name: str) -> None:
    """Run the administrator's file in the database and give the logins their passwords."""
    with server.as_administrator(name) as connection:
        connection.execute(ROLES.read_bytes())
        for login in LOGINS:
            connection.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                    sql.Identifier(login), sql.Literal(server.password(login))
                )
            )
        # Nice to have; a hosted server may not offer it or not let us.
        with suppress(
            psycopg.errors.InsufficientPrivilege,
            psycopg.errors.FeatureNotSupported,
            psycopg.errors.UndefinedFile,
        ):
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")


def _open_to_product(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    """Let the product's logins in, who may create nothing there, not even a temporary table."""
    for statement in (
        "REVOKE ALL ON DATABASE {0} FROM PUBLIC, {1}, {2}",
        "GRANT CONNECT ON DATABASE {0} TO {1}, {2}",
    ):
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, (name, WEB, WORKER))))


def clone_database(server: Server, name: str, *, template: str) -> None:
    """Copy a database, rows and rights included."""
    with server.as_administrator() as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
                *map(sql.Identifier, (name, OWNER, template))
            )
        )
        _open_to_product(connection, name)  # a template's own rights stay behind


def drop_database(server: Server, name: str) -> None:
    """Remove a database, whoever is still connected to it."""
    with server.as_administrator() as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def hasty(server: Server, name: str) -> Iterator[None]:
    """Let commits in a database return before the disk has them; at the end the disk has them all."""
    database = sql.Identifier(name)
    with server.as_administrator() as connection:
        connection.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(database))
        try:
            yield
        finally:
            # This commit waits for the disk, and with it for everything written before.
            connection.execute(sql.SQL("ALTER DATABASE {} RESET synchronous_commit").format(database))


def rename_database(server: Server, name: str, new: str) -> None:
    """Give a database nobody uses another name."""
    with server.as_administrator() as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (name, new)))
        )


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
