"""Mail: the one way out. Nothing is sent for a transaction that came to nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.mail import EmailMessage, send_mail
from django.db import transaction

Carrier = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A file that goes with a mail."""

    name: str
    kind: str  # its media type
    body: bytes


def _post(to: str, subject: str, text: str) -> None:
    send_mail(subject, text, None, [to])


_carrier: Carrier = _post


def send(*, to: str, subject: str, text: str) -> None:
    """Send a plain mail once the surrounding transaction has committed; what fails then is logged."""
    carrier = _carrier

    def post() -> None:
        carrier(to, subject, text)

    transaction.on_commit(post, robust=True)


def deliver(*, to: str, subject: str, text: str, ident: str, enclosed: Sequence[Enclosed] = ()) -> None:
    """Give a mail to the mail server now, outside any transaction; raises OSError where it is not taken.

    `ident` stays the same however often it is tried, so that a mail that arrives twice is known for one.
    """
    if _carrier is not _post:
        _carrier(to, subject, text)
        return
    mail = EmailMessage(subject, text, None, [to])
    mail.extra_headers["Message-ID"] = f"<{ident}@{mail.from_email.rpartition('@')[2].rstrip('>')}>"
    for each in enclosed:
        mail.attach(each.name, each.body, each.kind)
    mail.send()


@contextmanager
def carried_by(carrier: Carrier) -> Iterator[None]:
    """Give mails to `carrier` instead of the mail server until the block ends: simulation and tests."""
    global _carrier
    before, _carrier = _carrier, carrier
    try:
        yield
    finally:
        _carrier = before
