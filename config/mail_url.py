"""URL of the mail server: TLS, STARTTLS, or a plain relay without login."""

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from config.url_options import parse_url_options

FORM = "Write it as smtp://user:password@host:587, smtps://user:password@host:465 or smtp://host:25."
STARTTLS_OPTION, RELAY_PORT = "starttls", 25
DEFAULT_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class MailServer:
    """Mail server and how it is spoken to."""

    host: str
    port: int
    user: str
    password: str
    starttls: bool
    tls: bool


def parse_mail_url(url: str) -> MailServer:
    """Return the mail server in a URL; ValueError for what would have no effect.

    `smtp://` uses STARTTLS, except to port 25 without a login. A login never travels in plain text.
    """
    parts = urlsplit(url)
    try:
        port = DEFAULT_PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError:
        port = 0
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or not port or parts.path not in ("", "/"):
        raise ValueError(f"This is not the URL of a mail server. {FORM}")
    if parts.fragment:
        raise ValueError(f"A # in a password must be written as %23. {FORM}")
    if bool(parts.username) != bool(parts.password):
        raise ValueError(f"A login needs a user and a password. {FORM}")
    if parts.scheme == "smtps" and parts.query:
        raise ValueError("smtps:// takes no options: it is always by TLS.")
    return MailServer(
        parts.hostname,
        port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        starttls=parts.scheme == "smtp" and _starttls(parts.query, has_login=bool(parts.username), port=port),
        tls=parts.scheme == "smtps",
    )


def _starttls(query: str, *, has_login: bool, port: int) -> bool:
    options = parse_url_options(query)
    wanted = options.pop(STARTTLS_OPTION, "no" if port == RELAY_PORT and not has_login else "yes")
    if options:
        raise ValueError(f"Option {', '.join(options)} is unknown. Known: {STARTTLS_OPTION}=yes or no.")
    if wanted not in ("yes", "no"):
        raise ValueError(f"{STARTTLS_OPTION} must be yes or no.")
    if wanted == "no" and has_login:
        raise ValueError("A login is never sent without TLS: use smtps://, or leave out starttls=no.")
    return wanted == "yes"
