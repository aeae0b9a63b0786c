"""API of logs: pages, filters, the download, the live stream's address, and bad input."""

from typing import Any

import pytest
from django.conf import settings

from broker.models import Lease
from broker.services.logs import log_collection
from tenants.domain.roles import Role
from tests.simulation import Simulation, TenantContext, create_tenant, offering, reload_lease
from tests.web.api.broker.conftest import Api


@pytest.fixture
def lease(sim: Simulation, kestrel: TenantContext) -> Lease:
    """Return a batch that has printed four lines and failed."""
    command = "echo step 1; echo Step 2; echo ERROR out of memory; echo done; exit 3"
    wanted = sim.request_lease(kestrel, offering(), workload="batch", command=command)
    sim.run()
    sim.run(60)
    log_collection.collect_log(wanted.pk, wanted.tenant_id, now=sim.now)
    return reload_lease(wanted)


def texts(body: Any) -> list[str]:
    return [line["text"] for line in body["items"] if line["source"] == "program"]


def test_a_log_is_readable_after_the_end_with_its_exit_code(api: Api, lease: Lease) -> None:
    body = api.get(f"leases/{lease.pk}/logs").body
    assert texts(body) == ["step 1", "Step 2", "ERROR out of memory", "done"]
    assert "Simulated GPU box: commands are imitated, nothing is executed." in [line["text"] for line in body["items"]]
    assert (body["exit_code"], body["has_more"], body["log"]["fault"]) == (3, False, "")
    assert body["log"]["line_count"] == len(body["items"])
    assert body["log"]["completed_at"] is not None
    assert api.get(f"leases/{lease.pk}").body["status"]["exit_code"] == 3


def test_pages_follow_each_other_without_a_gap(api: Api, lease: Lease) -> None:
    everything = api.get(f"leases/{lease.pk}/logs").body
    found: list[Any] = []
    cursor = "0"
    while True:
        page = api.get(f"leases/{lease.pk}/logs?limit=3&cursor={cursor}").body
        found += page["items"]
        cursor = page["next_cursor"]
        if not page["has_more"]:
            break
    assert found == everything["items"]
    after = api.get(f"leases/{lease.pk}/logs?cursor={cursor}").body
    assert (after["items"], after["next_cursor"]) == ([], cursor)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("search=STEP", ["step 1", "Step 2"]),
        ("level=error", ["ERROR out of memory"]),
        ("source=program&tail=2", ["ERROR out of memory", "done"]),
        ("source=platform", []),
        ("search=nothing+like+it", []),
    ],
)
def test_lines_are_found_by_text_level_and_source(api: Api, lease: Lease, query: str, found: list[str]) -> None:
    assert texts(api.get(f"leases/{lease.pk}/logs?{query}").body) == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=2001", "limit"),
        ("limit=two", "limit"),
        ("limit=" + "0" * 18 + "1999999999", "limit"),
        ("cursor=-1", "cursor"),
        ("cursor=" + "9" * 30, "cursor"),
        ("tail=99999", "tail"),
        ("level=loud", "level"),
        ("source=stderr", "source"),
        ("search=" + "x" * 201, "search"),
    ],
)
def test_invalid_parameters_are_refused_by_name(api: Api, lease: Lease, query: str, field: str) -> None:
    answer = api.get(f"leases/{lease.pk}/logs?{query}")
    assert answer.status_code == 400
    assert field in str(answer.body)


def test_the_download_has_every_line_with_its_time(api: Api, lease: Lease) -> None:
    answer = api.client.get(
        f"/api/v1/leases/{lease.pk}/logs/download", headers={"Authorization": f"Bearer {api.token}"}
    )
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["Content-Disposition"] == f'attachment; filename="{lease.pk}.log"'
    rows = answer.content.decode().splitlines()
    assert len(rows) == api.get(f"leases/{lease.pk}/logs").body["log"]["line_count"]
    assert [row.split(" ", 1)[1] for row in rows if "done" in row] == ["program  done"]


def test_an_event_stream_is_asked_of_the_event_process(api: Api, lease: Lease) -> None:
    answer = api.client.get(
        f"/api/v1/leases/{lease.pk}/logs?cursor=3",
        headers={"Authorization": f"Bearer {api.token}", "Accept": "text/event-stream"},
    )
    address = f"{settings.EVENTS_URL}/api/v1/events/logs/{lease.pk}?cursor=3"
    assert (answer.status_code, answer["Location"]) == (307, address)


def test_a_lease_without_a_log_has_an_empty_one(api: Api, sim: Simulation, kestrel: TenantContext) -> None:
    queued = sim.request_lease(kestrel, offering())
    body = api.get(f"leases/{queued.pk}/logs").body
    assert (body["items"], body["next_cursor"], body["exit_code"]) == ([], "0", None)


@pytest.mark.parametrize("path", ["logs", "logs/download"])
def test_another_tenants_log_does_not_exist(lease: Lease, path: str) -> None:
    other = Api(create_tenant("Other").token())
    assert other.get(f"leases/{lease.pk}/{path}").status_code == 404


def test_a_viewer_reads_logs(kestrel: TenantContext, lease: Lease) -> None:
    viewer = Api(kestrel.token(Role.VIEWER))
    assert viewer.get(f"leases/{lease.pk}/logs").status_code == 200
    without = Api(kestrel.token(scopes=("quotas:read",)))
    assert without.get(f"leases/{lease.pk}/logs").status_code == 403
