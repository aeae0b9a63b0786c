"""API of approvals: refused launches are asked for, decided and launched."""

from typing import Any

import pytest
from django.test import Client

from broker.models import Lease
from ports import ids
from tenants.domain.roles import Role
from tenants.models import AuditEvent
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, offering
from tests.tenants.tenant_setup import ApiClient

pytestmark = pytest.mark.django_db
LIMITS = {"max_cost": None, "max_gpus": None, "max_duration_s": 3600}


@pytest.fixture
def kestrel(priced_fleet: TenantContext, settings: Any) -> TenantContext:
    from config.env import EnvironmentSettings

    settings.LEASE_GATES = EnvironmentSettings.model_fields["lease_gates"].default
    return priced_fleet


def api(kestrel: TenantContext, role: Role, **more: Any) -> Any:
    return ApiClient(kestrel.token(role, **more))


def launch(kestrel: TenantContext, **more: Any) -> dict[str, Any]:
    return {"name": "fold", "project": kestrel.project.pk, "offering": offering().pk, "max_duration_s": 7200, **more}


def limited(kestrel: TenantContext) -> Any:
    owner = api(kestrel, Role.OWNER)
    answer = owner.send("PUT", "approval-limits", LIMITS, If_Match='"0"')
    assert answer.status_code == 200, answer.content
    assert owner.send("PUT", "approval-limits", LIMITS, If_Match='"0"').status_code == 412
    return owner


def test_a_refused_launch_is_asked_for_approved_and_launched(sim: Simulation, kestrel: TenantContext) -> None:
    owner, member = limited(kestrel), api(kestrel, Role.MEMBER)
    refused = member.send("POST", "leases", launch(kestrel))
    assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (409, "approval-required")
    assert refused.json()["exceeded"] == ["tenant:duration"]
    asked = member.send("POST", "approval-requests", {"launch": launch(kestrel), "note": "for the paper"})
    assert asked.status_code == 201, asked.content
    body = asked.json()
    assert (body["state"], body["waits_for"], body["max_cost"]["currency"]) == ("waiting", ["tenant"], "EUR")
    path = f"approval-requests/{body['id']}"
    assert member.send("POST", f"{path}/approve", {}).status_code == 403
    done = owner.send("POST", f"{path}/approve", {"reason": "fine"})
    assert done.status_code == 200, done.content
    with tenant_scope(kestrel.tenant.pk):
        assert Lease.objects.get().pk == done.json()["lease"]
    assert owner.send("GET", "approval-requests?state=waiting").json()["items"] == []


def test_a_dry_run_asks_for_nothing(sim: Simulation, kestrel: TenantContext) -> None:
    owner, member = limited(kestrel), api(kestrel, Role.MEMBER)
    dry = member.send("POST", "approval-requests?dry_run=true", {"launch": launch(kestrel)})
    assert dry.status_code == 200, dry.content
    assert owner.send("GET", "approval-requests").json()["items"] == []


def test_a_token_without_the_scope_approves_nothing(sim: Simulation, kestrel: TenantContext) -> None:
    limited(kestrel)
    member, narrow = api(kestrel, Role.MEMBER), api(kestrel, Role.OWNER, scopes=("leases:write", "approvals:read"))
    asked = member.send("POST", "approval-requests", {"launch": launch(kestrel)}).json()
    answer = narrow.send("POST", f"approval-requests/{asked['id']}/approve", {})
    assert (answer.status_code, answer.json()["scopes"]) == (403, ["approvals:write"])


def test_an_array_and_an_extension_are_asked_for(sim: Simulation, kestrel: TenantContext) -> None:
    limited(kestrel)
    member = api(kestrel, Role.MEMBER)
    array = member.send("POST", "approval-requests", {"launch": launch(kestrel, array_size=3)})
    assert (array.status_code, array.json()["array_size"]) == (201, 3)
    lease = member.send("POST", "leases", launch(kestrel, max_duration_s=3600)).json()["id"]
    extension = member.send("POST", "approval-requests", {"lease": lease, "more_s": 3600})
    assert (extension.status_code, extension.json()["kind"]) == (201, "extension")
    assert member.send("POST", "approval-requests", {"lease": "lse_missing"}).status_code == 404
    assert member.send("POST", "approval-requests", {"lease": lease, "launch": launch(kestrel)}).status_code == 400
    assert member.send("POST", f"approval-requests/{array.json()['id']}/withdraw").json()["state"] == "withdrawn"


def test_what_needs_no_approval_is_refused(sim: Simulation, kestrel: TenantContext) -> None:
    limited(kestrel)
    answer = api(kestrel, Role.MEMBER).send("POST", "approval-requests", {"launch": launch(kestrel, max_duration_s=60)})
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (409, "approval-not-needed")
    assert api(kestrel, Role.MEMBER).send("POST", "approval-requests", {}).status_code == 400


def test_a_request_is_in_the_audit_log(sim: Simulation, kestrel: TenantContext) -> None:
    limited(kestrel)
    asked = api(kestrel, Role.MEMBER).send("POST", "/api/v1/approval-requests", {"launch": launch(kestrel)})
    with tenant_scope(kestrel.tenant.pk):
        assert AuditEvent.objects.get(action="approval.request").subject_id == asked.json()["id"]


def test_operators_limit_and_decide_by_the_api(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    def post(path: str, body: dict[str, Any]) -> Any:
        key = {"Idempotency-Key": ids.new("key")}
        return operator.post(f"/api/v1/ops/{path}", body, content_type="application/json", headers=key)

    answer = post(f"tenants/{kestrel.tenant.pk}/approval-limits", LIMITS)
    assert answer.status_code == 200, answer.content
    assert answer.json()["limits"]["max_duration_s"] == 3600
    asked = api(kestrel, Role.MEMBER).send("POST", "approval-requests", {"launch": launch(kestrel)}).json()
    listed = operator.get("/api/v1/ops/approval-requests?waits_for_operator=true").json()["items"]
    assert [each["id"] for each in listed] == [asked["id"]]
    done = post(f"approval-requests/{asked['id']}/approve", {"reason": ""})
    assert (done.status_code, done.json()["state"]) == (200, "approved")
