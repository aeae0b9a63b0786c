"""Start, end and retries of leases over the API."""

from datetime import timedelta

import pytest

from broker.services.leases.end_notices.end_checks import check_lease_ends
from broker.services.reconciler import lease_reconciler
from tests.simulation import Simulation, TenantContext
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted

HOUR = 3600


def test_the_terms_of_a_lease_are_returned(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    start = sim.now + timedelta(hours=2)
    terms = {
        "starts_at": start.isoformat(),
        "extend_by_s": HOUR,
        "extend_limit_s": 9 * HOUR,
        "notify_on_end": True,
        "retries": 2,
        "attempt_limit_s": 600,
    }
    made = api.post("leases", wanted(kestrel, workload="batch", command="train", max_duration_s=HOUR, **terms))
    assert made.status_code == 202
    spec = made.body["spec"]
    assert {name: spec[name] for name in terms if name != "starts_at"} | {"starts_at": start.isoformat()} == terms
    assert spec["starts_at"].startswith(f"{start:%Y-%m-%dT%H:%M}")
    assert made.body["status"]["pending_reason"] == f"Starts at {start:%Y-%m-%d %H:%M} UTC, as requested."
    assert (made.body["status"]["attempt"], spec["array"]) == (1, None)


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"starts_at": "2020-01-01T00:00:00Z"}, "starts_at"),
        ({"extend_by_s": 10, "extend_limit_s": 9 * HOUR}, "extend_by_s"),
        ({"retries": 11}, "retries"),
        ({"retries": 1, "workload": "ssh"}, "retries"),
        ({"attempt_limit_s": 1, "workload": "batch"}, "attempt_limit_s"),
    ],
)
def test_impossible_terms_are_refused(api: Api, kestrel: TenantContext, terms: dict[str, object], field: str) -> None:
    refused = api.post("leases", wanted(kestrel, **terms))
    assert refused.status_code in (400, 422)
    assert refused.body["errors"][0]["field"] == field


def test_automatic_extension_is_changed_and_its_notices_are_listed(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    made = api.post("leases", wanted(kestrel, max_duration_s=HOUR))
    path = f"leases/{made.body['id']}"
    sim.run(60)
    changed = api.patch(path, {"extend_by_s": HOUR, "extend_limit_s": 3 * HOUR}, If_Match="*")
    assert (changed.status_code, changed.body["spec"]["extend_limit_s"]) == (200, 3 * HOUR)
    sim.run(50 * 60)
    check_lease_ends(now=sim.now)
    assert api.get(path).body["spec"]["max_duration_s"] == 2 * HOUR
    assert [each["kind"] for each in api.get(f"{path}/notices").body["items"]] == ["extended"]
    refused = api.patch(path, {"extend_limit_s": HOUR}, If_Match="*")
    assert refused.body["errors"][0]["field"] == "extend_limit_s"


def test_the_runs_of_a_command_are_listed(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    body = wanted(kestrel, workload="batch", image="fails/train", command="train", retries=1)
    path = f"leases/{api.post('leases', body).body['id']}"
    for _ in range(20):
        sim.run(5)
        lease_reconciler.check_active_leases(now=sim.now)
        sim.sweep()
    runs = api.get(f"{path}/attempts").body["items"]
    assert [(each["attempt"], each["exit_code"], each["counted"]) for each in runs] == [(1, 1, True), (2, 1, True)]
    assert [bool(each["retry_at"]) for each in runs] == [True, False]
    assert api.get(path).body["status"]["attempt"] == 2
