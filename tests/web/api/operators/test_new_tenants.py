"""Operators create, release and re-denominate tenants, by API and pages."""

from typing import Any

import pytest
from django.test import Client

from ports import ids
from tenants.models import AuditEvent, Tenant, User
from tenants.services import new_tenants, rls
from tenants.services.actors import Actor
from tests.tenants.tenant_setup import current_time

pytestmark = pytest.mark.django_db
TENANTS = "/api/v1/ops/tenants"
NEW = {"name": "Kestrel", "owner_email": "mira@kestrel.example", "currency": "USD", "country": "de"}


@pytest.fixture
def new_tenant(db: None) -> Tenant:
    ada = User.objects.create_user("ada@example.org")
    with rls.tenant_scope(""):
        return new_tenants.found_tenant(
            user=ada,
            name="Ada",
            currency="EUR",
            time_zone="UTC",
            ip_address="192.0.2.7",
            actor=Actor("user", ada.pk, ada.email),
            now=current_time(),
        )


def post(operator: Client, path: str, body: dict[str, Any]) -> Any:
    return operator.post(path, body, content_type="application/json", headers={"Idempotency-Key": ids.new("key")})


def audited(tenant_id: str) -> set[str]:
    with rls.tenant_scope(tenant_id):
        return set(AuditEvent.objects.values_list("action", flat=True))


def test_an_operator_creates_a_tenant_and_invites_its_owner(operator: Client, letters: list[tuple[str, str]]) -> None:
    answer = post(operator, TENANTS, NEW)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["name"], made["currency"], made["released_at"] is None) == ("Kestrel", "USD", False)
    assert {"tenant.create", "invitation.create"} <= audited(made["id"])
    wrong = post(operator, TENANTS, {**NEW, "currency": "XXX", "country": "ZZ"})
    assert wrong.status_code == 400


def test_an_operator_releases_a_new_tenant(operator: Client, new_tenant: Tenant) -> None:
    assert [each["id"] for each in operator.get(f"{TENANTS}?released=false").json()["items"]] == [new_tenant.pk]
    answer = post(operator, f"{TENANTS}/{new_tenant.pk}/release", {"reason": "known"})
    assert (answer.status_code, answer.json()["released_at"] is None) == (200, False)
    assert {"tenant.release", "quota.set", "quota.remove"} <= audited(new_tenant.pk)
    assert post(operator, f"{TENANTS}/{new_tenant.pk}/release", {"reason": "known"}).status_code == 409
    assert operator.get(f"{TENANTS}?released=false").json()["items"] == []


def test_an_operator_changes_the_currency(operator: Client, new_tenant: Tenant) -> None:
    answer = post(operator, f"{TENANTS}/{new_tenant.pk}/currency", {"currency": "usd"})
    assert (answer.status_code, answer.json()["currency"]) == (200, "USD")
    assert post(operator, f"{TENANTS}/{new_tenant.pk}/currency", {"currency": "XXX"}).status_code == 400


def test_the_pages_do_the_same(operator: Client, new_tenant: Tenant, letters: list[tuple[str, str]]) -> None:
    assert "new, created by ada@example.org" in operator.get("/ops/tenants/").content.decode()
    form = {**NEW, "country": "DE", "time_zone": "Europe/Berlin", "payment": "invoice"}
    assert operator.get("/ops/tenants/new/").status_code == 200
    refused = operator.post("/ops/tenants/new/", {**form, "owner_email": "nobody"})
    assert refused.status_code == 400
    assert 'value="Kestrel"' in refused.content.decode()
    assert operator.post("/ops/tenants/new/", form).status_code == 302
    release = f"/ops/tenants/{new_tenant.pk}/release/"
    assert "ada@example.org" in operator.get(release).content.decode()
    assert operator.post(release, {"payment": "invoice", "reason": ""}).status_code == 400
    assert operator.post(release, {"payment": "prepaid", "reason": "known"}).status_code == 302
    currency = f"/ops/tenants/{new_tenant.pk}/currency/"
    assert operator.get(currency).status_code == 200
    assert operator.post(currency, {"currency": "USD"}).status_code == 302
    with rls.staff_scope():
        assert Tenant.objects.get(pk=new_tenant.pk).currency == "USD"
        assert Tenant.objects.get(name="Kestrel").released_at is not None
