"""E-mail is sent only after its transaction has committed."""

import pytest
from django.db import transaction

from ports import mail
from tests.database import OwnDatabase


@pytest.fixture
def letters() -> list[tuple[str, str, str]]:
    return []


def test_a_mail_leaves_with_its_transaction(own_database: OwnDatabase, letters: list[tuple[str, str, str]]) -> None:
    with mail.captured_mail(lambda *letter: letters.append(letter)):
        with transaction.atomic():
            mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")
            assert letters == []
        assert letters == [("mira@kestrel.example", "Hello", "A word")]


def test_a_rolled_back_transaction_sends_no_mail(
    own_database: OwnDatabase, letters: list[tuple[str, str, str]]
) -> None:
    with mail.captured_mail(lambda *letter: letters.append(letter)):
        with transaction.atomic():
            mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")
            transaction.set_rollback(True)
        assert letters == []


def test_a_mail_server_that_is_away_undoes_nothing(own_database: OwnDatabase) -> None:
    def away(*_: str) -> None:
        raise ConnectionRefusedError("no mail server")

    with mail.captured_mail(away), transaction.atomic():
        mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")


def test_mail_goes_through_the_configured_server(own_database: OwnDatabase, mailoutbox: list[object]) -> None:
    with transaction.atomic():
        mail.send_after_commit(to="mira@kestrel.example", subject="Hello", text="A word")
    assert [getattr(letter, "to", None) for letter in mailoutbox] == [["mira@kestrel.example"]]
