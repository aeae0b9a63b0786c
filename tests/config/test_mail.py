"""What the accounts' mails and messages say, in our own words."""

from pathlib import Path

import pytest
from django.core import mail
from django.template.loader import get_template
from django.test import Client

from tenants.models import User

TEXTS = sorted((Path(__file__).parents[2] / "templates").rglob("*.txt"))
BANNED = ("successfully", "please", "oops", "!")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_a_text_parses_and_begs_for_nothing(path: Path) -> None:
    get_template(str(path.relative_to(Path(__file__).parents[2] / "templates")))
    words = path.read_text().lower()
    assert not [word for word in BANNED if word in words]


@pytest.mark.django_db
def test_a_lost_password_is_replaced_by_a_link_that_says_what_happens() -> None:
    User.objects.create_user("mira@kestrel.example")
    Client().post("/account/password/reset/", {"email": "mira@kestrel.example"})
    (letter,) = mail.outbox
    assert "Choose a new password" in letter.subject
    assert "/account/password/reset/key/" in letter.body
    assert "works once" in letter.body
    assert "&" not in letter.body.split("http", 1)[0]


@pytest.mark.django_db
def test_an_address_without_an_account_is_told_so_by_mail_and_not_on_the_page() -> None:
    answers = [
        Client().post("/account/password/reset/", {"email": email}, follow=True).content
        for email in ("nobody@example.org", "nobody-else@example.org")
    ]
    assert len(mail.outbox) == 2
    assert "no account here" in mail.outbox[0].body
    assert b"Look into your mail" in answers[0]
