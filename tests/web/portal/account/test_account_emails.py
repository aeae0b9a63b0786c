"""Texts of account e-mails and messages."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.template.loader import get_template
from django.test import Client

from tenants.models import User

Committed = Callable[..., AbstractContextManager[Any]]
TEXTS = sorted((Path(__file__).parents[4] / "templates").rglob("*.txt"))
BANNED = ("successfully", "please", "oops", "!")


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Committed) -> Committed:
    """Capture the on-commit callbacks of requests."""
    return django_capture_on_commit_callbacks


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_an_email_template_parses_and_has_no_banned_words(path: Path) -> None:
    get_template(str(path.relative_to(Path(__file__).parents[4] / "templates")))
    words = path.read_text().lower()
    assert not [word for word in BANNED if word in words]


@pytest.mark.django_db
def test_a_password_reset_is_emailed_after_the_commit_with_a_single_use_link(committed: Committed) -> None:
    User.objects.create_user("mira@kestrel.example")
    with committed(execute=True):
        Client().post("/account/password/reset/", {"email": "mira@kestrel.example"})
        assert mail.outbox == [], "no mail server is waited for inside the transaction"
    (letter,) = mail.outbox
    assert "Reset your password" in letter.subject
    assert "/account/password/reset/key/" in letter.body
    assert "works once" in letter.body
    assert "&" not in letter.body.split("http", 1)[0]


@pytest.mark.django_db
def test_a_reset_for_an_unknown_address_is_explained_by_email_only(committed: Committed) -> None:
    with committed(execute=True):
        answers = [
            Client().post("/account/password/reset/", {"email": email}, follow=True).content
            for email in ("nobody@example.org", "nobody-else@example.org")
        ]
    assert len(mail.outbox) == 2
    assert "no account has" in mail.outbox[0].body
    assert b"Check your e-mail" in answers[0]
