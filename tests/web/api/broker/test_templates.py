"""Launch templates and registry logins over the API, and leases that choose them."""

from typing import Any

import pytest

from broker.models import LaunchTemplate
from tenants.domain.roles import Role
from tenants.models import AuditEvent, IdempotencyRecord
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import save_operator_template, save_template
from tests.simulation import TenantContext
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted

PASSWORD = "ghp_kq7-password-that-nobody-may-see-again"
IMAGE = "ghcr.io/acme/comfy:1"


@pytest.fixture
def admin_api(kestrel: TenantContext) -> Api:
    return Api(kestrel.token(Role.ADMIN))


def template_body(owner: TenantContext, **other: object) -> dict[str, object]:
    return {"name": "ComfyUI", "project": owner.project.pk, "image": IMAGE, **other}


def login_body(owner: TenantContext, **other: object) -> dict[str, object]:
    return {
        "name": "GHCR",
        "project": owner.project.pk,
        "kind": "registry",
        "registry": "ghcr.io",
        "username": "acme",
        "password": PASSWORD,
        **other,
    }


def test_values_of_variables_are_not_kept_with_the_response(admin_api: Api, kestrel: TenantContext) -> None:
    body, key = template_body(kestrel, env={"MODE": "a-value-of-a-tenant"}), "a-key"
    assert admin_api.post("templates", body, Idempotency_Key=key).body["env"] == {"MODE": "a-value-of-a-tenant"}
    with tenant_scope(kestrel.tenant.pk):
        assert "a-value-of-a-tenant" not in IdempotencyRecord.objects.get().body
    again = admin_api.post("templates", body, Idempotency_Key=key)
    assert (again["Idempotency-Replayed"], again.body["env"]) == ("true", {"MODE": ""})


def test_a_template_is_created_changed_and_deleted(admin_api: Api, kestrel: TenantContext) -> None:
    ports = [{"name": "web", "port": 7860}]
    made = admin_api.post("templates", template_body(kestrel, ports=ports, env={"MODE": "fast"}))
    path = f"templates/{made.body['id']}"
    assert (made.status_code, made["Location"], made["ETag"]) == (201, f"/api/v1/{path}", '"1"')
    assert made.body["ports"] == [{"name": "web", "port": 7860, "http": True}]
    assert (made.body["shape"], made.body["icon"], made.body["env"]) == ("session", "package", {"MODE": "fast"})
    assert admin_api.patch(path, {"icon": "palette"}).status_code == 428
    changed = admin_api.patch(path, {"icon": "palette"}, If_Match=made["ETag"])
    assert (changed.status_code, changed["ETag"]) == (200, '"2"')
    assert (changed.body["icon"], changed.body["image"], changed.body["ports"]) == (
        "palette",
        IMAGE,
        made.body["ports"],
    )
    assert [each["id"] for each in admin_api.get("templates?q=comfy").body["items"]] == [made.body["id"]]
    assert admin_api.delete(path, If_Match='"1"').status_code == 412
    assert admin_api.delete(path, If_Match=changed["ETag"]).status_code == 204
    assert admin_api.get(path).status_code == 404
    with tenant_scope(kestrel.tenant.pk):
        actions = AuditEvent.objects.filter(action__startswith="template.").order_by("pk")
        assert [each.action for each in actions] == ["template.create", "template.change", "template.delete"]


def test_a_member_launches_a_template_and_cannot_change_it(api: Api, admin_api: Api, kestrel: TenantContext) -> None:
    template = admin_api.post("templates", template_body(kestrel)).body
    assert api.post("templates", template_body(kestrel, name="Other")).status_code == 403
    assert api.patch(f"templates/{template['id']}", {"name": "x"}, If_Match="*").status_code == 403
    assert api.delete(f"templates/{template['id']}", If_Match="*").status_code == 403
    lease = api.post("leases", wanted(kestrel, template_id=template["id"]))
    assert lease.status_code == 202
    spec = lease.body["spec"]
    assert spec["template"] == {"id": template["id"], "version": 1, "name": "ComfyUI"}
    assert (spec["image"], spec["workload"], spec["pull_secret"]) == (IMAGE, "own", None)


