"""The URL of PostgreSQL in Django's form, with every option of libpq."""

from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from config.url_options import parse_url_options

SCHEMES = ("postgresql://", "postgres://")
UNKNOWN_OPTION = "invalid URI query parameter"
VALUES = {  # libpq checks them when it connects, and then the database seems to be down
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": ("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
}
FORM = "Write it as postgresql://user:password@host:port/name?sslmode=verify-full, with %40 for an @ in the password."


def parse_database_url(url: str) -> dict[str, str]:
    """Return a URL's parts and options by their names in libpq.

    Raises ValueError for what libpq does not know. The URL itself is never repeated, since it may contain a password.
    """
    if not url.startswith(SCHEMES):
        raise ValueError(f"This is not the URL of a PostgreSQL database. {FORM}")
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except ProgrammingError as error:
        text = str(error).strip()
        raise ValueError(f"{text}." if text.startswith(UNKNOWN_OPTION) else f"libpq cannot read it. {FORM}") from None
    parse_url_options(url.rpartition("@")[2].partition("?")[2])  # a password may have a ?
    for name, values in VALUES.items():
        if parts.get(name, values[0]) not in values:
            raise ValueError(f"{name} must be one of {', '.join(values)}.")
    if not all(port.isdigit() for port in parts.get("port", "0").split(",") if port):
        raise ValueError(f"The port must be a number. {FORM}")
    if "dbname" not in parts and "service" not in parts:
        raise ValueError(f"The name of the database is missing. {FORM}")
    return parts


def django_database(url: str, *, session: str, **options: Any) -> dict[str, Any]:
    """Return Django's settings of a database.

    `session` are our settings of each session; those of the URL follow, and win.
    """
    parts = parse_database_url(url)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    places = {django: parts.pop(libpq, "") for django, libpq in names.items()}
    parts["options"] = f"{session} {parts.get('options', '')}".strip()
    return {
        "ENGINE": "ports.postgres",
        **places,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": {**options, **parts},
    }
