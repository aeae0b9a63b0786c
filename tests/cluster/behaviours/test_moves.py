"""Relocation of running leases, with killed workers and lost nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from billing.services.demo.seed import seed_prices
from billing.services.rating import lease_rating
from billing.services.reports import conservation
from broker.domain.lifecycle.relocation_states import FINAL_PLAN_STATES, RelocationPlanState
from broker.models import Allocation, Gpu, Lease, Relocation, RelocationPlan, Volume
from broker.services.reconciler import lease_reconciler, observation_outcomes
from broker.services.relocation import plan_decisions, plan_proposals, plan_reconciler
from tenants.services.rls import staff_scope
from tests.broker.services.relocation.scattered_leases import assert_invariants, plan_log, relocations_of
from tests.cluster.behaviours.world import Published, World
from tests.simulation import OPERATOR, TenantContext, held_allocations, reload_lease, state_path, transitions_of

HALF, LASTS_S, NOTICE_S = "3g.40gb", 7200, 20
BEFORE = "requested queued provisioning active active"
MOVED = "stopping stopped queued provisioning active"
DONE = "proposed accepted 1:noticed running 1:moving 1:done done"


@dataclass
class Scene:
    """Two leases on a GPU each, and a plan to join them."""

    world: World
    owner: TenantContext
    began: datetime
    beside: Lease
    lease: Lease
    volume: Volume | None
    plan: RelocationPlan

    @property
    def move(self) -> Relocation:
        (move,) = relocations_of(self.plan)
        return move

    def is_over(self) -> bool:
        self.plan.refresh_from_db()
        return RelocationPlanState(self.plan.state) in FINAL_PLAN_STATES

    def goes_on(self) -> None:
        """Let the notice pass, so that the relocation begins."""
        self.world.wait(NOTICE_S + 1)

    def ends(self) -> None:
        self.world.until_true(self.is_over, "that the plan is over")
        self.world.record(plan_log(self.plan))
        assert_invariants(self.world.sim)

    def is_at(self, gpu_id: str, start: int) -> bool:
        (place,) = held_allocations(self.lease)
        return (place.gpu_id, place.placement.lower, place.is_relocation) == (gpu_id, start, False)

    def is_moved(self) -> bool:
        return self.is_at(self.move.to_gpu_id, self.move.to_start)

    def is_home(self) -> bool:
        return self.is_at(self.move.from_gpu_id, self.move.from_start)

    def balances(self) -> None:
        """End all leases, and check that every GPU second is accounted for."""
        world = self.world
        world.end(*(each for each in (self.beside, self.lease) if reload_lease(each).state != "released"))
        lease_rating.rate_all_leases(now=world.sim.now)
        kept = conservation.check_conservation(first=self.began, last=world.sim.now)
        assert kept.active_unit_seconds > 0
        assert (kept.charged_minus_active, kept.active_without_place) == (0, 0)
        assert kept.unexplained == 0
        steps = transitions_of(self.lease)
        active = sum((b.at - a.at).total_seconds() for a, b in pairwise(steps) if a.after == "active")
        lease = reload_lease(self.lease)
        assert lease.active_at
        assert lease.ended_at
        assert active == lease.active_seconds + int((lease.ended_at - lease.active_at).total_seconds())
        assert taken() == 0


def taken(**which: Any) -> int:
    """Count the unreleased allocations of all leases."""
    with staff_scope():
        return Allocation.objects.filter(released_at=None, **which).count()


def set_up(world: World, settings: Any, program: str = "runs", *, keeps: bool = True) -> Scene:
    settings.RELOCATION_NOTICE_S = NOTICE_S
    site = world.add_cluster(Published(1), Published(1), driver="dra")
    began = world.sim.now
    seed_prices.publish_list_prices(since=began.replace(hour=0, minute=0), actor=OPERATOR, now=began)
    kestrel, half = world.add_tenant(), world.offering(HALF)
    beside, filler = (world.run(kestrel, half, max_duration_s=LASTS_S) for _ in range(2))
    volume = world.sim.create_volume(kestrel, "kept") if keeps else None
    wanted = {"volume": volume.pk} if volume else {}
    lease = world.run(kestrel, half, program, relocatable=True, max_duration_s=LASTS_S, **wanted)
    assert held_allocations(beside)[0].gpu_id == held_allocations(filler)[0].gpu_id != held_allocations(lease)[0].gpu_id
    world.end(filler)
    (plan,) = plan_proposals.propose_plans(site.cluster.pk, now=world.sim.now)
    plan_decisions.accept_plan(plan, why="a whole GPU is asked for", actor=OPERATOR, now=world.sim.now)
    scene = Scene(world, kestrel, began, beside, lease, volume, plan)
    assert (scene.move.lease_id, scene.move.to_gpu_id) == (lease.pk, held_allocations(beside)[0].gpu_id)
    return scene


@pytest.mark.deep
def test_a_relocated_lease_keeps_its_volume_and_is_charged_once_per_second(world: World, settings: Any) -> None:
    scene = set_up(world, settings)
    assert scene.volume
    kept, ends_at = world.storage_identity(scene.volume), reload_lease(scene.lease).ends_at
    assert ends_at
    scene.goes_on()
    scene.ends()
    assert (plan_log(scene.plan), state_path(scene.lease)) == (DONE, f"{BEFORE} {MOVED}")
    assert scene.is_moved()
    assert world.storage_identity(scene.volume) == kept
    assert world.count_leases() == 2
    steps = {step.after: step.at for step in transitions_of(scene.lease)}
    assert reload_lease(scene.lease).ends_at == ends_at + (steps["active"] - steps["stopping"])
    world.wait(60)
    scene.balances()


class Killed(BaseException):
    """Death of the worker, which no exception handler catches."""


class Deaths:
    """Kills the worker before the first and after the second pass of a step.

    Or only after it: of two places in a row that is the same moment, and five deaths in a row end a lease.
    """

    def __init__(self) -> None:
        self.seen: dict[object, int] = {}
        self.number = 0

    def at(self, place: Callable[..., Any], key: Callable[..., object], *, before: bool) -> Callable[..., Any]:
        def dies(*args: Any, **named: Any) -> Any:
            which = place.__name__, key(*args)
            self.seen[which] = times = self.seen.get(which, 0 if before else 1) + 1
            if times == 1:
                self.die()
            answer = place(*args, **named)
            if times == 2:
                self.die()
            return answer

        return dies

    def die(self) -> None:
        self.number += 1
        raise Killed


@pytest.mark.deep
def test_a_relocation_completes_although_the_worker_dies_around_every_step(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of lease and plan at which a worker may die."""
    scene, deaths = set_up(world, settings), Deaths()

    def of_lease(lease: Lease, *rest: object) -> object:
        found = tuple(each.seen for each in rest if isinstance(each, observation_outcomes.Observation))
        return lease.pk, lease.state, found

    def of_plan(plan: RelocationPlan, *_: object) -> object:
        return plan.state, scene.move.state

    for where, name, key, before in (
        (lease_reconciler, "_call_provisioner", of_lease, True),
        (observation_outcomes, "apply_observation", of_lease, True),
        (lease_reconciler, "_act_and_apply", of_lease, False),
        (plan_reconciler, "_begin_next", of_plan, True),
        (plan_reconciler, "_check_progress", of_plan, True),
        (plan_reconciler, "_schedule_check", of_plan, True),
    ):
        monkeypatch.setattr(where, name, deaths.at(getattr(where, name), key, before=before))
    over = False
    for _ in world.attempts():
        if over := scene.is_over():
            break
        try:
            world.wait(12)  # so long each claim lasts, and longer than it takes the sweep to come
        except Killed:
            continue
    assert over, plan_log(scene.plan)
    monkeypatch.undo()
    assert deaths.number >= 12
    assert (plan_log(scene.plan), state_path(scene.lease)) == (DONE, f"{BEFORE} {MOVED}")
    assert scene.is_moved()
    assert world.count_leases() == 2
    scene.balances()


