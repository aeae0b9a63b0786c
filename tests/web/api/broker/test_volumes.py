"""Volumes over the API, and leases that are stopped and started."""

from broker.domain.lifecycle.states import LeaseState
from broker.models import Volume
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, offering, reload_lease
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted


def volume_body(owner: TenantContext, **other: object) -> dict[str, object]:
    return {"name": "data", "project": owner.project.pk, "size_gib": 20, **other}


def test_a_volume_is_created_used_retained_and_deleted(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    made = api.post("volumes", volume_body(kestrel))
    assert (made.status_code, made["Location"]) == (201, f"/api/v1/volumes/{made.body['id']}")
    assert made.body["status"] == {"state": "ready", "lease": None, "cluster": None, "used_at": None}
    volume = made.body["id"]
    lease = api.post("leases", wanted(kestrel, volume=volume)).body
    assert lease["spec"]["volume"] == volume
    sim.run(12)
    status = api.get(f"volumes/{volume}").body["status"]
    assert (status["lease"], status["cluster"], status["used_at"] is not None) == (
        lease["id"],
        "north-1",
        True,
    )
    refused = api.delete(f"volumes/{volume}", If_Match="*")
    assert (refused.status_code, refused.body["code"]) == (409, "volume-in-use")
    api.post(f"leases/{lease['id']}/release")
    sim.run(10)
    read = api.get(f"volumes/{volume}")
    assert read.body["status"]["lease"] is None
    assert api.delete(f"volumes/{volume}").status_code == 428
    going = api.delete(f"volumes/{volume}", If_Match=read["ETag"])
    assert (going.status_code, going.body["status"]["state"]) == (202, "deleting")
    sim.run(10)
    over = api.delete(f"volumes/{volume}", If_Match="*")
    assert (over.status_code, over.body["status"]["state"]) == (200, "deleted")
    assert [each["id"] for each in api.get("volumes?state=deleted").body["items"]] == [volume]
    assert kestrel.quota_used(QuotaKind.STORAGE) == 0


def test_a_repeated_idempotency_key_creates_one_volume(api: Api, kestrel: TenantContext) -> None:
    first = api.post("volumes", volume_body(kestrel), Idempotency_Key="same")
    again = api.post("volumes", volume_body(kestrel), Idempotency_Key="same")
    assert (again.body, again["Idempotency-Replayed"]) == (first.body, "true")
    with tenant_scope(kestrel.tenant.pk):
        assert Volume.objects.count() == 1


def test_invalid_and_forbidden_volume_requests_are_refused(
    api: Api, other_tenant_api: Api, kestrel: TenantContext
) -> None:
    too_much = api.post("volumes", volume_body(kestrel, size_gib=60_000))
    assert (too_much.status_code, too_much.body["code"]) == (409, "quota-exceeded")
    assert too_much.body["quota"]["kind"] == "storage"
    assert api.post("volumes", volume_body(kestrel, size_gib=0)).status_code == 400
    made = api.post("volumes", volume_body(kestrel)).body["id"]
    assert api.post("volumes", volume_body(kestrel)).body["code"] == "name-taken"
    assert other_tenant_api.get(f"volumes/{made}").status_code == 404
    assert api.post("leases", wanted(kestrel, volume="vol_nobody")).status_code == 404
    looks = Api(kestrel.token(Role.VIEWER))
    assert looks.get(f"volumes/{made}").status_code == 200
    assert looks.post("volumes", volume_body(kestrel, name="other")).status_code == 403
    assert looks.delete(f"volumes/{made}", If_Match="*").status_code == 403


def test_a_lease_is_stopped_and_started(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk))
    stopping = api.post(f"leases/{lease.pk}/stop")
    assert (stopping.status_code, stopping.body["status"]["state"], stopping.body["ends_at"]) == (
        202,
        "stopping",
        None,
    )
    early = api.post(f"leases/{lease.pk}/start")
    assert (early.status_code, early.body["code"]) == (409, "not-stopped")
    sim.run(5)
    assert api.get(f"leases/{lease.pk}").body["status"]["state"] == "stopped"
    started = api.post(f"leases/{lease.pk}/start")
    assert (started.status_code, started.body["status"]["state"]) == (202, "queued")
    assert started.body["status"]["queue_position"] == 1
    (entry,) = api.get("queue-entries").body["items"]
    assert entry["queued_since"] > started.body["created_at"]
    sim.run(12)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    bare = sim.create_lease(kestrel, offering())
    assert api.post(f"leases/{bare.pk}/stop").body["code"] == "data-would-be-lost"
