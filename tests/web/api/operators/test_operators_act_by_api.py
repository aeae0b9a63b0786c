"""What operators do on pages, done over the API."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import TaxCategory
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Cluster, Gpu, GpuHealth, Node, NodeState, Offering, Orphan
from ports import clock
from tenants.models import AuditEvent, Quota, QuotaKind
from tenants.services import rls
from tests.architecture.matrix import a_stripe_difference, a_stripe_event
from tests.billing.histories import EURO, set_price
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease
from tests.web.keyed_requests import patch_json, post_keyed

pytestmark = pytest.mark.django_db
API = "/api/v1"
WHY = "planned work"


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def audited(action: str) -> int:
    with rls.staff_scope():
        return AuditEvent.objects.filter(action=action).count()


def test_quotas_of_a_tenant_are_set_and_lifted(operator: Client, kestrel: TenantContext) -> None:
    path = f"{API}/ops/tenants/{kestrel.tenant.pk}"
    done = patch_json(operator, path, {"quotas": {"units": 5000, "gpu_seconds": 7_200_000}})
    assert {each["kind"]: each["limit"] for each in done.json()["quotas"]} == {"units": 5000, "gpu_seconds": 7_200_000}
    lifted = patch_json(operator, path, {"quotas": {"gpu_seconds": None}})
    assert {each["kind"]: each["limit"] for each in lifted.json()["quotas"]} == {"units": 5000}
    with rls.tenant_scope(kestrel.tenant.pk):
        assert not Quota.objects.filter(kind=QuotaKind.GPU_SECONDS).exists()


def test_a_tenant_is_suspended_with_a_reason_and_resumed(operator: Client, kestrel: TenantContext) -> None:
    path = f"{API}/ops/tenants/{kestrel.tenant.pk}"
    assert patch_json(operator, path, {"suspended": True}).json()["errors"][0]["field"] == "reason"
    assert patch_json(operator, path, {"suspended": True, "reason": WHY}).json()["suspended_at"]
    assert patch_json(operator, path, {"suspended": False}).json()["suspended_at"] is None


def test_an_empty_change_changes_nothing(operator: Client, kestrel: TenantContext) -> None:
    path = f"{API}/ops/tenants/{kestrel.tenant.pk}"
    before = operator.get(path).json()
    assert patch_json(operator, path, {}).json() == before


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("tax-rates", {"jurisdiction": "DE", "percent": "101", "since_day": "2026-01-01"}, "percent"),
        ("tax-rates", {"jurisdiction": "DE", "percent": "19", "since_day": "1066-01-01"}, "since_day"),
        ("commitments", {"units": 1, "price_per_hour": "x"}, "price_per_hour"),
        ("commitments", {"units": 1, "price_per_hour": "0"}, "price_per_hour"),
        ("grants", {"amount": "1.00", "reason": WHY, "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ],
)
def test_an_error_names_the_field_as_the_body_does(
    operator: Client, kestrel: TenantContext, path: str, body: dict[str, Any], field: str
) -> None:
    of_tenant = {} if path == "tax-rates" else {"tenant": kestrel.tenant.pk, "offering": offering("1g.10gb").pk}
    refused = post_keyed(operator, f"{API}/ops/{path}", body | of_tenant)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, field), refused.content


def test_payment_terms_are_changed_one_by_one(operator: Client, kestrel: TenantContext) -> None:
    path = f"{API}/ops/tenants/{kestrel.tenant.pk}/payment-terms"
    done = patch_json(operator, path, {"payment_terms": "prepaid", "reason": WHY}).json()
    assert (done["payment_terms"], done["account_status"], done["reason"]) == ("prepaid", "good", WHY)
    done = patch_json(operator, path, {"account_status": "grace", "reason": WHY}).json()
    assert (done["payment_terms"], done["account_status"]) == ("prepaid", "grace")


def test_credit_is_granted_within_a_project_and_until_a_time(operator: Client, kestrel: TenantContext) -> None:
    lab = kestrel.create_project("lab")
    body = {"tenant": kestrel.tenant.pk, "amount": "25.00", "reason": "trial", "project": lab.pk,
            "expires_at": "2027-01-01T00:00:00Z"}  # fmt: skip
    made = post_keyed(operator, f"{API}/ops/grants", body)
    assert made.status_code == 201, made.content
    assert made.json()["tenant"]["name"] == "Kestrel"
    wrong = post_keyed(operator, f"{API}/ops/grants", body | {"project": "prj_x"})
    assert wrong.json()["errors"][0]["field"] == "project"


def test_a_lease_is_released_with_a_reason(operator: Client, kestrel: TenantContext, sim: Simulation) -> None:
    lease = sim.create_lease(kestrel, offering())
    done = post_keyed(operator, f"{API}/ops/leases/{lease.pk}/release", {"reason": WHY})
    assert done.json()["end_reason"] == EndReason.BY_OPERATOR
    sim.run(30)
    assert reload_lease(lease).state == LeaseState.RELEASED
    assert audited("ops.lease.release") == 1


def test_a_gpu_is_quarantined_and_returned(operator: Client, kestrel: TenantContext) -> None:
    gpu = Gpu.objects.first()
    path = f"{API}/ops/gpus/{gpu.pk}"
    assert patch_json(operator, path, {"health": "unhealthy"}).json()["errors"][0]["field"] == "reason"
    assert patch_json(operator, path, {"health": "unhealthy", "reason": WHY}).json()["health"] == GpuHealth.UNHEALTHY
    assert patch_json(operator, path, {"health": "healthy", "reason": WHY}).json()["health"] == GpuHealth.HEALTHY


def test_a_node_is_drained_emptied_and_returned(operator: Client, kestrel: TenantContext, sim: Simulation) -> None:
    lease = sim.create_lease(kestrel, offering())
    path = f"{API}/nodes/{Node.objects.get().pk}"
    assert patch_json(operator, path, {"state": "draining", "reason": WHY}).json()["state"] == NodeState.DRAINING
    released = post_keyed(operator, f"{path}/release-leases", {"reason": WHY})
    assert released.json() == {"released": [lease.pk]}
    assert patch_json(operator, path, {"state": "ready", "reason": WHY}).json()["state"] == NodeState.READY


def test_a_cluster_is_changed_with_its_version_only(operator: Client, kestrel: TenantContext) -> None:
    path = f"{API}/clusters/{Cluster.objects.get().pk}"
    found: Any = operator.get(path)
    assert patch_json(operator, path, {"allow_shared_gpus": True, "reason": WHY}).status_code == 428
    done = patch_json(operator, path, {"allow_shared_gpus": True, "reason": WHY}, If_Match=found["ETag"])
    assert done.json()["allow_shared_gpus"] is True, done.content
    again = patch_json(operator, path, {"auto_repartition": True}, If_Match="*")
    assert again.json()["errors"][0]["field"] == "reason"


def test_a_cluster_needs_a_kubeconfig_that_runs_no_program(operator: Client) -> None:
    body = {"name": "north", "region": "eu", "kubeconfig": "users: [{name: a, user: {exec: {command: sh}}}]"}
    refused = post_keyed(operator, f"{API}/clusters", body)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "kubeconfig")
    assert not Cluster.objects.exists()


def test_orphans_are_listed_and_their_deletion_approved(operator: Client, kestrel: TenantContext) -> None:
    cluster = Cluster.objects.get()
    Orphan.objects.create(cluster=None, name="lse-gone", found_at=clock.now())  # of the simulated fleet
    path = f"{API}/clusters/{cluster.pk}/orphans"
    assert [each["name"] for each in operator.get(path).json()["items"]] == ["lse-gone"]
    assert post_keyed(operator, path, {"names": ["lse-gone", "x"], "reason": WHY}).json() == {"approved_count": 1}
    assert operator.get(path).json()["items"] == []


def test_plans_of_layouts_and_relocations_are_requested(operator: Client, kestrel: TenantContext) -> None:
    cluster = Cluster.objects.get()
    assert post_keyed(operator, f"{API}/clusters/{cluster.pk}/layouts").status_code == 202
    planned = post_keyed(operator, f"{API}/ops/relocation-plans")
    assert (planned.status_code, planned.json()) == (202, {"cluster_count": 1})


def test_an_offering_is_renamed_priced_published_and_retired(operator: Client, kestrel: TenantContext) -> None:
    draft = offering("2g.20gb")
    Offering.objects.filter(pk=draft.pk).update(state="draft")
    path = f"{API}/ops/offerings/{draft.pk}"
    assert patch_json(operator, path, {"state": "published"}).status_code == 409, "it has no price"
    assert post_keyed(operator, f"{path}/price", {"price_per_hour": "2.00"}).status_code == 201
    done = patch_json(operator, path, {"state": "published", "label": "Two slices", "tax_category": "reduced"}).json()
    assert (done["state"], done["label"], done["tax_category"]) == ("published", "Two slices", TaxCategory.REDUCED)
    assert done["price_now"]["price_per_hour"]["amount"] == "2.000000000", "a price set now is valid now"
    assert patch_json(operator, path, {"state": "retired"}).json()["state"] == "retired"
    assert post_keyed(operator, f"{API}/ops/offerings/derive").status_code == 201


def test_resources_are_changed_together(operator: Client, kestrel: TenantContext) -> None:
    path = f"{API}/ops/offerings/{offering().pk}"
    partial = patch_json(operator, path, {"resources": {"cpu_milli": 1000}})
    assert partial.status_code == 400
    amounts = {"cpu_milli": 1000, "host_memory_mib": 1024, "scratch_mib": 1024}
    assert patch_json(operator, path, {"resources": amounts}).json()["cpu_milli"] == 1000


def test_stripe_differences_and_events_are_settled_once(operator: Client) -> None:
    path = f"{API}/ops/stripe-differences/{a_stripe_difference()}"
    body = {"acknowledged": True, "reason": WHY}
    assert patch_json(operator, path, body).json()["acknowledge_reason"] == WHY
    assert patch_json(operator, path, body).json()["code"] == "not-open"
    event = a_stripe_event()
    assert post_keyed(operator, f"{API}/ops/stripe-events/{event}/retry").status_code == 200
    with rls.staff_scope():
        assert AuditEvent.objects.filter(action="stripe.event_retry", subject_id=event).exists()


def test_prices_and_commitments_use_the_same_word(operator: Client, kestrel: TenantContext, sim: Simulation) -> None:
    what = offering()
    set_price(what, EURO, since=sim.now - timedelta(days=1))
    body = {"tenant": kestrel.tenant.pk, "offering": what.pk, "units": 1, "price_per_hour": "0.50"}
    made = post_keyed(operator, f"{API}/ops/commitments", body).json()
    price = operator.get(f"{API}/ops/price-versions?offering={what.pk}").json()["items"][0]
    assert made["price_per_hour"] == {"amount": "0.500000000", "currency": "EUR"}
    assert price["price_per_hour"] == {"amount": "1.000000000", "currency": "EUR"}
