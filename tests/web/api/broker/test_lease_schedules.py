"""Lease schedules over the API."""

from typing import Any

import pytest

from broker.services.leases.schedules.due_schedules import run_due_schedules
from tenants.domain.roles import Role
from tests.simulation import Simulation, TenantContext
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted


def schedule_body(owner: TenantContext, **other: object) -> dict[str, object]:
    lease = {name: value for name, value in wanted(owner).items() if name not in ("name", "project")}
    lease |= {"workload": "batch", "command": "train", "env": {"MODE": "secret-mode"}}
    body = {"name": "nightly", "project": owner.project.pk, "cron": "0 3 * * *", "time_zone": "Europe/Berlin"}
    return {**body, "launch": lease, **other}


def test_a_schedule_is_created_changed_and_deleted(api: Api, kestrel: TenantContext) -> None:
    made = api.post("lease-schedules", schedule_body(kestrel))
    path = f"lease-schedules/{made.body['id']}"
    assert (made.status_code, made["Location"], made["ETag"]) == (201, f"/api/v1/{path}", '"1"')
    assert made.body["next_times"] == [f"2026-11-{day}T02:00:00Z" for day in (22, 23, 24)]
    assert (made.body["paused"], made.body["overlap"], made.body["last_result"]) == (False, "skip", None)
    assert made.body["launch"]["env_names"] == ["MODE"]
    assert "secret-mode" not in made.content.decode()
    assert api.patch(path, {"paused": True}).status_code == 428
    paused = api.patch(path, {"paused": True}, If_Match=made["ETag"])
    assert (paused.body["paused"], paused.body["next_times"], paused["ETag"]) == (True, [], '"2"')
    changed = api.patch(path, {"paused": False, "cron": "0 4 * * *", "overlap": "allow"}, If_Match="*")
    assert (changed.body["cron"], changed.body["overlap"]) == ("0 4 * * *", "allow")
    assert [each["id"] for each in api.get("lease-schedules?q=night").body["items"]] == [made.body["id"]]
    assert api.delete(path, If_Match="*").status_code == 204
    assert api.get(path).status_code == 404


def test_the_runs_of_a_schedule_are_listed(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    made = api.post("lease-schedules", schedule_body(kestrel, cron="0 * * * *")).body
    sim.run(3600)
    run_due_schedules(now=sim.now)
    (run,) = api.get(f"lease-schedules/{made['id']}/runs").body["items"]
    assert (run["result"], run["due_at"]) == ("started", "2026-11-21T10:00:00Z")
    lease = api.get(f"leases/{run['lease']}").body
    assert lease["name"] == "nightly-1121-1100"
    assert api.get(f"lease-schedules/{made['id']}").body["last_result"] == "started"


def test_a_repeated_request_creates_one_schedule(api: Api, kestrel: TenantContext) -> None:
    first, again = (api.post("lease-schedules", schedule_body(kestrel), Idempotency_Key="one").body for _ in range(2))
    assert first["id"] == again["id"]
    taken = api.post("lease-schedules", schedule_body(kestrel))
    assert (taken.status_code, taken.body["code"]) == (409, "schedule-exists")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"cron": "daily"}, "cron"), ({"time_zone": "Mars"}, "time_zone"), ({"overlap": "maybe"}, "overlap")],
)
def test_an_invalid_schedule_is_refused(api: Api, kestrel: TenantContext, wrong: dict[str, Any], field: str) -> None:
    refused = api.post("lease-schedules", schedule_body(kestrel, **wrong))
    assert refused.status_code in (400, 422)
    assert refused.body["errors"][0]["field"] == field


def test_a_viewer_reads_schedules_and_changes_none(api: Api, kestrel: TenantContext) -> None:
    path = f"lease-schedules/{api.post('lease-schedules', schedule_body(kestrel)).body['id']}"
    viewer = Api(kestrel.token(Role.VIEWER))
    assert viewer.get(path).status_code == 200
    assert viewer.patch(path, {"paused": True}, If_Match="*").status_code == 403
    assert viewer.delete(path, If_Match="*").status_code == 403
