"""E-mails where no mail server is configured: kept as files for `make run`, else dropped.

They contain links that sign people in and documents with their names, so none of them is written to a log.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage as ReceivedMessage
from email.policy import default
from pathlib import Path

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from ports import clock, ids, mail

log = structlog.get_logger(__name__)
SUFFIX, MAX_KEPT = ".eml", 200


class UnsentBackend(BaseEmailBackend):
    """Backend of an installation without a mail server: sends nothing, and says so."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        log.warning("e-mails are not sent: GPUBROKER_MAIL_URL is not set", count=len(email_messages))
        return len(email_messages)


class LocalMailBackend(BaseEmailBackend):
    """Backend of `make run`: keeps the latest e-mails in files of its own user."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for message in email_messages:
            file = folder / f"{clock.milliseconds():015}-{ids.new('eml')}{SUFFIX}"
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as opened:
                opened.write(message.message().as_bytes())
        for old in _files()[:-MAX_KEPT]:
            old.unlink(missing_ok=True)
        return len(email_messages)


@dataclass(frozen=True, slots=True)
class LocalEmail:
    """E-mail that was kept instead of being sent."""

    id: str
    at: datetime
    to: str
    subject: str
    text: str
    attachments: tuple[mail.Attachment, ...] = ()


def read_local_emails() -> list[LocalEmail]:
    """Return the kept e-mails, the newest first."""
    return [_read(file) for file in reversed(_files())]


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "local-mail"


def _files() -> list[Path]:
    return sorted(_folder().glob(f"*{SUFFIX}"))  # their names begin with the time


def _read(file: Path) -> LocalEmail:
    message = message_from_bytes(file.read_bytes(), policy=default)
    assert isinstance(message, ReceivedMessage)
    body = message.get_body(("plain", "html"))
    attachments = tuple(
        mail.Attachment(each.get_filename() or "", each.get_content_type(), each.get_payload(decode=True))  # type: ignore[arg-type]
        for each in message.iter_attachments()
    )
    at = datetime.fromtimestamp(int(file.name.partition("-")[0]) / 1000, UTC)
    text = str(body.get_content()) if body else ""
    return LocalEmail(file.stem, at, str(message["To"]), str(message["Subject"]), text, attachments)