@pytest.mark.parametrize("state", ["stopping", "provisioning"])
@pytest.mark.deep
def test_cancelling_a_plan_reverts_relocations_in_progress(state: str, world: World, settings: Any) -> None:
    scene = set_up(world, settings, "slow" if state == "provisioning" else "takes its time to go")
    scene.goes_on()
    world.until_true(lambda: reload_lease(scene.lease).state == state, f"that it is {state}")
    scene.plan.refresh_from_db()
    plan_decisions.cancel_plan(scene.plan, why="not tonight", actor=OPERATOR, now=world.sim.now)
    scene.ends()
    assert scene.is_home()
    world.until(scene.lease, "active")
    scene.balances()


@pytest.mark.deep
def test_a_relocation_to_a_lost_node_returns_the_lease_to_its_old_gpu(world: World, settings: Any) -> None:
    settings.NODE_UNREACHABLE_TIMEOUT_S = 30
    scene = set_up(world, settings, "slow", keeps=False)
    first = scene.lease.generation
    host = Gpu.objects.values_list("node__name", flat=True).get(pk=scene.move.to_gpu_id)
    scene.goes_on()
    world.until_true(
        lambda: (reload_lease(scene.lease).state, reload_lease(scene.lease).generation) == ("provisioning", first + 1),
        "that it starts at its next place",
    )
    world.lose_node(host)
    world.until(scene.lease, "active")
    assert reload_lease(scene.lease).generation == first + 2
    assert scene.is_home()
    scene.ends()
    assert taken(leaving_since__isnull=False) == 1, "its next place, until the node proves that it is empty"
    world.wait(45)
    world.until(scene.beside, "released")
    world.recover_node(host)
    world.until_true(lambda: not taken(leaving_since__isnull=False), "that its next place is free")
    scene.balances()
