"""Rate limits by address, token and tenant."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tenants.domain.roles import Role
from tenants.services import rate_limits
from tests.simulation import Simulation
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner, create_tenant_with_owner
from web.http.rate_limits import COUNTED_VIEWS, SIGN_IN_PATHS, client_address

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)
NONE = {name: (0, 60) for name in ("address", "token", "user", "tenant", "sign-in", "invitations", "coupons")}


@pytest.fixture
def delta(sim: Simulation) -> TenantWithOwner:
    return create_tenant_with_owner("Delta")


@pytest.fixture(autouse=True)
def _nothing_counted() -> Iterator[None]:
    rate_limits.forget_counts()
    yield
    rate_limits.forget_counts()


def statuses(client: Client, times: int, path: str = "/api/v1/projects") -> list[int]:
    return [client.get(path).status_code for _ in range(times)]


def test_a_token_above_its_limit_gets_429_and_another_of_the_tenant_does_not(
    delta: TenantWithOwner, settings: Any
) -> None:
    settings.RATE_LIMITS = NONE | {"token": (3, 60)}
    api = ApiClient(delta.token())
    assert statuses(api, 5) == [200, 200, 200, 429, 429]
    assert statuses(ApiClient(delta.token(Role.VIEWER)), 1) == [200]


def test_a_refusal_says_when_to_come_back_and_what_to_do(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"token": (1, 60)}
    api = ApiClient(delta.token())
    api.get("/api/v1/projects")
    answer: Any = api.get("/api/v1/projects")
    problem = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert (problem["code"], problem["limit"]) == ("rate-limited", "token")
    assert answer["Retry-After"] == str(problem["retry_after"])
    assert f"Wait {problem['retry_after']} s" in problem["fix"]["text"]
    assert answer["RateLimit-Policy"] == '"token";q=1;w=60'
    assert answer["RateLimit"] == f'"token";r=0;t={problem["retry_after"]}'


def test_responses_tell_each_limit_and_what_remains(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"token": (3, 60), "tenant": (100, 60), "address": (200, 60)}
    answer: Any = ApiClient(delta.token()).get("/api/v1/projects")
    assert answer["RateLimit-Policy"] == '"address";q=200;w=60, "token";q=3;w=60, "tenant";q=100;w=60'
    left = [each.split(";")[1] for each in answer["RateLimit"].split(", ")]
    assert left == ["r=199", "r=2", "r=99"]


def test_a_tenant_is_limited_over_all_its_tokens_and_pages(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"tenant": (2, 60)}
    assert statuses(ApiClient(delta.token()), 1) == [200]
    assert statuses(ApiClient(delta.token(Role.VIEWER)), 1) == [200]
    browser = Client()
    browser.force_login(delta.owner)
    page = browser.get("/team/")
    assert page.status_code == 429
    assert "Too many requests" in page.content.decode()
    assert int(page["Retry-After"]) >= 1
    assert statuses(ApiClient(create_tenant_with_owner("Swift").token()), 1) == [200]


def test_a_user_is_limited_over_all_sessions_and_others_are_not(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"user": (2, 60), "tenant": (100, 60)}
    first, second, colleague = Client(), Client(), Client()
    for each in (first, second):
        each.force_login(delta.owner)
    colleague.force_login(delta.user_with_role(Role.VIEWER))
    assert statuses(first, 2, "/team/") == [200, 200]
    page = second.get("/team/")
    assert (page.status_code, "This user has sent more than 2 requests" in page.content.decode()) == (429, True)
    assert statuses(colleague, 1, "/team/") == [200]
    assert statuses(ApiClient(delta.token()), 1) == [200], "tokens have their own limit"


def test_another_process_knows_what_was_counted(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"token": (2, 60)}
    api = ApiClient(delta.token())
    assert statuses(api, 2) == [200, 200]
    rate_limits.forget_counts()  # as a process that has not seen the token
    assert statuses(api, 3) == [200, 429, 429]  # its first finds out


def test_most_requests_cost_no_statement(delta: TenantWithOwner, settings: Any, django_assert_num_queries: Any) -> None:
    api = ApiClient(delta.token())
    api.get("/api/v1/projects")
    with CaptureQueriesContext(connection) as bare:
        api.get("/api/v1/projects")
    count = len(bare)
    settings.RATE_LIMITS = NONE | {"token": (6000, 60), "tenant": (6000, 60), "address": (6000, 60)}
    api.get("/api/v1/projects")
    with django_assert_num_queries(count):
        api.get("/api/v1/projects")


def test_an_address_is_limited_before_anybody_is_known(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"address": (2, 60)}
    guessing = ApiClient("gpb_live_wrong")
    assert statuses(guessing, 3) == [401, 401, 429]
    assert statuses(Client(REMOTE_ADDR="192.0.2.7"), 1) == [401]
    assert Client().get("/sign-in/").status_code == 429
    assert Client().get("/health").status_code == 200


def test_a_new_window_lets_requests_in_again(delta: TenantWithOwner, settings: Any, sim: Simulation) -> None:
    settings.RATE_LIMITS = NONE | {"token": (1, 60)}
    api = ApiClient(delta.token())
    assert statuses(api, 2) == [200, 429]
    sim.clock.at += 60 * SECOND
    assert statuses(api, 2) == [200, 429]


@pytest.mark.parametrize("path", ["/sign-in/", "/sign-up/", "/account/password/reset/", "/join/nothing/"])
def test_forms_of_sign_in_are_limited_by_address(delta: TenantWithOwner, settings: Any, path: str) -> None:
    settings.RATE_LIMITS = NONE | {"sign-in": (2, 60)}
    browser = Client()
    answers = [browser.post(path, {"login": delta.owner.email, "password": "x"}).status_code for _ in range(3)]
    assert 429 not in answers[:2]
    assert answers[2] == 429
    assert browser.get("/sign-in/").status_code == 200, "reading the form stays possible"


def test_sign_in_paths_are_those_of_the_forms() -> None:
    names = ("account_login", "account_signup", "account_reset_password", "mfa_authenticate")
    assert [name for name in names if not reverse(name).startswith(SIGN_IN_PATHS)] == []


def test_invitations_of_a_tenant_are_limited_in_pages_and_api(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"invitations": (2, 3600)}
    api, browser = ApiClient(delta.token()), Client()
    browser.force_login(delta.owner)
    wanted = {"email": "a@example.org", "role": "viewer", "project": None}
    first: Any = api.send("POST", "invitations", wanted)
    assert first.status_code == 201, first.json()
    assert browser.post("/team/invitations/", {"email": "b@example.org", "role": "viewer"}).status_code == 200
    refused: Any = api.send("POST", "invitations", wanted)
    assert (refused.status_code, refused.json()["limit"]) == (429, "invitations")
    assert browser.post("/team/invitations/", {"email": "c@example.org", "role": "viewer"}).status_code == 429
    assert statuses(api, 1, "/api/v1/invitations") == [200]


def test_wrong_discount_codes_of_a_tenant_are_limited(delta: TenantWithOwner, settings: Any) -> None:
    settings.RATE_LIMITS = NONE | {"coupons": (2, 3600)}
    api = ApiClient(delta.token())
    tried: list[Any] = [api.send("POST", "discounts", {"code": f"GUESS-{n}"}) for n in range(3)]
    assert 429 not in [each.status_code for each in tried[:2]]
    assert tried[2].status_code == 429


def test_counted_views_exist() -> None:
    from django.urls import get_resolver

    assert COUNTED_VIEWS.keys() <= set(get_resolver().reverse_dict)


def test_requests_are_served_when_they_cannot_be_counted(
    delta: TenantWithOwner, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise DatabaseError("no table")

    settings.RATE_LIMITS = NONE | {"token": (1, 60)}
    monkeypatch.setattr(rate_limits, "_take_blocks", fail)
    assert statuses(ApiClient(delta.token()), 3) == [200, 200, 200]


@pytest.mark.parametrize(
    ("peer", "told", "proxies", "address"),
    [
        ("192.0.2.7", "", 0, "192.0.2.7"),
        ("192.0.2.7", "198.51.100.1", 0, "192.0.2.7"),
        ("10.0.0.1", "203.0.113.9, 198.51.100.1", 1, "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1", 2, "10.0.0.1"),
        ("2001:db8:1:2:3::4", "", 0, "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "", 0, "192.0.2.7"),
        ("10.0.0.1", "203.0.113.9, 198.51.100.1:40123", 1, "198.51.100.1"),
        ("10.0.0.1", "[2001:db8:1:2:3::4]:40123", 1, "2001:db8:1:2::/64"),
        ("", "", 0, ""),
    ],
)
def test_the_client_is_who_trusted_proxies_say(
    rf: Any, settings: Any, peer: str, told: str, proxies: int, address: str
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    headers = {"HTTP_X_FORWARDED_FOR": told} if told else {}
    assert client_address(rf.get("/", REMOTE_ADDR=peer, **headers)) == address


@pytest.mark.parametrize("header", ["HTTP_TRANSFER_ENCODING", "CONTENT_LENGTH"])
def test_refused_bodies_are_counted_and_say_what_remains(settings: Any, header: str) -> None:
    settings.RATE_LIMITS = NONE | {"address": (2, 60)}
    sent = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": "2000000"}[header]
    answers = [Client().post("/api/v1/leases", **{header: sent}) for _ in range(3)]
    assert [each.status_code for each in answers][1:] in ([411, 429], [413, 429])
    assert all("RateLimit" in each for each in answers)


def test_forms_of_sign_in_are_served_when_fewer_proxies_answered_than_are_trusted(settings: Any) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    values = {"login": "nobody@example.org", "password": "a wrong password"}
    answer = Client().post("/sign-in/", values, HTTP_X_FORWARDED_FOR="192.0.2.7")
    assert answer.status_code == 200


def test_old_counts_are_deleted(delta: TenantWithOwner, settings: Any, sim: Simulation) -> None:
    settings.RATE_LIMITS = NONE | {"token": (1, 60)}
    statuses(ApiClient(delta.token()), 1)
    assert rate_limits.delete_old_counts(now=sim.now) == 0
    assert rate_limits.delete_old_counts(now=sim.now + 3 * 3600 * SECOND) == 1
