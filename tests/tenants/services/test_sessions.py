"""Sessions are stored by the hash of their key."""

import pytest
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.test import Client

from tenants.models import User
from tenants.services.sessions import SessionStore

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
