"""Changes to one's own account are audited in every tenant of the user."""

import re
import time
from pathlib import Path

import allauth
import pytest
from allauth.mfa.models import Authenticator

from tenants.domain.roles import Role
from tenants.models import AuditEvent, User
from tenants.services import members, own_accounts, rls
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import TenantWithOwner, current_time
from tests.web.portal.account.test_second_factor import code
from tests.web.portal.account.test_sign_in import PASSWORD, AnonymousBrowser, Committed, sign_in, with_password
from web.portal.account.allauth_overrides import AUDIT_ACTIONS

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return with_password("Delta")


@pytest.fixture
def browser(delta: TenantWithOwner) -> AnonymousBrowser:
    browser = AnonymousBrowser()
    sign_in(browser, delta.owner.email)
    return browser


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Committed) -> Committed:
    return django_capture_on_commit_callbacks


def recorded_changes(world: TenantWithOwner) -> list[tuple[str, str, str]]:
    with rls.tenant_scope(world.tenant.pk):
        events = AuditEvent.objects.filter(action__startswith="account.").order_by("at", "id")
        return [(event.action, event.actor_id, event.subject_id) for event in events]


def test_a_changed_name_is_audited_once_in_each_tenant_of_the_user(
    delta: TenantWithOwner, browser: AnonymousBrowser
) -> None:
    other = tenant_setup.create_tenant_with_owner("Other")
    with rls.tenant_scope(other.tenant.pk):
        members.add(
            tenant=other.tenant, user=delta.owner, role=Role.VIEWER, project=None, actor=SYSTEM, now=current_time()
        )
    for _ in range(2):
        assert browser.post("/account/", {"name": "Mira Two"}).status_code == 302
    row = ("account.rename", delta.owner.pk, delta.owner.pk)
    assert recorded_changes(delta) == recorded_changes(other) == [row]
    with rls.tenant_scope(delta.tenant.pk):
        assert AuditEvent.objects.get(action="account.rename").detail["after"] == "Mira Two"


@pytest.mark.deep
def test_a_new_password_and_second_factor_are_audited_without_secrets(
    delta: TenantWithOwner, browser: AnonymousBrowser, committed: Committed
) -> None:
    new = "another long phrase 4712"
    browser.post("/account/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    browser.post("/account/reauthenticate/", {"password": new})
    page = browser.get("/account/security/totp/activate/").content.decode()
    found = re.search(r'id="secret" value="([A-Z2-7]+)"', page)
    assert found, page
    with committed(execute=True):  # allauth tells the person once it is kept
        browser.post("/account/security/totp/activate/", {"code": code(found[1], time.time())})
    assert Authenticator.objects.filter(user=delta.owner, type="totp").exists()
    assert [action for action, *_ in recorded_changes(delta)] == ["account.password", "account.app_add"]
    with rls.tenant_scope(delta.tenant.pk):
        details = str(list(AuditEvent.objects.values_list("detail", flat=True)))
    assert new not in details
    assert found[1] not in details


def test_a_second_factor_is_audited_in_the_transaction_that_stores_it(
    delta: TenantWithOwner, browser: AnonymousBrowser
) -> None:
    """Nothing runs after the commit, as after a crash."""
    browser.post("/account/reauthenticate/", {"password": PASSWORD})
    page = browser.get("/account/security/totp/activate/").content.decode()
    secret = re.search(r'id="secret" value="([A-Z2-7]+)"', page)
    assert secret, page
    browser.post("/account/security/totp/activate/", {"code": code(secret[1], time.time())})
    codes = Authenticator.objects.get(user=delta.owner, type="recovery_codes").pk
    browser.post("/account/security/recovery-codes/generate/")
    assert Authenticator.objects.get(user=delta.owner, type="recovery_codes").pk != codes
    assert [action for action, *_ in recorded_changes(delta)] == ["account.app_add", "account.recovery_codes"]


def test_a_user_without_a_tenant_is_audited_for_the_installation() -> None:
    alone = User.objects.create_user("alone@example.org")
    own_accounts.audit_own_account("account.password", user=alone, request_id="r", now=current_time())
    with rls.staff_scope():
        assert AuditEvent.objects.get(action="account.password", tenant_id="").actor_label == alone.email


def test_every_allauth_notification_has_an_audit_action() -> None:
    rooms = Path(allauth.__file__).parent
    source = "".join(path.read_text() for app in ("account", "mfa") for path in (rooms / app).rglob("*.py"))
    sent = set(re.findall(r'send_notification_mail\(\s*"([^"]+)"', source))
    assert sent == set(AUDIT_ACTIONS)
