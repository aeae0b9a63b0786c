"""Saved secrets and SSH keys over the API, and leases that choose them."""

import json
from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection

from broker.models import Lease
from tenants.domain.roles import Role
from tenants.models import IdempotencyRecord, Project, SshKey
from tenants.services import ssh_keys, tokens
from tenants.services.actors import Actor
from tenants.services.idempotency import request_digest
from tenants.services.rls import tenant_scope
from tests.broker.services.secrets.saved_secrets import save_secret
from tests.simulation import NOW, Simulation, TenantContext
from tests.tenants.services.test_ssh_keys import PRIVATE, public_key
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted

VALUE = "hf_kq7-value-that-nobody-may-see-again"


@pytest.fixture
def admin_api(kestrel: TenantContext) -> Api:
    return Api(kestrel.token(Role.ADMIN))


def secret_body(owner: TenantContext, **other: object) -> dict[str, object]:
    return {"name": "HF_TOKEN", "project": owner.project.pk, "value": VALUE, **other}


def test_a_secret_is_created_replaced_and_deleted(admin_api: Api, kestrel: TenantContext) -> None:
    made = admin_api.post("secrets", secret_body(kestrel))
    path = f"secrets/{made.body['id']}"
    assert (made.status_code, made["Location"], made["ETag"]) == (201, f"/api/v1/{path}", '"1"')
    assert set(made.body) == {
        *("id", "name", "project", "kind", "registry", "created_at", "updated_at", "updated_by", "version")
    }
    assert admin_api.patch(path, {"value": "new"}).status_code == 428
    assert admin_api.patch(path, {"value": "new"}, If_Match='"7"').status_code == 412
    changed = admin_api.patch(path, {"value": "new"}, If_Match=made["ETag"])
    assert (changed.status_code, changed["ETag"], changed.body["version"]) == (200, '"2"', 2)
    assert [each["id"] for each in admin_api.get("secrets?q=HF").body["items"]] == [made.body["id"]]
    assert admin_api.delete(path, If_Match=changed["ETag"]).status_code == 204
    assert admin_api.get(path).status_code == 404


def test_a_member_chooses_secrets_and_cannot_save_them(api: Api, admin_api: Api, kestrel: TenantContext) -> None:
    secret = admin_api.post("secrets", secret_body(kestrel)).body
    assert api.post("secrets", secret_body(kestrel, name="OTHER")).status_code == 403
    assert api.patch(f"secrets/{secret['id']}", {"value": "x"}, If_Match="*").status_code == 403
    assert api.delete(f"secrets/{secret['id']}", If_Match="*").status_code == 403
    assert [each["name"] for each in api.get("secrets").body["items"]] == ["HF_TOKEN"]
    lease = api.post("leases", wanted(kestrel, secrets={"TOKEN": secret["id"]}))
    assert (lease.status_code, lease.body["spec"]["secrets"]) == (202, {"TOKEN": secret["id"]})
    refused = admin_api.delete(f"secrets/{secret['id']}", If_Match="*")
    assert (refused.status_code, refused.body["code"]) == (409, "secret-in-use")


def test_a_repeated_request_creates_one_secret_and_another_value_is_refused(
    admin_api: Api, kestrel: TenantContext
) -> None:
    first = admin_api.post("secrets", secret_body(kestrel), Idempotency_Key="same")
    again = admin_api.post("secrets", secret_body(kestrel), Idempotency_Key="same")
    assert (again.body, again["Idempotency-Replayed"]) == (first.body, "true")
    other = admin_api.post("secrets", secret_body(kestrel, value="other"), Idempotency_Key="same")
    assert (other.status_code, other.body["code"]) == (422, "idempotency-key-reuse")


