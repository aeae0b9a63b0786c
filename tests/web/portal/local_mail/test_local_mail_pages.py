"""The page of local e-mails: for browsers on this machine only."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import include, path

from config import urls
from ports import local_mail

LINK = "http://localhost:8000/account/confirm-email/KEY/"
development = ModuleType("development_urls")
vars(development).update(
    urlpatterns=[*urls.urlpatterns, path("local-mail/", include("web.portal.local_mail.urls"))],
    handler404=urls.handler404,
)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.ROOT_URLCONF = development
    settings.DATA_DIR = tmp_path
    settings.EMAIL_BACKEND = "ports.local_mail.LocalMailBackend"
    return tmp_path / "local-mail"


def send(subject: str = "Confirm your address") -> None:
    message = EmailMessage(subject, f"Open {LINK}", "gpubroker@localhost", ["ada@example.org"])
    message.attach("invoice.pdf", b"%PDF-1.7", "application/pdf")
    local_mail.LocalMailBackend().send_messages([message])


def test_an_email_is_kept_in_a_file_and_shown_with_its_link_and_attachment(folder: Path) -> None:
    send()
    [file] = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    page = Client().get("/local-mail/").content.decode()
    assert f'href="{LINK}"' in page
    assert "ada@example.org" in page
    [email] = local_mail.read_local_emails()
    answer = Client().get(f"/local-mail/{email.id}/0")
    assert (answer.content, answer["Content-Type"]) == (b"%PDF-1.7", "application/pdf")
    assert Client().get(f"/local-mail/{email.id}/1").status_code == 404


@pytest.mark.parametrize(
    "visitor",
    [{"REMOTE_ADDR": "10.0.0.7"}, {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"}],
)
def test_other_machines_do_not_see_local_emails(visitor: dict[str, str]) -> None:
    send()
    [email] = local_mail.read_local_emails()
    for address in ("/local-mail/", f"/local-mail/{email.id}/0"):
        assert Client().get(address, **visitor).status_code == 404


def test_only_the_latest_emails_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_mail, "MAX_KEPT", 2)
    for number in range(3):
        send(f"Number {number}")
    assert [email.subject for email in local_mail.read_local_emails()] == ["Number 2", "Number 1"]
    assert len(list(folder.iterdir())) == 2
