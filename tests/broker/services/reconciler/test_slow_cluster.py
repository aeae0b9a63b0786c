"""Observation time of a slow cluster."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from broker.domain.lifecycle.states import LeaseState as S
from broker.provisioners.base import Observation, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.inventory import cluster_provisioners
from tests.simulation import Simulation, create_gpus, create_tenant, offering, reload_lease, simulate, transitions_of

pytestmark = pytest.mark.django_db
SLOW = timedelta(seconds=7)


class SlowProvisioner(SimulatedProvisioner):
    """A provisioner that responds seven seconds late."""

    def __init__(self, sim: Simulation) -> None:
        super().__init__()
        self.sim, self.answered_at = sim, sim.now

    def ensure(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        self.sim.clock.at += SLOW
        self.answered_at = self.sim.now
        return super().ensure(order, now=self.sim.now)


def test_a_lease_is_active_from_the_response_of_its_cluster_not_the_request(monkeypatch: Any) -> None:
    with simulate() as sim:
        create_gpus(1)
        slow = SlowProvisioner(sim)
        monkeypatch.setattr(cluster_provisioners, "provisioner_of", lambda order: slow)
        lease = sim.request_lease(create_tenant("Kestrel"), offering())
        while reload_lease(lease).state != S.ACTIVE:
            sim.run(1)
        begun = next(step.at for step in transitions_of(lease) if step.after == S.ACTIVE)
        assert begun == reload_lease(lease).active_at == slow.answered_at.replace(microsecond=0)
        assert reload_lease(lease).ends_at == begun + timedelta(hours=1)
        assert reload_lease(lease).claimed_until is None
