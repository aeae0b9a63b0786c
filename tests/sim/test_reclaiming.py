"""Random runs with spot leases that are reclaimed, and faults."""

import os
from datetime import timedelta
from typing import Any

import pytest

from broker.models import Lease, PromisedSlot, ReclaimNotice, SpotReclaim, Transition
from broker.services.leases.lifecycle import stop_and_start
from broker.services.reports import invariant_checks
from ports.clock import SettableClock
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.sim.driver import Sim, live_and_rest, simulated
from tests.simulation import OPERATOR

SEEDS = range(1, 1 + int(os.environ.get("SIM_SEEDS", "3")))
STEPS = 500
MIN_RUNTIME_S, NOTICE_S = 5, 5


class Reclaiming(Sim):
    """Random runs in which half of the leases are spot."""

    profiles = ("whole-gpu", "3g.40gb", "3g.40gb", "1g.10gb")
    lasts = (600, 6000)
    spot = True

    def __init__(self, seed: int, clock: SettableClock) -> None:
        super().__init__(seed, clock)
        for weight, act in ((25, self.time_passes), (30, self.ask), (1, self.stop)):
            self.acts += [act] * weight

    def stop(self) -> None:
        if lease := self.some_lease():
            with tenant_scope(lease.tenant_id):
                stop_and_start.stop_lease(lease, actor=OPERATOR, now=self.clock.at)


def notices() -> list[ReclaimNotice]:
    with system_scope():
        return list(ReclaimNotice.objects.order_by("noticed_at", "id"))


def assert_terms_kept() -> None:
    """Check that no lease got notice too early, was preempted too early, or was charged after the end of its notice."""
    for notice in notices():
        with system_scope():
            steps = list(Transition.objects.filter(lease_id=notice.lease_id).order_by("seq"))
        given = [step for step in steps if step.cause.startswith("notice given at ")]
        assert given
        runs = [step.at for step in steps if step.before != "active" and step.after == "active"]
        began = max(at for at in runs if at <= notice.noticed_at)
        assert notice.noticed_at - began >= timedelta(seconds=MIN_RUNTIME_S)
        assert notice.reclaim_at - notice.noticed_at >= timedelta(seconds=NOTICE_S)
        ends = [step for step in steps if step.reason == "preempted" and step.before == "active"]
        if notice.state == "preempted":
            assert [step for step in ends if step.at <= notice.reclaim_at and step.at >= began]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.deep
def test_the_invariants_hold_despite_faults_during_reclaims(
    own_database: OwnDatabase, settings: Any, seed: int
) -> None:
    settings.SPOT_NOTICE_S, settings.SPOT_MIN_RUNTIME_S = NOTICE_S, MIN_RUNTIME_S
    with simulated(seed, Reclaiming) as sim:
        live_and_rest(sim, steps=STEPS)
        assert_terms_kept()
        assert notices()
        assert not SpotReclaim.objects.open().exists()
        assert not PromisedSlot.objects.exists()
        with system_scope():
            assert not ReclaimNotice.objects.filter(state="given").exists()
            assert not Lease.objects.exclude(reclaim_at=None).exists()
        with staff_scope():
            wrong = [
                (each.name, each.examples)
                for each in invariant_checks.check_invariants(now=sim.clock.at)
                if not each.holds
            ]
        assert wrong == []
