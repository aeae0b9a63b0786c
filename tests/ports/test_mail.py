"""E-mail after the commit of its transaction."""

import pytest
from django.db import transaction

from ports import mail
from tests.database import OwnDatabase


@pytest.fixture
def sent_emails() -> list[tuple[str, str, str]]:
    return []


def test_an_email_is_sent_after_its_transaction_commits(
    own_database: OwnDatabase, sent_emails: list[tuple[str, str, str]]
) -> None:
    with mail.captured_mail(lambda *letter: sent_emails.append(letter)):
        with transaction.atomic():
            mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")
            assert sent_emails == []
        assert sent_emails == [("mira@kestrel.example", "Hello", "A word")]


def test_a_rolled_back_transaction_sends_no_email(
    own_database: OwnDatabase, sent_emails: list[tuple[str, str, str]]
) -> None:
    with mail.captured_mail(lambda *letter: sent_emails.append(letter)):
        with transaction.atomic():
            mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")
            transaction.set_rollback(True)
        assert sent_emails == []


def test_an_unavailable_mail_server_raises_no_error(own_database: OwnDatabase) -> None:
    def away(*_: str) -> None:
        raise ConnectionRefusedError("no mail server")

    with mail.captured_mail(away), transaction.atomic():
        mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")


def test_mail_goes_through_the_configured_server(own_database: OwnDatabase, mailoutbox: list[object]) -> None:
    with transaction.atomic():
        mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")
    assert [getattr(letter, "to", None) for letter in mailoutbox] == [["mira@kestrel.example"]]
