"""Lives in which leases keep volumes, are stopped and started, and volumes come and go, with the same faults."""

import os
from itertools import pairwise
from typing import Any

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease, SimulatedVolume, Transition, Volume
from broker.services import proofs
from broker.services.leases import stopping
from broker.services.leases.request import Wanted, request
from broker.services.volumes import keeping, mounting
from ports.clock import SetClock
from tenants.models import Quota
from tenants.services.walls import as_staff, as_sweep, as_tenant
from tests.database import OwnDatabase
from tests.sim.driver import Sim, live_and_rest, simulated
from tests.world import OPERATOR, work

SEEDS = range(1, 1 + int(os.environ.get("SIM_SEEDS", "2")))
STEPS = 500


class Stopping(Sim):
    """The same world, where people come back to what they left."""

    def __init__(self, seed: int, clock: SetClock) -> None:
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
        with as_tenant(owner.tenant.pk):
            there = list(mounting.free(owner.project))
            if self.chance.below(0.1):  # whoever is turned away must leave nothing behind
                there = list(Volume.objects.filter(project=owner.project).order_by("id"))
            if there and self.chance.below(0.7):
                volume: Any = self.pick(there)  # type: ignore[arg-type]
            else:
                name = f"volume-{Volume.objects.count()}"
                volume = keeping.create(
                    project=owner.project, name=name, size_gib=10, actor=OPERATOR, now=self.clock.at
                )
        wanted = Wanted(
            offering_id=self.offerings["1g.10gb"].pk,
            name=f"kept-{len(self.acknowledged)}",
            max_duration_s=int(self.chance.uniform(300, 3000)),
            volume=volume.pk,
        )
        with as_tenant(owner.tenant.pk):
            lease = request(wanted, project=owner.project, actor=owner.actor, now=self.clock.at)
        self.acknowledged.add(lease.pk)

    def likely(self, state: LeaseState) -> Lease | None:
        """Read a lease with a volume that is in a state, or now and then any lease, whatever it is at."""
        with as_sweep():
            kept = Lease.objects.filter(state=state, volume__isnull=False).order_by("id")
            fitting = list(kept.values_list("id", "tenant_id"))
        if not fitting or self.chance.below(0.2):
            return self.some_lease()
        lease_id, tenant_id = self.pick(fitting)  # type: ignore[misc,arg-type]
        with as_tenant(tenant_id):
            return Lease.objects.select_related("offering", "project").get(pk=lease_id)

    def stop(self) -> None:
        if lease := self.likely(LeaseState.ACTIVE):
            with as_tenant(lease.tenant_id):
                stopping.stop(lease, actor=OPERATOR, now=self.clock.at)

    def start(self) -> None:
        if lease := self.likely(LeaseState.STOPPED):
            with as_tenant(lease.tenant_id):
                stopping.start(lease, actor=OPERATOR, now=self.clock.at)

    def delete(self) -> None:
        with as_sweep():
            there = list(Volume.objects.there().order_by("id"))
        if there:
            volume: Any = self.pick(there)  # type: ignore[arg-type]
            with as_tenant(volume.tenant_id):
                keeping.delete(volume, actor=OPERATOR, now=self.clock.at)

    def sweep(self) -> None:
        super().sweep()
        for hint in keeping.due(now=self.clock.at):
            work(*hint, now=self.clock.at)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_nothing_is_held_or_charged_between_stop_and_start(
    own_database: OwnDatabase, seed: int
) -> None:
    with simulated(seed, Stopping) as sim:
        live_and_rest(sim, steps=STEPS)
        with as_sweep():
            stops = Transition.objects.filter(after=LeaseState.STOPPED).count()
            starts = Transition.objects.filter(before=LeaseState.STOPPED, after=LeaseState.QUEUED).count()
        assert min(stops, starts) > 0, sim.did  # else the seed shows nothing
        _volumes_are_where_the_books_say()
        _time_adds_up()
        with as_staff():
            assert [proof for proof in proofs.check(now=sim.clock.at) if not proof.holds] == []


def _volumes_are_where_the_books_say() -> None:
    """After the calm every volume is ready or gone, and none is there that nobody asked for."""
    with as_sweep():
        states = dict(Volume.objects.values_list("id", "state"))
    assert set(states.values()) <= {"ready", "deleted"}
    made = set(SimulatedVolume.objects.values_list("name", flat=True))
    assert not {name for name in made if states[name] == "deleted"}


def _time_adds_up() -> None:
    """No lease is active for longer than it asked for, and quotas count the seconds of the ledger, no more."""
    with as_sweep():
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
        assert lease.spent_s <= active.get(lease.pk, 0)
    for quota in quotas:
        below = [lease for lease in leases if lease.tenant_id == quota.tenant_id]
        units = {lease.pk: lease.quantity * lease.offering.milli_units for lease in below}
        assert quota.used == sum(active.get(lease_id, 0) * each for lease_id, each in units.items())
