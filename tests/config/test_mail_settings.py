"""Mail server, sender and the local e-mails of development."""

import pytest

from config.mail_url import MailServer, parse_mail_url
from tests.config.test_settings_page import run_with_settings

SENDER = "gpubroker <no-reply@gpus.example.com>"
SHOWN = """import config.settings as s
print(s.EMAIL_BACKEND, s.DEFAULT_FROM_EMAIL, s.EMAIL_HOST, s.EMAIL_PORT, s.EMAIL_USE_TLS, s.EMAIL_USE_SSL)"""


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://ada:p%40s@mx.example", MailServer("mx.example", 587, "ada", "p@s", starttls=True, tls=False)),
        ("smtp://ada:pass@mx.example:25", MailServer("mx.example", 25, "ada", "pass", starttls=True, tls=False)),
        ("smtps://ada:pass@mx.example", MailServer("mx.example", 465, "ada", "pass", starttls=False, tls=True)),
        ("smtps://mx.example:2465", MailServer("mx.example", 2465, "", "", starttls=False, tls=True)),
        ("smtp://relay.example:25", MailServer("relay.example", 25, "", "", starttls=False, tls=False)),
        ("smtp://relay.example:587", MailServer("relay.example", 587, "", "", starttls=True, tls=False)),
        ("smtp://relay:25?starttls=yes", MailServer("relay", 25, "", "", starttls=True, tls=False)),
        ("smtp://relay:2525?starttls=no", MailServer("relay", 2525, "", "", starttls=False, tls=False)),
    ],
)
def test_a_mail_url_says_how_the_server_is_spoken_to(url: str, server: MailServer) -> None:
    assert parse_mail_url(url) == server


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("smtp://ada:pass@mx.example:587?starttls=no", "login is never sent without TLS"),
        ("smtp://mx.example?tls=yes", "Option tls is unknown"),
        ("smtp://mx.example?starttls=maybe", "must be yes or no"),
        ("smtps://mx.example?starttls=no", "takes no options"),
        ("http://mx.example", "not the URL of a mail server"),
        ("smtp://mx.example:port", "not the URL of a mail server"),
        ("mx.example", "not the URL of a mail server"),
        ("smtp://mx.example:0", "not the URL of a mail server"),
        ("smtp://ada@mx.example:25", "needs a user and a password"),
        ("smtp://:pass@mx.example:25", "needs a user and a password"),
        ("smtp://ada:pa#ss@mx.example:587", "not the URL of a mail server"),
        ("smtp://relay.example:25#x", "must be written as %23"),
        ("smtp://relay:25?starttls=no&starttls=yes", "starttls is given twice"),
    ],
)
def test_a_wrong_mail_url_is_refused(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_mail_url(url)


def shown(**settings: str) -> str:
    done = run_with_settings(SHOWN, secret_key="k", database_url="postgresql:///x", **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refused(**settings: str) -> str:
    done = run_with_settings("import config.settings", secret_key="k", database_url="postgresql:///x", **settings)
    assert done.returncode == 1
    return done.stderr


def test_mail_goes_out_from_the_configured_sender() -> None:
    backend = "django.core.mail.backends.smtp.EmailBackend"
    assert shown(mail_url="smtps://mx.example", mail_from=SENDER) == f"{backend} {SENDER} mx.example 465 False True"
    assert shown(mail_url="smtp://relay:25", mail_from=SENDER) == f"{backend} {SENDER} relay 25 False False"


def test_a_start_with_a_mail_server_and_no_sender_is_refused() -> None:
    assert "GPUBROKER_MAIL_FROM is missing" in refused(mail_url="smtp://relay:25")
    assert "Write it as no-reply@" in refused(mail_url="smtp://relay:25", mail_from="gpubroker")


def test_without_a_mail_server_nothing_is_written_to_a_log() -> None:
    code = """import django; django.setup()
from django.core.mail import EmailMessage
mail = EmailMessage("Sign in", "https://gpus.example.com/confirm/KEY", None, ["ada@example.org"])
mail.attach("invoice.pdf", b"%PDF-1.7", "application/pdf")
mail.send()"""
    done = run_with_settings(
        f"import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'\n{code}",
        secret_key="k",
        database_url="postgresql:///x",
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "GPUBROKER_MAIL_URL is not set" in output
    assert not [word for word in ("KEY", "ada@", "PDF", "Sign in") if word in output]


@pytest.mark.parametrize(
    "settings",
    [
        {"public_url": "https://gpus.example.com"},
        {"mail_url": "smtp://relay:25", "mail_from": SENDER},
    ],
)
def test_local_mail_is_refused_outside_of_development(settings: dict[str, str]) -> None:
    assert "GPUBROKER_LOCAL_MAIL is for development only" in refused(local_mail="true", **settings)


def test_the_page_of_local_mail_exists_in_development_only() -> None:
    code = """import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'
import django; django.setup()
from django.urls import NoReverseMatch, reverse
try:
    print(reverse("local-mail"))
except NoReverseMatch:
    print("none")"""
    for local_mail, address in (("true", "/local-mail/"), ("false", "none")):
        done = run_with_settings(code, secret_key="k", database_url="postgresql:///x", local_mail=local_mail)
        assert done.stdout.strip() == address, done.stderr
