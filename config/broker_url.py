"""The URL of Valkey in Celery's form: plain, by TLS, or a unix socket."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from config.url_options import parse_url_options

TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
KNOWN_OPTIONS = {"redis": (), "rediss": TLS_OPTIONS, "redis+socket": ("virtual_host",)}


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Address of Valkey; `tls` are the options of its connections, or None for plain ones."""

    url: str
    tls: dict[str, Any] | None = None


def parse_broker_url(url: str) -> BrokerAddress:
    """Return the address in a URL; ValueError for what would have no effect.

    By TLS the certificate and the host name in it are always verified.
    """
    parts = urlsplit(url)
    if parts.scheme not in KNOWN_OPTIONS:
        raise ValueError(f"The URL must begin with one of {', '.join(f'{each}://' for each in KNOWN_OPTIONS)}.")
    if parts.scheme != "redis+socket":
        _check_place(parts)
    options = parse_url_options(parts.query)
    known = KNOWN_OPTIONS[parts.scheme]
    for name in options:
        if name not in known:
            told = f"Known: {', '.join(known)}." if known else "It takes none; for TLS use rediss://."
            raise ValueError(f"Option {name} of {parts.scheme}:// is unknown. {told}")
    if parts.scheme != "rediss":
        return BrokerAddress(url)
    # Without this, kombu would speak to a rediss:// address in plain text.
    verified = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
    return BrokerAddress(parts._replace(query="").geturl(), {**options, **verified})


def _check_place(parts: SplitResult) -> None:
    """Raise ValueError for a port or database that is no number."""
    try:
        is_place = parts.port != 0
    except ValueError:
        is_place = False
    database = parts.path.strip("/")
    if not is_place or parts.fragment or not (database.isdecimal() or not database):
        raise ValueError("Write it as redis://host:6379/0: one host, a port, and the number of a database.")
