"""Idempotency keys of API requests."""

import threading

import pytest
from django.db import connections

from tenants.models import ApiToken, IdempotencyRecord, Project
from tenants.services import idempotency, rls
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner, current_time


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


@pytest.mark.django_db
def test_a_repeated_request_gets_its_first_answer(delta: TenantWithOwner) -> None:
    api, body = ApiClient(delta.token()), {"name": "lab", "parent": delta.root.pk}
    first = api.send("POST", "projects", body, Idempotency_Key="k1")
    again = api.send("POST", "projects", dict(reversed(body.items())), Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"
    assert (again["ETag"], again["Location"]) == (first["ETag"], first["Location"])
    with rls.tenant_scope(delta.tenant.pk):
        assert Project.objects.filter(name="lab").count() == 1


@pytest.mark.django_db
def test_another_body_under_the_same_key_is_refused(delta: TenantWithOwner) -> None:
    api = ApiClient(delta.token())
    api.send("POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key="k1")
    answer = api.send("POST", "projects", {"name": "bench", "parent": delta.root.pk}, Idempotency_Key="k1")
    assert answer.status_code == 422
    assert answer.json()["code"] == "idempotency-key-reuse"


@pytest.mark.django_db
def test_two_users_can_use_the_same_key(delta: TenantWithOwner) -> None:
    from tenants.domain.roles import Role

    ApiClient(delta.token()).send("POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key="k1")
    answer = ApiClient(delta.token(Role.ADMIN)).send(
        "POST", "projects", {"name": "bench", "parent": delta.root.pk}, Idempotency_Key="k1"
    )
    assert answer.status_code == 201


@pytest.mark.django_db
def test_a_refusal_is_not_stored_so_the_key_can_be_reused(delta: TenantWithOwner) -> None:
    api, key = ApiClient(delta.token()), "k1"
    body = {"name": "lab", "parent": delta.root.pk}
    assert api.send("POST", "projects", {**body, "parent": "prj_x"}, Idempotency_Key=key).status_code == 404
    assert api.send("POST", "projects", body, Idempotency_Key=key).status_code == 201


@pytest.mark.django_db
def test_a_change_is_rolled_back_when_its_answer_cannot_be_stored(
    delta: TenantWithOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the answer is lost on its way")

    body = {"name": "lab", "parent": delta.root.pk}
    with monkeypatch.context() as broken:
        broken.setattr(idempotency, "store_record", lost)
        assert ApiClient(delta.token()).send("POST", "projects", body, Idempotency_Key="k1").status_code == 500
    with rls.tenant_scope(delta.tenant.pk):
        assert not Project.objects.filter(name="lab").exists()


@pytest.mark.django_db
def test_a_replayed_answer_does_not_show_the_secret_again(delta: TenantWithOwner) -> None:
    body = {"name": "ci", "scopes": ["leases:read"], "expires_at": "2026-12-24T12:00:00Z"}
    api = ApiClient(delta.token())
    body["expires_at"] = (current_time().replace(microsecond=0) + idempotency.RETENTION).isoformat()
    first = api.send("POST", "tokens", body, Idempotency_Key="k1").json()
    again = api.send("POST", "tokens", body, Idempotency_Key="k1").json()
    assert first["token"].startswith("gpb_live_")
    assert again == {**first, "token": None}
    with rls.tenant_scope(delta.tenant.pk):
        assert ApiToken.objects.filter(name="ci").count() == 1
        assert first["token"] not in IdempotencyRecord.objects.get().body


@pytest.mark.django_db
def test_a_replayed_invitation_does_not_show_its_link_again(delta: TenantWithOwner) -> None:
    api, body = ApiClient(delta.token()), {"email": "new@example.org", "role": "viewer"}
    first, again = (api.send("POST", "invitations", body, Idempotency_Key="k1").json() for _ in range(2))
    assert again == {**first, "url": None}
    with rls.tenant_scope(delta.tenant.pk):
        assert first["url"] not in IdempotencyRecord.objects.get().body


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["k" * 256, "schlüssel"])
def test_an_unusable_key_is_refused(delta: TenantWithOwner, key: str) -> None:
    answer = ApiClient(delta.token()).send(
        "POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key=key
    )
    assert answer.status_code == 400


@pytest.mark.django_db
def test_a_change_without_a_key_is_refused_and_not_stored(delta: TenantWithOwner) -> None:
    body = {"name": "lab", "parent": delta.root.pk}
    answer = ApiClient(delta.token()).send("POST", "projects", body, Idempotency_Key="")
    assert (answer.status_code, answer.json()["code"]) == (400, "idempotency-key-missing")
    with rls.tenant_scope(delta.tenant.pk):
        assert not Project.objects.filter(name="lab").exists()


@pytest.mark.django_db
def test_archiving_twice_with_one_key_returns_the_stored_answer(delta: TenantWithOwner) -> None:
    path, api = f"projects/{delta.create_project('lab').pk}/archive", ApiClient(delta.token())
    first, again = (api.send("POST", path, Idempotency_Key="k1") for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"


@pytest.mark.django_db
def test_stored_answers_are_deleted_after_their_retention(delta: TenantWithOwner) -> None:
    ApiClient(delta.token()).send("POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key="k1")
    assert idempotency.delete_expired(now=current_time()) == 0
    assert idempotency.delete_expired(now=current_time() + 2 * idempotency.RETENTION) == 1


def test_twenty_concurrent_requests_with_one_key_create_one_project(own_database: object) -> None:
    delta = tenant_setup.create_tenant_with_owner("Delta")
    token, codes = delta.token(), []

    def send() -> None:
        try:
            answer = ApiClient(token).send(
                "POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key="k1"
            )
            codes.append((answer.status_code, answer.has_header("Idempotency-Replayed")))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes.count((201, False)) == 1
    assert set(codes) <= {(201, False), (201, True), (409, False)}
    with rls.tenant_scope(delta.tenant.pk):
        assert Project.objects.filter(name="lab").count() == 1
