"""Thousands of random steps with faults at every boundary: the invariants hold, and calm brings rest."""

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest

from broker.domain.states import EndReason
from broker.models import Lease
from broker.services import capacity, reconcile
from broker.services.leases import ending
from broker.services.leases.placing import PATIENCE
from ports import clock, doorbell, ids
from tenants.services.walls import as_sweep, as_tenant
from tests.database import OwnDatabase
from tests.sim.driver import Sim
from tests.sim.faults import FaultyCluster
from tests.sim.invariants import at_rest, orphans
from tests.world import NOW

STEPS = 400
A_WHILE = timedelta(seconds=300)  # longer than the slowest pull takes without faults
SEEDS = range(1, 1 + int(os.environ.get("SIM_SEEDS", "5")))  # SIM_SEEDS=500 for a night


@pytest.fixture
def sim(
    own_database: OwnDatabase, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sim]:
    seed: int = request.param
    with clock.standing_at(NOW) as standing, ids.counted(f"sim {seed}"):
        sim = Sim(seed, standing)
        cluster = FaultyCluster(sim.faults, sim.meanwhile)
        monkeypatch.setattr(reconcile, "provisioner", lambda: cluster)
        with doorbell.heard_by(sim.hear):
            yield sim


@pytest.mark.parametrize("sim", SEEDS, indirect=True)
def test_whatever_fails_the_invariants_hold_and_calm_brings_rest(sim: Sim) -> None:
    for _ in range(STEPS):
        sim.step()
        sim.watch.check()
    assert sim.did["Crash"] + sum(sim.faults.hit.values()) > 20, sim.faults.rate
    with as_sweep():
        assert sim.acknowledged <= set(Lease.objects.values_list("id", flat=True)), "acknowledged, then lost"

    sim.mend()
    sim.run_calm(600)
    assert orphans() == []
    with as_sweep():
        settled = Lease.objects.filter(state__in=["active", "released", "queued"])
        overdue = Lease.objects.filter(at__lt=sim.clock.at - A_WHILE).exclude(pk__in=settled)
        unsettled = [f"{lease.pk} is {lease.state}" for lease in overdue]
        queue = Lease.objects.filter(state="queued").order_by("created_at", "id")
        queued = list(queue.values_list("id", "tenant_id"))
    assert unsettled == []
    for lease_id, tenant_id in queued:
        with as_tenant(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            assert lease.waits_for
            if sim.clock.at - lease.created_at > PATIENCE:
                break  # whoever is younger waits behind it
            fits = capacity.preview(lease.offering, quantity=lease.quantity, same_node=lease.same_node)
        assert fits is None, f"{lease} waits for what is free: {lease.waits_for}"

    with as_sweep():
        left = list(Lease.objects.live().values_list("id", "tenant_id"))
    for lease_id, tenant_id in left:
        with as_tenant(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            ending.release(lease, reason=EndReason.BY_TENANT, now=sim.clock.at)
    sim.run_calm(300)
    assert at_rest() == []
