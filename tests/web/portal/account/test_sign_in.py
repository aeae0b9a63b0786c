"""Sign-up, sign-in, invitations and password reset."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.core import mail
from django.core.cache import cache
from django.test import Client, RequestFactory

from tenants.domain.roles import Role
from tenants.models import Member, Tenant, User
from tenants.services import invitations, rls
from tenants.services.actors import SYSTEM
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ALL_ROLES, TenantWithOwner, current_time, leave_tenant
from web.portal.account import known_devices

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough phrase 4711"
WANTED = {"organisation": "Ada Ltd", "country": "DE", "currency": "EUR", "time_zone": "Europe/Berlin"}
Committed = Callable[..., AbstractContextManager[Any]]


class AnonymousBrowser(Client):
    """A browser without an account; the tenant scope is closed after each answer."""

    def request(self, **request: object) -> object:  # type: ignore[override]
        try:
            return super().request(**request)
        finally:
            leave_tenant()


@pytest.fixture(autouse=True)
def reset_rate_limits() -> None:
    cache.clear()


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Committed) -> Committed:
    """Capture the on-commit callbacks of requests."""
    return django_capture_on_commit_callbacks


@pytest.fixture
def delta() -> TenantWithOwner:
    return with_password("Delta")


def with_password(name: str) -> TenantWithOwner:
    """Create a tenant whose owner has the password PASSWORD."""
    made = tenant_setup.create_tenant_with_owner(name)
    made.owner.set_password(PASSWORD)
    made.owner.save()
    EmailAddress.objects.create(user=made.owner, email=made.owner.email, verified=True, primary=True)
    return made


def sign_in(browser: Client, email: str, password: str = PASSWORD, **more: str) -> Any:
    return browser.post("/sign-in/", {"login": email, "password": password, **more})


def sign_up(browser: Client, email: str, committed: Committed) -> Any:
    """Request an account; its e-mail is in the outbox."""
    with committed(execute=True):
        return browser.post("/sign-up/", {"email": email, "password1": PASSWORD, **WANTED})


def confirm(browser: Client) -> Any:
    """Confirm the address by the link of the last e-mail."""
    address = re.search(r"https?://[^/]+(/account/confirm-email/\S+)", mail.outbox[-1].body)
    assert address, mail.outbox[-1].body
    assert browser.get(address[1]).status_code == 200
    return browser.post(address[1])


def test_a_confirmed_new_account_owns_a_new_tenant(committed: Committed) -> None:
    browser = AnonymousBrowser()
    assert sign_up(browser, "Ada@Example.org", committed)["Location"] == "/account/confirm-email/"
    assert browser.get("/projects/")["Location"].startswith("/sign-in/")
    assert confirm(browser)["Location"] == "/"
    user = User.objects.get(email="ada@example.org")
    assert user.joined_at is not None
    page = browser.get("/projects/").content.decode()
    assert "Ada Ltd" in page
    with rls.staff_scope():
        member = Member.objects.get(user=user)
        tenant_id, role = member.tenant_id, member.role
    assert role == Role.OWNER
    with rls.tenant_scope(tenant_id):
        tenant = Tenant.objects.get()
    assert (tenant.name, tenant.currency, tenant.time_zone) == ("Ada Ltd", "EUR", "Europe/Berlin")
    assert tenant.is_new
    assert "until operators have released it" in browser.get("/wallet/").content.decode()


def test_no_tenant_is_created_before_the_address_is_confirmed(committed: Committed) -> None:
    sign_up(AnonymousBrowser(), "victim+1@example.org", committed)
    with rls.staff_scope():
        assert not Tenant.objects.exists()


def test_an_address_confirmed_elsewhere_signs_in_where_the_account_was_created(committed: Committed) -> None:
    browser, phone = AnonymousBrowser(), AnonymousBrowser()
    sign_up(browser, "ada@example.org", committed)
    early = browser.post("/account/confirm-email/")
    assert "not confirmed yet" in early.content.decode()
    assert confirm(phone)["Location"].startswith("/sign-in/")
    assert browser.post("/account/confirm-email/")["Location"] == "/"
    assert browser.get("/team/").status_code == 200
    assert phone.get("/team/")["Location"].startswith("/sign-in/")


def test_who_knows_no_password_is_not_signed_in_by_asking(committed: Committed) -> None:
    sign_up(AnonymousBrowser(), "ada@example.org", committed)
    confirm(AnonymousBrowser())
    stranger = AnonymousBrowser()
    assert stranger.post("/account/confirm-email/").status_code == 200
    assert stranger.get("/team/")["Location"].startswith("/sign-in/")


def test_a_second_new_tenant_is_refused_on_the_page_with_a_fix(committed: Committed) -> None:
    browser = AnonymousBrowser()
    sign_up(browser, "ada@example.org", committed)
    confirm(browser)
    answer = browser.post("/create-tenant/", {**WANTED, "organisation": "Second"})
    assert answer.status_code == 409
    assert "Ask the operators" in answer.content.decode()


def test_a_confirmed_account_beyond_the_limit_gets_no_tenant_and_is_told_why(committed: Committed) -> None:
    first = AnonymousBrowser()
    sign_up(first, "ada@example.org", committed)
    confirm(first)
    second = AnonymousBrowser()
    sign_up(second, "ada+2@example.org", committed)
    assert confirm(second).status_code == 302
    assert second.get("/")["Location"] == "/create-tenant/"
    page = second.get("/create-tenant/").content.decode()
    assert "operators have released" in page
    assert "Ada Ltd" in page
    with rls.staff_scope():
        assert Tenant.objects.count() == 1


def test_sign_up_by_invitation_is_closed_to_others(settings: Any, delta: TenantWithOwner) -> None:
    settings.SIGN_UP = "invitation"
    assert AnonymousBrowser().get("/sign-up/").status_code == 200  # nobody could invite the first operator
    User.objects.create_user("operator@example.org", is_staff=True)
    browser = AnonymousBrowser()
    assert "by invitation only" in browser.get("/sign-up/").content.decode()
    browser.post("/sign-up/", {"email": "ada@example.org", "password1": PASSWORD, **WANTED})
    assert not User.objects.filter(email="ada@example.org").exists()
    with rls.tenant_scope(delta.tenant.pk):
        _, secret = invitations.invite(
            tenant=delta.tenant,
            email="guest@example.org",
            role=Role.MEMBER,
            project=None,
            grants=ALL_ROLES,
            actor=SYSTEM,
            now=current_time(),
        )
    browser.get(f"/join/{secret}/")
    page = browser.get("/sign-up/").content.decode()
    assert 'name="email"' in page
    assert 'name="organisation"' not in page


def test_sign_up_by_domain_refuses_other_addresses(settings: Any, committed: Committed) -> None:
    settings.SIGN_UP, settings.SIGN_UP_DOMAINS = "domains", ("uni.example",)
    answer = sign_up(AnonymousBrowser(), "ada@elsewhere.example", committed)
    assert "uni.example" in answer.content.decode()
    assert not User.objects.filter(email="ada@elsewhere.example").exists()
    assert sign_up(AnonymousBrowser(), "ada@Uni.example", committed).status_code == 302


def test_people_without_a_tenant_are_told_that_sign_up_is_closed(settings: Any) -> None:
    settings.SIGN_UP = "invitation"
    browser = AnonymousBrowser()
    browser.force_login(User.objects.create_user("alone@example.org"))
    page = browser.get("/create-tenant/").content.decode()
    assert "by invitation only" in page
    assert 'name="organisation"' not in page
    assert browser.post("/create-tenant/", WANTED).status_code == 403


def test_the_sign_up_page_offers_trial_credit(settings: Any) -> None:
    assert "trial credit" not in AnonymousBrowser().get("/sign-up/").content.decode()
    settings.TRIAL_CREDIT = {"EUR": "25"}
    assert "€25.00 of trial credit" in AnonymousBrowser().get("/sign-up/").content.decode()


def test_an_address_that_is_too_long_is_refused_and_not_cut(committed: Committed) -> None:
    answer = sign_up(AnonymousBrowser(), f"{'a' * 250}@example.org", committed)
    assert answer.status_code == 200
    assert "at most 254 characters" in answer.content.decode()
    assert not User.objects.filter(email__startswith="aaa").exists()


def test_sign_up_does_not_reveal_whether_an_address_has_an_account(
    delta: TenantWithOwner, committed: Committed, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    real = Argon2PasswordHasher.encode

    def encode(self: Argon2PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return str(real(self, password, salt))

    monkeypatch.setattr(Argon2PasswordHasher, "encode", encode)
    known, unknown = delta.owner.email, "nobody@delta.example.org"
    seen = []
    for email in (known, unknown):
        browser = AnonymousBrowser()
        answer = sign_up(browser, email, committed)
        after = browser.get(answer["Location"])
        home = browser.get("/team/")
        seen.append((answer.status_code, answer["Location"], answer.content, words(after, email), home["Location"]))
    assert seen[0] == seen[1]
    assert hashed == [PASSWORD, PASSWORD], "a known address is answered no sooner"
    assert [letter.to for letter in mail.outbox] == [[known], [unknown]]
    assert "which already has one" in mail.outbox[0].body
    assert "confirm" in mail.outbox[1].body
    delta.owner.refresh_from_db()
    assert delta.owner.check_password(PASSWORD)


def test_without_a_mail_server_the_page_says_that_no_link_is_sent(settings: Any) -> None:
    settings.MAIL_IS_CONFIGURED = False
    assert "has no mail server" in AnonymousBrowser().get("/account/confirm-email/").content.decode()
    settings.MAIL_IS_CONFIGURED = True
    assert "We sent you a link" in AnonymousBrowser().get("/account/confirm-email/").content.decode()


def test_an_unconfirmed_address_cannot_sign_in_with_its_password(committed: Committed) -> None:
    sign_up(AnonymousBrowser(), "ada@example.org", committed)
    browser = AnonymousBrowser()
    assert sign_in(browser, "ada@example.org")["Location"] == "/account/confirm-email/"
    assert browser.get("/team/")["Location"].startswith("/sign-in/")
    assert confirm(browser).status_code == 302
    assert browser.get("/team/").status_code == 200


@pytest.mark.parametrize("password", ["short", "password123456", "ada@example.org"])
def test_a_weak_password_is_refused(password: str) -> None:
    answer = AnonymousBrowser().post("/sign-up/", {"email": "ada@example.org", "password1": password})
    assert answer.status_code == 200
    assert not User.objects.filter(email="ada@example.org").exists()


def test_an_invited_visitor_creates_an_account_and_joins(delta: TenantWithOwner, committed: Committed) -> None:
    with rls.tenant_scope(delta.tenant.pk):
        _, secret = invitations.invite(
            tenant=delta.tenant,
            email="guest@example.org",
            role=Role.BILLING,
            project=None,
            grants=ALL_ROLES,
            actor=SYSTEM,
            now=current_time(),
        )
    browser = AnonymousBrowser()
    assert "billing" in browser.get(f"/join/{secret}/").content.decode()
    assert "Delta" in browser.get("/sign-up/").content.decode()
    sign_up(browser, "guest@example.org", committed)
    assert confirm(browser)["Location"] == f"/join/{secret}/"
    browser.post(f"/join/{secret}/")
    with rls.staff_scope():
        found = list(Member.objects.filter(user__email="guest@example.org").values_list("tenant", "role"))
    assert found == [(delta.tenant.pk, "billing")]  # and no tenant of their own
    assert "Delta" in browser.get("/team/").content.decode()


def test_the_session_changes_its_key_at_sign_in(delta: TenantWithOwner) -> None:
    browser = AnonymousBrowser()
    browser.get("/join/" + "0" * 40 + "/")
    session = browser.session
    session["planted"] = "by somebody else"
    session.save()
    browser.cookies["sessionid"] = session.session_key
    assert sign_in(browser, delta.owner.email).status_code == 302
    assert browser.cookies["sessionid"].value != session.session_key
    stolen = AnonymousBrowser()
    stolen.cookies["sessionid"] = session.session_key
    assert stolen.get("/team/")["Location"].startswith("/sign-in/")


def test_signing_out_invalidates_the_session(delta: TenantWithOwner) -> None:
    browser = AnonymousBrowser()
    sign_in(browser, delta.owner.email)
    cookie = browser.cookies["sessionid"].value
    assert browser.get("/sign-out/").status_code == 200  # asks; a link in a mail signs nobody out
    browser.post("/sign-out/")
    stolen = AnonymousBrowser()
    stolen.cookies["sessionid"] = cookie
    assert stolen.get("/team/")["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example", "/\\evil.example"])
def test_next_never_redirects_to_another_site_after_sign_in(delta: TenantWithOwner, where: str) -> None:
    answer = sign_in(AnonymousBrowser(), delta.owner.email, next=where)
    assert answer.status_code == 302
    assert "evil" not in answer["Location"]


def test_next_redirects_to_the_requested_page_after_sign_in(delta: TenantWithOwner) -> None:
    assert sign_in(AnonymousBrowser(), delta.owner.email, next="/team/")["Location"] == "/team/"


def words(answer: object, *masked: str) -> str:
    text = answer.content.decode()
    for mask in masked:
        text = text.replace(mask, "")
    return re.sub(r"[A-Za-z0-9]{64}|req_\w+", "", text)


def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(delta: TenantWithOwner) -> None:
    known, unknown = delta.owner.email, "nobody@delta.example.org"
    answers = [sign_in(AnonymousBrowser(), email, "wrong") for email in (known, unknown)]
    assert answers[0].status_code == answers[1].status_code
    assert words(answers[0], known) == words(answers[1], unknown)


def test_a_password_reset_does_not_reveal_whether_an_address_has_an_account(delta: TenantWithOwner) -> None:
    known, unknown = delta.owner.email, "nobody@delta.example.org"
    answers = [AnonymousBrowser().post("/account/password/reset/", {"email": e}) for e in (known, unknown)]
    assert answers[0].status_code == answers[1].status_code == 302
    assert answers[0]["Location"] == answers[1]["Location"]


def ask_for_reset(browser: Client, email: str, committed: Committed) -> str:
    """Ask for a password reset; return the path of the link in its e-mail."""
    with committed(execute=True):
        browser.post("/account/password/reset/", {"email": email})
    link = re.search(r"https?://[^/]+(/account/password/reset/key/\S+)", mail.outbox[-1].body)
    assert link, mail.outbox[-1].body
    return link[1]


def choose_password(browser: Client, link: str, password: str) -> Any:
    """Open the link of a password reset and send a new password."""
    form = browser.get(link, follow=True)
    assert form.status_code == 200
    return browser.post(form.request["PATH_INFO"], {"password1": password, "password2": password})


def test_the_link_of_a_password_reset_sets_a_password_once(delta: TenantWithOwner, committed: Committed) -> None:
    browser, changed = AnonymousBrowser(), "another long phrase 4712"
    link = ask_for_reset(browser, delta.owner.email, committed)
    assert choose_password(browser, link, changed)["Location"] == "/account/password/reset/key/done/"
    assert sign_in(AnonymousBrowser(), delta.owner.email).status_code == 200
    assert sign_in(AnonymousBrowser(), delta.owner.email, changed).status_code == 302
    again = AnonymousBrowser().get(link, follow=True).content.decode()
    assert "password1" not in again


def test_a_password_reset_lets_in_whom_failures_of_others_keep_out(
    delta: TenantWithOwner, committed: Committed
) -> None:
    browser, changed = AnonymousBrowser(), "another long phrase 4712"
    for guess in range(6):
        sign_in(AnonymousBrowser(), delta.owner.email, f"guess {guess}")
    assert "Too many" in sign_in(browser, delta.owner.email).content.decode()
    choose_password(browser, ask_for_reset(browser, delta.owner.email, committed), changed)
    assert sign_in(browser, delta.owner.email, changed).status_code == 302


@pytest.mark.deep
def test_the_sign_in_rate_limit_is_the_same_for_unknown_addresses(delta: TenantWithOwner) -> None:
    for email in (delta.owner.email, "nobody@delta.example.org"):
        cache.clear()
        seen = [sign_in(AnonymousBrowser(), email, f"guess {n}") for n in range(8)]
        stopped = [a.status_code == 429 or "Too many" in a.content.decode() for a in seen]
        assert stopped == [False] * 5 + [True] * 3
    cache.clear()
    for n in range(5):
        sign_in(AnonymousBrowser(), delta.owner.email, f"guess {n}")
    right = sign_in(AnonymousBrowser(), delta.owner.email)
    assert right.status_code != 302, "even the right password waits"


def is_stopped(answer: Any) -> bool:
    return answer.status_code == 429 or "Too many" in answer.content.decode()


def test_failures_elsewhere_do_not_lock_a_person_out(delta: TenantWithOwner) -> None:
    for n in range(6):
        sign_in(AnonymousBrowser(REMOTE_ADDR="203.0.113.9"), delta.owner.email, f"guess {n}")
    assert is_stopped(sign_in(AnonymousBrowser(REMOTE_ADDR="203.0.113.9"), delta.owner.email))
    assert sign_in(AnonymousBrowser(REMOTE_ADDR="192.0.2.7"), delta.owner.email).status_code == 302


def test_many_guessers_stop_each_other_and_no_device_that_signed_in_before(
    delta: TenantWithOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_devices, "ACCOUNT_LIMIT", {"login_account": "8/h/key"})
    mine = AnonymousBrowser(REMOTE_ADDR="192.0.2.7")
    assert sign_in(mine, delta.owner.email).status_code == 302
    mine.post("/sign-out/")
    answers = [
        sign_in(AnonymousBrowser(REMOTE_ADDR=f"203.0.113.{n}"), delta.owner.email, f"guess {n}") for n in range(10)
    ]
    assert [is_stopped(each) for each in answers] == [False] * 8 + [True] * 2
    assert is_stopped(sign_in(AnonymousBrowser(REMOTE_ADDR="198.51.100.1"), delta.owner.email))
    assert sign_in(mine, delta.owner.email).status_code == 302


def test_a_known_device_is_limited_too_and_known_for_its_account_only(delta: TenantWithOwner) -> None:
    other = with_password("Other")
    mine = AnonymousBrowser()
    assert sign_in(mine, delta.owner.email).status_code == 302
    mine.post("/sign-out/")
    cookie = mine.cookies[known_devices.COOKIE]
    assert cookie["httponly"]
    assert delta.owner.email not in cookie.value
    request = RequestFactory().get("/")
    request.COOKIES[known_devices.COOKIE] = cookie.value
    assert known_devices.is_known_device(request, delta.owner.email.upper())
    assert not known_devices.is_known_device(request, other.owner.email)
    request.COOKIES[known_devices.COOKIE] = cookie.value[:-2] + "xx"
    assert not known_devices.is_known_device(request, delta.owner.email)
    seen = [is_stopped(sign_in(mine, delta.owner.email, f"guess {n}")) for n in range(7)]
    assert seen == [False] * 5 + [True] * 2


@pytest.mark.deep
def test_password_guessing_across_accounts_is_limited_per_address(delta: TenantWithOwner) -> None:
    for n in range(10):
        sign_in(AnonymousBrowser(), f"nobody-{n}@delta.example.org", "guess")
    assert sign_in(AnonymousBrowser(), delta.owner.email).status_code != 302, "the guesser waits"
    assert sign_in(AnonymousBrowser(REMOTE_ADDR="192.0.2.7"), delta.owner.email).status_code == 302


def test_an_inactive_users_session_and_token_are_refused(delta: TenantWithOwner) -> None:
    browser = AnonymousBrowser()
    sign_in(browser, delta.owner.email)
    User.objects.update(is_active=False)
    assert browser.get("/team/")["Location"].startswith("/sign-in/")
    assert tenant_setup.ApiClient(delta.token()).send("GET", "users/me").status_code == 401


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(delta: TenantWithOwner) -> None:
    browser = AnonymousBrowser()
    sign_in(browser, delta.owner.email)
    cookie = browser.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert int(cookie["max-age"]) <= 12 * 3600


def test_a_token_never_shows_in_logs_or_errors(
    delta: TenantWithOwner, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from web.api.projects import ProjectViewSet

    def broken(self: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(ProjectViewSet, "get_queryset", broken)
    text = delta.token()
    answer = tenant_setup.ApiClient(text).send("GET", "projects")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal"
    seen = capfd.readouterr()
    secret = text.split("_")[3]
    assert secret not in seen.out + seen.err + answer.content.decode()
    assert "broken on purpose" not in answer.content.decode()
