"""Metrics of a lease over the API: times, steps, unknown values and bad input."""

import pytest

from broker.services.telemetry import sample_rollups, simulated_samples
from tests.simulation import Simulation, TenantContext, offering, soft_offering
from tests.web.api.broker.conftest import Api


def sample_minutes(sim: Simulation, minutes: int) -> None:
    for _ in range(minutes):
        sim.run(60)
        simulated_samples.sample_simulated_gpus(now=sim.now)
    sample_rollups.roll_up_samples(now=sim.now)


def test_points_of_the_last_hour_are_returned(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=8 * 3600)
    sample_minutes(sim, 5)
    found = api.get(f"leases/{lease.pk}/metrics").body
    assert (found["step_s"], found["measured_on"]) == (10, "slice")
    assert len(found["points"]) > 20
    point = found["points"][-1]
    assert 0 <= point["engine_active"] <= 1000
    assert point["power_dw"] > 0
    minutes = api.get(f"leases/{lease.pk}/metrics?step=60").body
    assert minutes["step_s"] == 60
    assert 3 <= len(minutes["points"]) <= 5


def test_a_shared_gpu_is_measured_as_a_whole(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    lease = sim.create_lease(kestrel, soft_offering(), max_duration_s=8 * 3600)
    assert api.get(f"leases/{lease.pk}/metrics").body["measured_on"] == "none"
    sample_minutes(sim, 2)
    assert api.get(f"leases/{lease.pk}/metrics").body["measured_on"] == "gpu"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("step=7", "step"),
        ("step=10&from=2026-11-01T00:00:00Z&to=2026-11-20T00:00:00Z", "step"),
        ("from=2026-11-20T00:00:00Z&to=2026-11-20T00:00:00Z", "from"),
        ("from=yesterday", "from"),
        ("to=", "to"),
        ("since=2026-11-20", "since"),
    ],
)
def test_bad_times_and_steps_are_refused(
    api: Api, kestrel: TenantContext, sim: Simulation, query: str, field: str
) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=8 * 3600)
    refused = api.get(f"leases/{lease.pk}/metrics?{query}")
    assert refused.status_code == 400
    assert field in str(refused.body)
