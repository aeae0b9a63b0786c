"""Operators' tokens: scoped, expiring, revoked and audited."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from ports import clock
from tenants.models import AuditEvent, OperatorToken, User
from tenants.services import operators, rls
from tests.simulation import TenantContext, create_tenant
from tests.tenants.tenant_setup import ApiClient, create_tenant_with_owner
from tests.web.keyed_requests import post_keyed

pytestmark = pytest.mark.django_db
TOKENS = "/api/v1/ops/tokens"


def issue(operator: Client, *scopes: str, days: float = 30) -> dict[str, Any]:
    ends = (clock.now() + timedelta(days=days)).isoformat()
    answer = post_keyed(operator, TOKENS, {"name": "pipeline", "scopes": scopes, "expires_at": ends})
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


@pytest.fixture
def kestrel(operator: Client) -> TenantContext:
    return create_tenant("Kestrel")


def test_a_token_reads_what_its_scope_names(operator: Client, kestrel: TenantContext) -> None:
    api = ApiClient(issue(operator, "tenants:read")["token"])
    assert [each["name"] for each in api.get("/api/v1/ops/tenants").json()["items"]] == ["Kestrel"]
    refused = api.get("/api/v1/ops/invoices")
    assert (refused.status_code, refused.json()["code"], refused.json()["scopes"]) == (
        403,
        "missing-scope",
        ["billing:read"],
    )


@pytest.mark.parametrize("scope", ["tenants:read", "fleet:write"])
def test_any_token_says_what_it_is(operator: Client, scope: str) -> None:
    made = issue(operator, scope)
    answer = ApiClient(made["token"]).get(f"{TOKENS}/current")
    assert answer.status_code == 200
    found = answer.json()
    assert (found["id"], found["scopes"], "token" in found) == (made["id"], [scope], False)
    assert operator.get(f"{TOKENS}/current").status_code == 404, "signed in, not by a token"


def test_a_token_that_may_read_changes_nothing(operator: Client, kestrel: TenantContext) -> None:
    api = ApiClient(issue(operator, "tenants:read")["token"])
    path = f"/api/v1/ops/tenants/{kestrel.tenant.pk}"
    refused: Any = api.send("PATCH", path, {"suspended": True, "reason": "late"})
    assert (refused.status_code, refused.json()["scopes"]) == (403, ["tenants:write"])
    assert operator.get(path).json()["suspended_at"] is None


def test_an_act_by_token_is_audited_with_the_token_and_its_owner(operator: Client, kestrel: TenantContext) -> None:
    made = issue(operator, "tenants:write")
    path = f"/api/v1/ops/tenants/{kestrel.tenant.pk}"
    done: Any = ApiClient(made["token"]).send("PATCH", path, {"suspended": True, "reason": "late"})
    assert done.status_code == 200, done.content
    assert done.json()["suspended_at"]
    with rls.staff_scope():
        visit = AuditEvent.objects.get(action="ops.tenants.change")
        act = AuditEvent.objects.get(action="tenant.suspend")
    assert (visit.actor_label, visit.detail["token"]) == ("operator@example.org", made["id"])
    assert (act.actor_kind, act.actor_label) == ("staff", "operator@example.org")


def test_a_post_by_token_is_done_once_per_key(operator: Client, kestrel: TenantContext) -> None:
    api = ApiClient(issue(operator, "billing:write")["token"])
    wanted = {"tenant": kestrel.tenant.pk, "amount": "10.00", "reason": "trial"}
    first, again = (api.send("POST", "/api/v1/ops/grants", wanted, Idempotency_Key="k1") for _ in range(2))
    assert first.status_code == 201, first.content  # type: ignore[attr-defined]
    assert first.json() == again.json()  # type: ignore[attr-defined]
    assert again["Idempotency-Replayed"] == "true"  # type: ignore[index]
    assert api.get("/api/v1/ops/grants").json()["total_estimate"] == 1
    other: Any = api.send("POST", "/api/v1/ops/grants", wanted | {"amount": "11.00"}, Idempotency_Key="k1")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reuse")


def test_stored_responses_of_an_operator_are_seen_by_nobody_else(operator: Client, kestrel: TenantContext) -> None:
    from tenants.models import OperatorIdempotencyRecord

    issue(operator, "billing:write")
    rls.enter_operator("somebody else")
    assert not OperatorIdempotencyRecord.objects.exists()


@pytest.mark.parametrize("ended", ["revoked", "expired", "dismissed", "inactive"])
def test_an_ended_token_is_refused(operator: Client, kestrel: TenantContext, ended: str) -> None:
    made = issue(operator, "tenants:read")
    api, user = ApiClient(made["token"]), User.objects.get(email="operator@example.org")
    assert api.get("/api/v1/ops/tenants").status_code == 200
    if ended == "revoked":
        assert operator.delete(f"{TOKENS}/{made['id']}").status_code == 204
    elif ended == "expired":
        OperatorToken.objects.update(expires_at=clock.now())
    elif ended == "dismissed":
        operators.dismiss(user.email, now=clock.now())
        operators.appoint(user.email, now=clock.now())
    else:
        User.objects.filter(pk=user.pk).update(is_active=False)
    assert api.get("/api/v1/ops/tenants").status_code == 401


def test_a_token_makes_and_revokes_no_tokens(operator: Client) -> None:
    made = issue(operator, "system:write")
    api = ApiClient(made["token"])
    ends = (clock.now() + timedelta(days=1)).isoformat()
    child: Any = api.send("POST", TOKENS, {"name": "child", "scopes": ["fleet:read"], "expires_at": ends})
    assert (child.status_code, child.json()["code"]) == (403, "policy-denied")
    assert api.delete(f"{TOKENS}/{made['id']}").status_code == 403


def test_a_second_factor_is_required_of_tokens_too(operator: Client, settings: Any) -> None:
    api = ApiClient(issue(operator, "tenants:read")["token"])
    settings.OPERATORS_REQUIRE_MFA = True
    assert api.get("/api/v1/ops/tenants").status_code == 404


def test_operators_tokens_open_no_tenant_and_tenants_tokens_no_operations(operator: Client) -> None:
    delta = create_tenant_with_owner("Delta")
    assert ApiClient(issue(operator, "tenants:write")["token"]).get("/api/v1/projects").status_code == 401
    assert ApiClient(delta.token()).get("/api/v1/ops/tenants").status_code == 401


@pytest.mark.parametrize(
    ("change", "field"),
    [({"scopes": []}, "scopes"), ({"scopes": ["tenant:admin"]}, "scopes"), ({"days": 400}, "expires_at")],
)
def test_a_faulty_token_is_refused(operator: Client, change: dict[str, Any], field: str) -> None:
    ends = (clock.now() + timedelta(days=change.pop("days", 1))).isoformat()
    body = {"name": "x", "scopes": ["fleet:read"], "expires_at": ends} | change
    answer = post_keyed(operator, TOKENS, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"].startswith(field)


def test_the_page_shows_a_new_token_once(operator: Client) -> None:
    page = operator.get("/ops/tokens/").content.decode()
    once = page.split('name="once" value="')[1].split('"')[0]
    form = {"name": "nightly", "days": "30", "scopes": ["fleet:read", "leases:write"], "once": once}
    made = operator.post("/ops/tokens/", form).content.decode()
    text = made.split("gpb_ops_", 1)[1].split("<")[0].split('"')[0]
    assert ApiClient(f"gpb_ops_{text}").get("/api/v1/ops/leases").status_code == 200
    again = operator.post("/ops/tokens/", form)
    assert "already submitted" in again.content.decode()
    assert OperatorToken.objects.count() == 1
    token = OperatorToken.objects.get()
    operator.post(f"/ops/tokens/{token.pk}/revoke/")
    assert ApiClient(f"gpb_ops_{text}").get("/api/v1/ops/leases").status_code == 401


def test_a_faulty_form_keeps_what_was_typed(operator: Client) -> None:
    answer = operator.post("/ops/tokens/", {"name": "nightly", "days": "30", "once": "x"})
    assert answer.status_code == 400
    assert "nightly" in answer.content.decode()