def test_a_quote_refuses_the_template_that_a_lease_would(api: Api, kestrel: TenantContext) -> None:
    template = save_template(kestrel, needs_volume=True)
    body = {**wanted(kestrel, template_id=template.pk)}
    refused = api.post("leases", body)
    assert (refused.status_code, refused.body["errors"][0]["field"]) == (400, "volume")
    assert api.post("quotes", wanted(kestrel, template_id="tpl_0")).status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"image": "no image"}, "image"),
        ({"env": {"HF_TOKEN": "x"}}, "env"),
        ({"ports": [{"name": "web", "port": 80}]}, "ports"),
        ({"icon": "skull"}, "icon"),
        ({"shape": "forever"}, "shape"),
        ({"mount_path": "/etc"}, "mount_path"),
        ({"readiness_path": "/x"}, "readiness_path"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_an_invalid_template_is_refused_at_its_field(
    change: dict[str, Any], field: str, admin_api: Api, kestrel: TenantContext
) -> None:
    refused = admin_api.post("templates", template_body(kestrel, **change))
    assert refused.status_code == 400
    assert refused.body["errors"][0]["field"].startswith(field)
    with tenant_scope(kestrel.tenant.pk):
        assert not LaunchTemplate.objects.exists()


def test_a_change_of_ports_states_whole_ports(admin_api: Api, kestrel: TenantContext) -> None:
    made = admin_api.post("templates", template_body(kestrel))
    path, etag = f"templates/{made.body['id']}", made["ETag"]
    changed = admin_api.patch(path, {"ports": [{"name": "web", "port": 8080}]}, If_Match=etag)
    assert changed.status_code == 200, changed.body
    assert changed.body["ports"] == [{"name": "web", "port": 8080, "http": True}]
    refused = admin_api.patch(path, {"ports": [{}]}, If_Match=changed["ETag"])
    assert refused.status_code == 400


def test_a_dry_run_saves_no_template(admin_api: Api, kestrel: TenantContext) -> None:
    assert admin_api.post("templates?dry_run=true", template_body(kestrel)).status_code == 200
    assert admin_api.get("templates").body["items"] == []


def test_every_member_reads_the_operators_templates(api: Api, kestrel: TenantContext) -> None:
    template = save_operator_template(name="Shared")
    (shown,) = api.get("templates/shared").body["items"]
    assert (shown["id"], shown["name"], shown["updated_by"]) == (template.pk, "Shared", "an operator")
    lease = api.post("leases", wanted(kestrel, template_id=template.pk))
    assert lease.body["spec"]["template"]["name"] == "Shared"


def test_a_registry_login_is_saved_chosen_and_never_shown(admin_api: Api, api: Api, kestrel: TenantContext) -> None:
    made = admin_api.post("secrets", login_body(kestrel))
    assert (made.status_code, made.body["kind"], made.body["registry"]) == (201, "registry", "ghcr.io")
    assert not {"username", "password", "value"} & set(made.body)
    template = admin_api.post("templates", template_body(kestrel, pull_secret=made.body["id"])).body
    assert template["pull_secret"] == made.body["id"]
    lease = api.post("leases", wanted(kestrel, template_id=template["id"]))
    assert lease.body["spec"]["pull_secret"] == made.body["id"]
    own = api.post("leases", wanted(kestrel, image=IMAGE, pull_secret=made.body["id"], workload="own"))
    assert own.body["spec"]["pull_secret"] == made.body["id"]
    changed = admin_api.patch(
        f"secrets/{made.body['id']}", {"username": "acme", "password": "new"}, If_Match=made["ETag"]
    )
    assert (changed.status_code, changed.body["version"]) == (200, 2)
    refused = admin_api.delete(f"secrets/{made.body['id']}", If_Match="*")
    assert (refused.status_code, refused.body["code"]) == (409, "secret-in-use")
    shown = [each.content for each in (made, changed, lease, own, refused, admin_api.get("secrets?kind=registry"))]
    assert not any(PASSWORD.encode() in text for text in shown)
    with tenant_scope(kestrel.tenant.pk):
        assert PASSWORD not in str(list(AuditEvent.objects.values()))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"registry": "localhost"}, "registry"),
        ({"username": "a:b"}, "username"),
        ({"value": "x"}, "value"),
        ({"kind": "variable"}, "value"),
        ({"kind": "token"}, "kind"),
    ],
)
def test_an_invalid_login_is_refused_at_its_field(
    change: dict[str, Any], field: str, admin_api: Api, kestrel: TenantContext
) -> None:
    refused = admin_api.post("secrets", login_body(kestrel, **change))
    assert refused.status_code == 400
    assert field in [each["field"] for each in refused.body["errors"]]
    assert PASSWORD.encode() not in refused.content


def test_an_incomplete_change_of_a_secret_is_refused(admin_api: Api, kestrel: TenantContext) -> None:
    login = admin_api.post("secrets", login_body(kestrel)).body
    path = f"secrets/{login['id']}"
    for body in ({}, {"username": "x"}, {"value": "x", "password": "y"}):
        assert admin_api.patch(path, body, If_Match="*").status_code == 400
    assert admin_api.patch(path, {"value": "x"}, If_Match="*").status_code == 400
