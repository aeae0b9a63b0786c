"""The metrics page of a lease: charts that move, gaps that are shown, and what was measured on what."""

from datetime import timedelta

import pytest

from broker.services.telemetry import lease_metrics, sample_rollups, simulated_samples
from tenants.services.rls import tenant_scope
from tests.simulation import create_tenant, offering, soft_offering
from tests.web.portal.signed_in_user import PortalSession

pytestmark = pytest.mark.django_db


def sample_for(portal: PortalSession, minutes: int) -> None:
    """Let simulated GPUs report for some minutes."""
    for _ in range(minutes):
        portal.sim.run(60)
        simulated_samples.sample_simulated_gpus(now=portal.sim.now)
    sample_rollups.roll_up_samples(now=portal.sim.now)


def test_a_lease_shows_activity_memory_power_and_temperature(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), name="fold", max_duration_s=8 * 3600)
    sample_for(portal, 10)
    page = portal.read(f"/leases/{lease.pk}/metrics/")
    for part in (
        "GPU activity own slice",
        "Memory own slice, of 10 GB",
        "Power whole GPU",
        "Temperature whole GPU",
        "kWh",
    ):
        assert part in page
    assert "other leases may use as well" not in page


def test_before_the_first_value_it_says_when_values_come(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=8 * 3600)
    assert "within half a minute" in portal.read(f"/leases/{lease.pk}/metrics/")


def test_a_gap_is_named_and_interrupts_the_line(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=8 * 3600)
    sample_for(portal, 5)
    portal.sim.run(30 * 60)  # nothing was stored meanwhile; of a pause the last ten minutes are made up for
    sample_for(portal, 3)
    page = portal.read(f"/leases/{lease.pk}/metrics/")
    assert "No data for 20 min" in page or "No data for 21 min" in page
    assert "charged by its state" in page


def test_values_of_a_shared_gpu_are_labelled_as_the_whole_gpu(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, soft_offering(), max_duration_s=8 * 3600)
    sample_for(portal, 3)
    page = portal.read(f"/leases/{lease.pk}/metrics/")
    assert "GPU activity whole GPU" in page
    assert "other leases may use as well" in page


def test_another_tenants_lease_has_no_metrics_page(portal: PortalSession) -> None:
    theirs = portal.sim.create_lease(create_tenant("Tern"), offering("1g.10gb"), max_duration_s=3600)
    assert portal.client.get(f"/leases/{theirs.pk}/metrics/").status_code == 404


def test_two_neighbours_on_a_gpu_have_values_of_their_own(portal: PortalSession) -> None:
    one, two = (
        portal.sim.create_lease(portal.owner, offering("1g.10gb"), name=name, max_duration_s=8 * 3600) for name in "ab"
    )
    sample_for(portal, 5)
    now = portal.sim.now
    with tenant_scope(one.tenant_id):
        series = [
            lease_metrics.read_lease_metrics(lease, since=now - timedelta(minutes=4), until=now).points
            for lease in (one, two)
        ]
    used = [[point.memory_used_mib for point in points] for points in series]
    assert used[0] != used[1]
    assert None not in used[0]
    assert len(used[0]) == 24
