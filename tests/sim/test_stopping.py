"""Random runs with volumes, stops and starts, and faults."""

import os
from itertools import pairwise
from typing import Any

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, SimulatedVolume, Transition, Volume
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import stop_and_start
from broker.services.reports import invariant_checks
from broker.services.volumes import volume_lifecycle, volume_mounts
from ports.clock import SettableClock
from tenants.models import Quota
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.sim.driver import Sim, live_and_rest, simulated
from tests.simulation import OPERATOR, run_task

SEEDS = range(1, 1 + int(os.environ.get("SIM_SEEDS", "2")))
STEPS = 500


class Stopping(Sim):
    """Random runs with volumes, stops and starts."""

    def __init__(self, seed: int, clock: SettableClock) -> None:
        super().__init__(seed, clock)
        for weight, act in (
            (16, self.ask_with_a_volume),
            (12, self.stop),
            (14, self.start),
            (2, self.delete),
        ):
            self.acts += [act] * weight

    def ask_with_a_volume(self) -> None:
        owner = self.homes[int(self.chance.uniform(0, 2))]
        with tenant_scope(owner.tenant.pk):
            there = list(volume_mounts.available_volumes(owner.project))
            if self.chance.below(0.1):  # whoever is turned away must leave nothing behind
                there = list(Volume.objects.filter(project=owner.project).order_by("id"))
            if there and self.chance.below(0.7):
                volume: Any = self.pick(there)  # type: ignore[arg-type]
            else:
                name = f"volume-{Volume.objects.count()}"
                volume = volume_lifecycle.create_volume(
                    project=owner.project, name=name, size_gib=10, actor=OPERATOR, now=self.clock.at
                )
        wanted = LeaseRequest(
            offering_id=self.offerings["1g.10gb"].pk,
            name=f"kept-{len(self.acknowledged)}",
            max_duration_s=int(self.chance.uniform(300, 3000)),
            volume=volume.pk,
        )
        with tenant_scope(owner.tenant.pk):
            lease = request_lease(wanted, project=owner.project, actor=owner.actor, now=self.clock.at)
        self.acknowledged.add(lease.pk)

    def likely(self, state: LeaseState) -> Lease | None:
        """Read a lease with a volume, or any lease."""
        with system_scope():
            kept = Lease.objects.filter(state=state, volume__isnull=False).order_by("id")
            fitting = list(kept.values_list("id", "tenant_id"))
        if not fitting or self.chance.below(0.2):
            return self.some_lease()
        lease_id, tenant_id = self.pick(fitting)  # type: ignore[misc,arg-type]
        with tenant_scope(tenant_id):
            return Lease.objects.select_related("offering", "project").get(pk=lease_id)

    def stop(self) -> None:
        if lease := self.likely(LeaseState.ACTIVE):
            with tenant_scope(lease.tenant_id):
                stop_and_start.stop_lease(lease, actor=OPERATOR, now=self.clock.at)

    def start(self) -> None:
        if lease := self.likely(LeaseState.STOPPED):
            with tenant_scope(lease.tenant_id):
                stop_and_start.start_lease(lease, actor=OPERATOR, now=self.clock.at)

    def delete(self) -> None:
        with system_scope():
            there = list(Volume.objects.existing().order_by("id"))
        if there:
            volume: Any = self.pick(there)  # type: ignore[arg-type]
            with tenant_scope(volume.tenant_id):
                volume_lifecycle.delete_volume(volume, actor=OPERATOR, now=self.clock.at)

    def sweep(self) -> None:
        super().sweep()
        for hint in volume_lifecycle.due_volumes(now=self.clock.at):
            run_task(*hint, now=self.clock.at)


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_a_stopped_lease_holds_and_costs_nothing_despite_faults(own_database: OwnDatabase, seed: int) -> None:
    with simulated(seed, Stopping) as sim:
        live_and_rest(sim, steps=STEPS)
        with system_scope():
            stops = Transition.objects.filter(after=LeaseState.STOPPED).count()
            starts = Transition.objects.filter(before=LeaseState.STOPPED, after=LeaseState.QUEUED).count()
        assert min(stops, starts) > 0, sim.did  # else the seed shows nothing
        _check_volumes()
        _check_durations()
        with staff_scope():
            assert [proof for proof in invariant_checks.check_invariants(now=sim.clock.at) if not proof.holds] == []


def _check_volumes() -> None:
    """Check that every volume is ready or deleted, as requested."""
    with system_scope():
        states = dict(Volume.objects.values_list("id", "state"))
    assert set(states.values()) <= {"ready", "deleted"}
    made = set(SimulatedVolume.objects.values_list("name", flat=True))
    assert not {name for name in made if states[name] == "deleted"}


def _check_durations() -> None:
    """Check durations of leases, and quotas against the transitions."""
    with system_scope():
        leases = list(Lease.objects.select_related("offering", "project"))
        steps = list(Transition.objects.order_by("lease_id", "seq"))
        quotas = list(Quota.objects.filter(kind="gpu_seconds", project__parent=None))
    active: dict[str, int] = {}
    for one, other in pairwise(steps):
        if one.lease_id == other.lease_id and one.after == LeaseState.ACTIVE:
            length = int((other.at - one.at).total_seconds())
            active[one.lease_id] = active.get(one.lease_id, 0) + length
    for lease in leases:
        assert active.get(lease.pk, 0) <= lease.max_duration_s
        assert lease.active_seconds <= active.get(lease.pk, 0)
    for quota in quotas:
        below = [lease for lease in leases if lease.tenant_id == quota.tenant_id]
        units = {lease.pk: lease.quantity * lease.offering.milli_units for lease in below}
        assert quota.used == sum(active.get(lease_id, 0) * each for lease_id, each in units.items())
