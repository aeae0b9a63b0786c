"""Sessions are stored encrypted, by the hash of their key."""

import base64
import zlib

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings, settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.test import Client

from tenants.models import User
from tenants.services.sessions import SessionStore, reencrypt_sessions

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("mira@kestrel.example"))
    return client


def key_of(browser: Client) -> str:
    return browser.cookies[settings.SESSION_COOKIE_NAME].value


def test_a_stored_key_signs_nobody_in(browser: Client) -> None:
    stored = Session.objects.get().session_key
    assert stored != key_of(browser)
    assert SESSION_KEY in SessionStore(key_of(browser))
    assert SESSION_KEY not in SessionStore(stored)
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = stored
    assert "sign-in" in thief.get("/leases/")["Location"]


def test_a_session_keeps_its_values_changes_its_key_and_ends() -> None:
    session = SessionStore()
    session["tenant"] = "ten_1"
    session.save()
    first = str(session.session_key)
    assert SessionStore(first)["tenant"] == "ten_1"
    assert session.exists(first)
    session.cycle_key()
    assert SessionStore(str(session.session_key))["tenant"] == "ten_1"
    assert not session.exists(first)
    session.flush()
    assert not Session.objects.exists()


def readable(stored: str) -> str:
    """Return what whoever reads the table can read of a session."""
    encoded = stored.removeprefix("encrypted:").lstrip(".").partition(":")[0]
    raw = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    try:
        return zlib.decompress(raw).decode(errors="replace")
    except zlib.error:
        return raw.decode(errors="replace")


def test_nothing_in_a_session_can_be_read_in_the_table(browser: Client) -> None:
    session = SessionStore(key_of(browser))
    session["mfa.totp.secret"], session["join"] = "JBSWY3DPEHPK3PXP" * 2, "a-secret-of-an-invitation"
    session.save()
    text = readable(Session.objects.get().session_data)
    assert "JBSWY3DPEHPK3PXP" not in text
    assert "a-secret-of-an-invitation" not in text
    assert SessionStore(key_of(browser))["join"] == "a-secret-of-an-invitation"


def test_sessions_go_on_after_their_key_was_replaced_and_end_if_it_is_lost(
    browser: Client, settings: LazySettings
) -> None:
    newest = Fernet.generate_key().decode()
    settings.CREDENTIAL_ENCRYPTION_KEYS = f"{newest},{settings.CREDENTIAL_ENCRYPTION_KEYS}"
    assert reencrypt_sessions() == 1
    settings.CREDENTIAL_ENCRYPTION_KEYS = newest
    assert SESSION_KEY in SessionStore(key_of(browser))
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    assert "sign-in" in browser.get("/leases/")["Location"]
    reencrypt_sessions()
    assert not Session.objects.exists()


def test_a_session_of_before_encryption_is_read(settings: LazySettings) -> None:
    ring, settings.CREDENTIAL_ENCRYPTION_KEYS = settings.CREDENTIAL_ENCRYPTION_KEYS, ""
    session = SessionStore()
    session["tenant"] = "ten_1"
    session.save()
    settings.CREDENTIAL_ENCRYPTION_KEYS = ring
    assert SessionStore(str(session.session_key))["tenant"] == "ten_1"