def test_the_stored_digest_of_a_request_cannot_be_guessed_from_its_value(
    admin_api: Api, kestrel: TenantContext
) -> None:
    body = secret_body(kestrel, value="1234")
    admin_api.post("secrets", body)
    admin_api.post("leases", lease_body := wanted(kestrel, env={"PIN": "1234"}))
    with tenant_scope(kestrel.tenant.pk):
        digests = set(IdempotencyRecord.objects.values_list("body_digest", flat=True))
    assert len(digests) == 2
    assert not digests & {request_digest(body), request_digest(lease_body)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "hf token"}, "name"),
        ({"name": VALUE}, "name"),
        ({"value": ""}, "value"),
        ({"value": 7}, "value"),
        ({"value": None}, "value"),
        ({"value": "x" * 32_769}, "value"),
        ({"value": "ä" * 20_000}, "value"),
        ({"values": VALUE}, "values"),
    ],
)
def test_invalid_secrets_are_refused_without_repeating_what_was_sent(
    admin_api: Api, kestrel: TenantContext, change: dict[str, Any], field: str
) -> None:
    refused = admin_api.post("secrets", secret_body(kestrel, **change))
    assert refused.status_code == 400
    assert {each["field"] for each in refused.body["errors"]} == {field}
    assert VALUE not in refused.content.decode()


def test_a_taken_name_and_a_foreign_secret_are_refused(
    admin_api: Api, other_tenant_api: Api, kestrel: TenantContext
) -> None:
    secret = admin_api.post("secrets", secret_body(kestrel)).body
    assert admin_api.post("secrets", secret_body(kestrel)).body["code"] == "name-taken"
    assert other_tenant_api.get(f"secrets/{secret['id']}").status_code == 404
    assert other_tenant_api.get("secrets").body["items"] == []


@pytest.mark.parametrize(
    "secrets",
    [
        {"A": "sec_none"},
        {"A": ""},
        {"A": None},
        {"": "sec_none"},
        ["sec_none"],
        {f"V{n}": "sec_none" for n in range(51)},
    ],
)
def test_a_lease_with_invalid_secrets_is_refused(api: Api, kestrel: TenantContext, secrets: Any) -> None:
    refused = api.post("leases", wanted(kestrel, secrets=secrets))
    assert refused.status_code in (400, 404)
    with tenant_scope(kestrel.tenant.pk):
        assert not Lease.objects.exists()


def test_a_quote_accepts_the_secrets_of_a_lease(admin_api: Api, kestrel: TenantContext) -> None:
    secret = admin_api.post("secrets", secret_body(kestrel)).body
    body = {name: value for name, value in wanted(kestrel).items() if name != "name"}
    assert admin_api.post("quotes", {**body, "secrets": {"TOKEN": secret["id"]}}).status_code < 300
    refused = admin_api.post("quotes", {**body, "secrets": {"TOKEN": "sec_none"}})
    assert refused.status_code == 404 or refused.body["refusal"]["code"] == "not-found"


