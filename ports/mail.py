"""Sending e-mail, after the commit or at once.

No e-mail is sent for a transaction that was rolled back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.mail import EmailMessage, send_mail
from django.db import transaction

MailTransport = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Attachment:
    """File attached to an e-mail."""

    name: str
    kind: str  # media type
    body: bytes


def _send_by_smtp(to: str, subject: str, text: str) -> None:
    send_mail(subject, text, None, [to])


_transport: MailTransport = _send_by_smtp


def send_after_commit(*, to: str, subject: str, text: str) -> None:
    """Send a plain-text e-mail after the current transaction commits.

    A failure is logged, not raised.
    """
    carrier = _transport

    def post() -> None:
        carrier(to, subject, text)

    transaction.on_commit(post, robust=True)


def send_now(*, to: str, subject: str, text: str, ident: str, enclosed: Sequence[Attachment] = ()) -> None:
    """Hand an e-mail to the mail server now, outside any transaction.

    Raises OSError when the server does not accept it. `ident` stays the same for every attempt, so that mail
    clients recognise duplicates.
    """
    if _transport is not _send_by_smtp:
        _transport(to, subject, text)
        return
    mail = EmailMessage(subject, text, None, [to])
    mail.extra_headers["Message-ID"] = f"<{ident}@{mail.from_email.rpartition('@')[2].rstrip('>')}>"
    for each in enclosed:
        mail.attach(each.name, each.body, each.kind)
    mail.send()


@contextmanager
def captured_mail(carrier: MailTransport) -> Iterator[None]:
    """Pass e-mails to `carrier` instead of the mail server until the block ends.

    For simulation and tests.
    """
    global _transport
    before, _transport = _transport, carrier
    try:
        yield
    finally:
        _transport = before
