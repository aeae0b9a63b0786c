"""Reloading the answer of a form with a secret creates nothing and shows no secret."""

import re

import pytest
from django.db import connection
from django.test import Client as Browser

from tenants.models import ApiToken, Invitation
from tenants.services import rls
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner
from tests.web.portal.team.test_team_pages import signed_in

pytestmark = pytest.mark.django_db
TOKEN = {"name": "ci", "scopes": ["projects:read"], "days": "30", "project": ""}
OFFER = {"email": "new@example.org", "role": "viewer", "project": ""}
FORMS = [
    ("/tokens/", "/tokens/", TOKEN, ApiToken, {"name": "other"}, r"gpb_live_[0-9a-z_]{60,}"),
    ("/team/", "/team/invitations/", OFFER, Invitation, {"role": "member"}, r"/join/[0-9a-z]+/"),
]


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


@pytest.fixture
def owner(delta: TenantWithOwner) -> Browser:
    return signed_in(delta.owner)


def mark(owner: Browser, page: str) -> str:
    """Return the form token of a page."""
    return re.search(r'name="once" value="(\w+)"', owner.get(page).content.decode())[1]


@pytest.mark.parametrize(("page", "to", "filled", "rows", "other", "secret"), FORMS)
def test_resubmitting_a_form_creates_nothing_and_shows_no_secret(
    delta: TenantWithOwner, owner: Browser, page: str, to: str, filled: dict, rows: type, other: dict, secret: str
) -> None:
    form = {**filled, "once": mark(owner, page)}
    first = owner.post(to, form)
    assert len(re.findall(secret, first.content.decode())) >= 1
    again = owner.post(to, form)
    assert (again.status_code, again["Location"]) == (302, page)
    text = owner.get(page).content.decode()
    assert "This form was already submitted" in text
    assert re.findall(secret, text) == []
    with rls.tenant_scope(delta.tenant.pk):
        assert rows.objects.count() == 1


@pytest.mark.parametrize(("page", "to", "filled", "rows", "other", "secret"), FORMS)
def test_changed_input_or_a_new_form_creates_another_row(
    delta: TenantWithOwner, owner: Browser, page: str, to: str, filled: dict, rows: type, other: dict, secret: str
) -> None:
    form = {**filled, "once": mark(owner, page)}
    for sent in (form, {**form, **other}, {**form, "once": mark(owner, page)}):
        assert len(re.findall(secret, owner.post(to, sent).content.decode())) >= 1
    with rls.tenant_scope(delta.tenant.pk):
        assert rows.objects.count() == 3


def test_a_refused_form_can_be_corrected_and_submitted_again(delta: TenantWithOwner, owner: Browser) -> None:
    form = {**TOKEN, "once": mark(owner, "/tokens/")}
    assert owner.post("/tokens/", {**form, "days": "9999"}).status_code == 400
    assert owner.post("/tokens/", {**form, "days": "9999"}).status_code == 400
    assert owner.post("/tokens/", form).status_code == 200


@pytest.mark.parametrize(("page", "to", "filled", "rows", "other", "secret"), FORMS)
def test_a_secret_is_stored_only_as_a_hash(
    delta: TenantWithOwner, owner: Browser, page: str, to: str, filled: dict, rows: type, other: dict, secret: str
) -> None:
    made = owner.post(to, {**filled, "once": mark(owner, page)})
    assert made["Cache-Control"] == "no-store"
    text = max(re.split("[_/]", re.search(secret, made.content.decode())[0]), key=len)
    kept = []
    with rls.tenant_scope(delta.tenant.pk), connection.cursor() as cursor:
        for table in (rows._meta.db_table, "tenants_auditevent", "tenants_idempotencyrecord"):
            cursor.execute(f"SELECT kept::text FROM {table} kept")
            kept += (found := cursor.fetchall())
            assert found, table
    assert len(text) >= 40
    assert text not in str(kept)
    assert text not in str(dict(owner.session))
