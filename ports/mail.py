"""Mail: the one way out. Nothing is sent for a transaction that came to nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.mail import send_mail
from django.db import transaction

Carrier = Callable[[str, str, str], None]


def _post(to: str, subject: str, text: str) -> None:
    send_mail(subject, text, None, [to])


_carrier: Carrier = _post


def send(*, to: str, subject: str, text: str) -> None:
    """Send a plain mail once the surrounding transaction has committed; what fails then is logged."""
    carrier = _carrier

    def post() -> None:
        carrier(to, subject, text)

    transaction.on_commit(post, robust=True)


@contextmanager
def carried_by(carrier: Carrier) -> Iterator[None]:
    """Give mails to `carrier` instead of the mail server until the block ends: simulation and tests."""
    global _carrier
    before, _carrier = _carrier, carrier
    try:
        yield
    finally:
        _carrier = before
