"""Arrays of leases over the API."""

import pytest

from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tests.simulation import Simulation, TenantContext
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted


def array_body(owner: TenantContext, size: int, **other: object) -> dict[str, object]:
    return wanted(owner, name="sweep", workload="batch", command="train", array_size=size, **other)


def test_an_array_is_requested_listed_and_released(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    made = api.post("lease-arrays", array_body(kestrel, 3))
    path = f"lease-arrays/{made.body['id']}"
    assert (made.status_code, made["Location"], made.body["size"]) == (202, f"/api/v1/{path}", 3)
    assert made.body["states"] == {"queued": 3}
    leases = api.get(f"leases?array={made.body['id']}&sort=id").body["items"]
    assert [(each["spec"]["array"], each["spec"]["array_index"]) for each in leases] == [
        (made.body["id"], index) for index in range(3)
    ]
    assert [each["id"] for each in api.get("lease-arrays").body["items"]] == [made.body["id"]]
    sim.run(30)
    released = api.post(f"{path}/release")
    assert (released.status_code, released.body["states"]) == (202, {"releasing": 3})
    sim.run(30)
    assert api.get(path).body["states"] == {"released": 3}


def test_a_repeated_request_creates_one_array(api: Api, kestrel: TenantContext) -> None:
    first = api.post("lease-arrays", array_body(kestrel, 2), Idempotency_Key="one")
    again = api.post("lease-arrays", array_body(kestrel, 2), Idempotency_Key="one")
    assert first.body["id"] == again.body["id"]
    assert len(api.get("leases").body["items"]) == 2


def test_an_array_beyond_the_quota_creates_nothing(api: Api, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.UNITS, 2000)
    refused = api.post("lease-arrays", array_body(kestrel, 3))
    assert (refused.status_code, refused.body["code"]) == (409, "quota-exceeded")
    assert refused.body["detail"].startswith("Lease 3 of 3 is refused, so none was created.")
    assert api.get("leases").body["items"] == []


@pytest.mark.parametrize(("size", "other"), [(0, {}), (1001, {}), (2, {"quote": "x"}), (2, {"volume": "vol_1"})])
def test_an_impossible_array_is_refused(api: Api, kestrel: TenantContext, size: int, other: dict[str, object]) -> None:
    assert api.post("lease-arrays", array_body(kestrel, size, **other)).status_code == 400


def test_a_viewer_reads_arrays_and_releases_none(api: Api, kestrel: TenantContext) -> None:
    made = api.post("lease-arrays", array_body(kestrel, 1)).body
    viewer = Api(kestrel.token(Role.VIEWER))
    assert viewer.get(f"lease-arrays/{made['id']}").status_code == 200
    assert viewer.post(f"lease-arrays/{made['id']}/release").status_code == 403
