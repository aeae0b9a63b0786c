"""The URL of Valkey in Celery's form: plain, by TLS, or a unix socket."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

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
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
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
