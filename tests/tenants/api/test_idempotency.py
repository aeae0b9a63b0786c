"""The same request twice has one effect and one answer."""

import threading

import pytest
from django.db import connections

from tenants.models import ApiToken, Project, StoredAnswer
from tenants.services import answers, walls
from tests.tenants import people as world
from tests.tenants.people import Api, World, moment


@pytest.fixture
def delta() -> World:
    return world.make("Delta")


@pytest.mark.django_db
def test_a_repeated_request_gets_its_first_answer(delta: World) -> None:
    api, body = Api(delta.token()), {"name": "lab", "parent": delta.root.pk}
    first = api.ask("POST", "projects", body, Idempotency_Key="k1")
    again = api.ask("POST", "projects", dict(reversed(body.items())), Idempotency_Key="k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"
    assert (again["ETag"], again["Location"]) == (first["ETag"], first["Location"])
    with walls.as_tenant(delta.tenant.pk):
        assert Project.objects.filter(name="lab").count() == 1


@pytest.mark.django_db
def test_another_body_under_the_same_key_is_refused(delta: World) -> None:
    api = Api(delta.token())
    api.ask("POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key="k1")
    answer = api.ask("POST", "projects", {"name": "bench", "parent": delta.root.pk}, Idempotency_Key="k1")
    assert answer.status_code == 422
    assert answer.json()["code"] == "idempotency-key-reuse"


@pytest.mark.django_db
def test_two_bearers_may_use_the_same_key(delta: World) -> None:
    from tenants.domain.roles import Role

    Api(delta.token()).ask("POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key="k1")
    answer = Api(delta.token(Role.ADMIN)).ask(
        "POST", "projects", {"name": "bench", "parent": delta.root.pk}, Idempotency_Key="k1"
    )
    assert answer.status_code == 201


@pytest.mark.django_db
def test_a_refusal_is_not_kept_so_the_key_may_be_tried_again(delta: World) -> None:
    api, key = Api(delta.token()), "k1"
    body = {"name": "lab", "parent": delta.root.pk}
    assert api.ask("POST", "projects", {**body, "parent": "prj_x"}, Idempotency_Key=key).status_code == 404
    assert api.ask("POST", "projects", body, Idempotency_Key=key).status_code == 201


@pytest.mark.django_db
def test_an_effect_whose_answer_cannot_be_kept_is_undone(
    delta: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the answer is lost on its way")

    body = {"name": "lab", "parent": delta.root.pk}
    with monkeypatch.context() as broken:
        broken.setattr(answers, "keep", lost)
        assert Api(delta.token()).ask("POST", "projects", body, Idempotency_Key="k1").status_code == 500
    with walls.as_tenant(delta.tenant.pk):
        assert not Project.objects.filter(name="lab").exists()


@pytest.mark.django_db
def test_a_replayed_answer_does_not_show_the_secret_again(delta: World) -> None:
    body = {"name": "ci", "scopes": ["leases:read"], "expires_at": "2026-12-24T12:00:00Z"}
    api = Api(delta.token())
    body["expires_at"] = (moment().replace(microsecond=0) + answers.KEPT).isoformat()
    first = api.ask("POST", "tokens", body, Idempotency_Key="k1").json()
    again = api.ask("POST", "tokens", body, Idempotency_Key="k1").json()
    assert first["token"].startswith("gpb_live_")
    assert again == {**first, "token": None}
    with walls.as_tenant(delta.tenant.pk):
        assert ApiToken.objects.filter(name="ci").count() == 1
        assert first["token"] not in StoredAnswer.objects.get().body


@pytest.mark.django_db
def test_a_replayed_invitation_does_not_show_its_link_again(delta: World) -> None:
    api, body = Api(delta.token()), {"email": "new@example.org", "role": "viewer"}
    first, again = (api.ask("POST", "invitations", body, Idempotency_Key="k1").json() for _ in range(2))
    assert again == {**first, "url": None}
    with walls.as_tenant(delta.tenant.pk):
        assert first["url"] not in StoredAnswer.objects.get().body


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["k" * 256, "schlüssel"])
def test_an_unusable_key_is_refused(delta: World, key: str) -> None:
    answer = Api(delta.token()).ask(
        "POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key=key
    )
    assert answer.status_code == 400


@pytest.mark.django_db
def test_a_change_without_a_key_is_refused_and_leaves_nothing(delta: World) -> None:
    body = {"name": "lab", "parent": delta.root.pk}
    answer = Api(delta.token()).ask("POST", "projects", body, Idempotency_Key="")
    assert (answer.status_code, answer.json()["code"]) == (400, "idempotency-key-missing")
    with walls.as_tenant(delta.tenant.pk):
        assert not Project.objects.filter(name="lab").exists()


@pytest.mark.django_db
def test_archiving_twice_with_one_key_is_answered_twice(delta: World) -> None:
    path, api = f"projects/{delta.child('lab').pk}/archive", Api(delta.token())
    first, again = (api.ask("POST", path, Idempotency_Key="k1") for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"


@pytest.mark.django_db
def test_answers_older_than_a_week_are_forgotten(delta: World) -> None:
    Api(delta.token()).ask("POST", "projects", {"name": "lab", "parent": delta.root.pk}, Idempotency_Key="k1")
    assert answers.forget_old(now=moment()) == 0
    assert answers.forget_old(now=moment() + 2 * answers.KEPT) == 1


def test_twenty_at_once_have_one_effect(own_database: object) -> None:
    delta = world.make("Delta")
    token, codes = delta.token(), []

    def send() -> None:
        try:
            answer = Api(token).ask(
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
    with walls.as_tenant(delta.tenant.pk):
        assert Project.objects.filter(name="lab").count() == 1
