"""The scope `leases:write` alone suffices for the whole life of a lease."""

from typing import Any

import pytest

from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_tenant, offering
from tests.web.api.broker.conftest import Api


@pytest.fixture
def narrow_api(kestrel: TenantContext) -> Api:
    return Api(kestrel.token(scopes=("leases:write",)))


def wanted(owner: TenantContext, **other: Any) -> dict[str, Any]:
    return {"name": "run", "project": owner.project.pk, "offering": offering().pk, "max_duration_s": 3600, **other}


def test_a_lease_is_launched_read_and_released(narrow_api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    answer = narrow_api.post("leases", wanted(kestrel))
    assert answer.status_code == 202, answer.body
    path = f"leases/{answer.body['id']}"
    sim.run(12)
    assert narrow_api.get(path).body["status"]["state"] == "active"
    for below in ("transitions", "allocations", "connections", "charges", "logs"):
        assert narrow_api.get(f"{path}/{below}").status_code == 200, below
    assert narrow_api.post(f"{path}/extend", {"more_s": 60}).status_code == 200
    assert narrow_api.post(f"{path}/release").status_code == 202


def test_an_array_a_schedule_and_a_volume_are_created(narrow_api: Api, kestrel: TenantContext) -> None:
    array = narrow_api.post("lease-arrays", wanted(kestrel, array_size=2))
    assert array.status_code == 202, array.body
    volume = narrow_api.post("volumes", {"name": "data", "project": kestrel.project.pk, "size_gib": 10})
    assert volume.status_code in (201, 202), volume.body
    launched = narrow_api.post("leases", wanted(kestrel, volume=volume.body["id"]))
    assert launched.status_code == 202, launched.body


def test_a_lease_uses_saved_secrets(narrow_api: Api, kestrel: TenantContext) -> None:
    admin = Api(kestrel.token(Role.ADMIN))
    secret = {"name": "HF_TOKEN", "project": kestrel.project.pk, "value": "hf_abcdefghijk"}
    made = admin.post("secrets", secret)
    assert made.status_code == 201, made.body
    answer = narrow_api.post("leases", wanted(kestrel, secrets={"TOKEN": made.body["id"]}))
    assert answer.status_code == 202, answer.body


def test_a_project_of_another_tenant_is_still_missing(narrow_api: Api, kestrel: TenantContext) -> None:
    other = create_tenant("Swift")
    with tenant_scope(kestrel.tenant.pk):
        for project in (other.project.pk, "prj_00000000000000000000000000"):
            answer = narrow_api.post("leases", wanted(kestrel, project=project))
            assert (answer.status_code, answer.body["code"]) == (404, "not-found")