def database_text() -> str:
    """Return every row of every table that this login may read, as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            " AND has_table_privilege(oid, 'SELECT')"
        )
        names = [name for (name,) in cursor.fetchall()]
        text = []
        for name in names:
            cursor.execute(f"SELECT coalesce(string_agg(t::text, chr(10)), '') FROM public.\"{name}\" AS t")
            text.append(cursor.fetchone()[0])
    return "\n".join(text)


def test_a_value_is_in_no_column_log_or_response(
    admin_api: Api,
    kestrel: TenantContext,
    sim: Simulation,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = [made := admin_api.post("secrets", secret_body(kestrel)), admin_api.post("secrets", secret_body(kestrel))]
    path, body = (
        f"secrets/{made.body['id']}",
        wanted(
            kestrel, secrets={"TOKEN": made.body["id"]}, env={"MODE": "variable-value"}, tags={"mode": "plain-canary"}
        ),
    )
    answers += [lease := admin_api.post("leases", body), admin_api.post("quotes", body)]
    sim.run(60)
    answers += [admin_api.patch(path, {"value": f"{VALUE}-2"}, If_Match="*"), admin_api.delete(path, If_Match="*")]
    answers += [admin_api.get(each) for each in ("secrets", path, "audit-events", f"leases/{lease.body['id']}")]
    answers.append(admin_api.get(f"leases/{lease.body['id']}/transitions"))
    with tenant_scope(kestrel.tenant.pk):
        stored = database_text()
    assert "plain-canary" in stored  # so the scan would find a value
    printed = capsys.readouterr()
    seen = "\n".join([stored, printed.out, printed.err, caplog.text, *(each.content.decode() for each in answers)])
    for form in (VALUE, "variable-value", b64encode(VALUE.encode()).decode(), VALUE.encode().hex(), json.dumps(VALUE)):
        assert form not in seen


def user_api(owner: TenantContext, role: Role = Role.MEMBER, *, within: Project | None = None) -> tuple[Api, Actor]:
    """Return a client with a token of a new user, and the user."""
    user = owner.create_member(role)
    actor = Actor("user", user.pk, user.email)
    with tenant_scope(owner.tenant.pk):
        _, text = tokens.issue(
            tenant=owner.tenant,
            name="own",
            scopes=["tenant:admin"],
            expires_at=NOW + timedelta(days=9),
            actor=actor,
            now=NOW,
            user_id=user.pk,
            project=within,
        )
    return Api(text), actor


def test_a_user_saves_chooses_and_deletes_an_ssh_key(kestrel: TenantContext) -> None:
    api, actor = user_api(kestrel)
    made = api.post("ssh-keys", {"name": "laptop", "public_key": public_key()})
    assert made.status_code == 201
    assert (made.body["type"], made.body["comment"]) == ("ssh-ed25519", "ada@example")
    assert made.body["fingerprint"].startswith("SHA256:")
    lease = api.post("leases", wanted(kestrel, workload="ssh", ssh_key_ids=[made.body["id"]]))
    assert (lease.status_code, lease.body["spec"]["ssh_keys"]) == (202, [public_key()])
    assert SshKey.objects.get().last_used_at == NOW
    assert api.delete(f"ssh-keys/{made.body['id']}").status_code == 204
    assert api.get("ssh-keys").body["items"] == []
    assert not ssh_keys.keys_of(actor)


def test_ssh_keys_of_other_users_are_missing(kestrel: TenantContext) -> None:
    (mine, _), (theirs, _) = user_api(kestrel), user_api(kestrel, Role.OWNER)
    key = mine.post("ssh-keys", {"name": "laptop", "public_key": public_key()}).body
    assert theirs.get("ssh-keys").body["items"] == []
    assert theirs.get(f"ssh-keys/{key['id']}").status_code == 404
    assert theirs.delete(f"ssh-keys/{key['id']}").status_code == 404
    refused = theirs.post("leases", wanted(kestrel, workload="ssh", ssh_key_ids=[key["id"]]))
    assert (refused.status_code, refused.body["code"]) == (404, "not-found")


def test_a_token_restricted_to_a_project_does_not_reach_the_accounts_keys(kestrel: TenantContext) -> None:
    api, actor = user_api(kestrel, within=kestrel.project)
    key = ssh_keys.add_key(name="laptop", public_key=public_key(), actor=actor, now=NOW)
    assert api.get("ssh-keys").body["items"] == []
    assert api.delete(f"ssh-keys/{key.pk}").status_code == 404
    assert api.post("ssh-keys", {"name": "other", "public_key": public_key(1)}).status_code == 403


def test_a_private_key_is_refused_and_stored_nowhere(kestrel: TenantContext) -> None:
    api, _ = user_api(kestrel)
    refused = api.post("ssh-keys", {"name": "laptop", "public_key": PRIVATE})
    assert refused.status_code == 400
    assert "This is a private key. It was not stored." in refused.content.decode()
    with tenant_scope(kestrel.tenant.pk):
        stored = database_text()
    assert "b3BlbnNzaC1rZXkt" not in refused.content.decode() + stored


def test_a_service_account_has_no_ssh_keys(api: Api) -> None:
    refused = api.post("ssh-keys", {"name": "robot", "public_key": public_key()})
    assert (refused.status_code, refused.body["code"]) == (409, "users-only")


def test_secrets_need_an_encryption_key(admin_api: Api, kestrel: TenantContext, settings: LazySettings) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = ""
    refused = admin_api.post("secrets", secret_body(kestrel))
    assert (refused.status_code, refused.body["code"]) == (409, "no-encryption-key")
    settings.CREDENTIAL_ENCRYPTION_KEYS = "not a key"
    assert admin_api.post("secrets", secret_body(kestrel)).status_code == 409


def test_a_secret_saved_elsewhere_is_listed_by_project(admin_api: Api, kestrel: TenantContext) -> None:
    team = kestrel.create_project("team")
    save_secret(kestrel, "OF_ROOT")
    save_secret(kestrel, "OF_TEAM", project=team)
    assert [each["name"] for each in admin_api.get(f"secrets?project={team.pk}").body["items"]] == ["OF_TEAM"]
    assert len(admin_api.get(f"secrets?below={kestrel.project.pk}").body["items"]) == 2
