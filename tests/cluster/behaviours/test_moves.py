"""Leases that are moved to another card while they run: nothing is lost, held twice or charged twice on the way."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from billing.services import conservation, rating
from billing.services.showcase import prices
from broker.domain.moves import PLAN_OVER, PlanState
from broker.models import Allocation, Gpu, Lease, Move, MovePlan, Volume
from broker.services import outcomes, reconcile
from broker.services.moving import deciding, proposing, stepping
from tenants.services.walls import as_staff
from tests.broker.services.movers import moves, no_contradiction, story
from tests.cluster.behaviours.world import Published, World
from tests.world import OPERATOR, Home, fresh, held, ledger, path

HALF, LASTS_S, NOTICE_S = "3g.40gb", 7200, 20
BEFORE = "requested queued provisioning active active"
MOVED = "stopping stopped queued provisioning active"
DONE = "proposed accepted 1:noticed running 1:moving 1:done done"


@dataclass
class Scene:
    """Two leases, each on half a card of its own, and a plan that brings one beside the other."""

    world: World
    owner: Home
    began: datetime
    beside: Lease
    lease: Lease
    volume: Volume | None
    plan: MovePlan

    @property
    def move(self) -> Move:
        (move,) = moves(self.plan)
        return move

    def is_over(self) -> bool:
        self.plan.refresh_from_db()
        return PlanState(self.plan.state) in PLAN_OVER

    def goes_on(self) -> None:
        """Let the notice pass, so that the move begins."""
        self.world.wait(NOTICE_S + 1)

    def ends(self) -> None:
        self.world.until_true(self.is_over, "that the plan is over")
        self.world.note(story(self.plan))
        no_contradiction(self.world.life)

    def is_at(self, gpu_id: str, start: int) -> bool:
        (place,) = held(self.lease)
        return (place.gpu_id, place.placement.lower, place.for_move) == (gpu_id, start, False)

    def is_moved(self) -> bool:
        return self.is_at(self.move.to_gpu_id, self.move.to_start)

    def is_home(self) -> bool:
        return self.is_at(self.move.from_gpu_id, self.move.from_start)

    def balances(self) -> None:
        """End all, and let the books say for each second of each card whether it was charged, and to whom."""
        world = self.world
        world.end(*(each for each in (self.beside, self.lease) if fresh(each).state != "released"))
        rating.rate(now=world.life.now)
        kept = conservation.over(first=self.began, last=world.life.now)
        assert kept.active_unit_seconds > 0
        assert (kept.charged_minus_active, kept.active_without_place) == (0, 0)
        assert kept.cards("unexplained") == 0
        steps = ledger(self.lease)
        active = sum((b.at - a.at).total_seconds() for a, b in pairwise(steps) if a.after == "active")
        lease = fresh(self.lease)
        assert lease.active_at
        assert lease.ended_at
        assert active == lease.spent_s + int((lease.ended_at - lease.active_at).total_seconds())
        assert taken() == 0


def taken(**which: Any) -> int:
    """Count the places that are not given back, whosever they are."""
    with as_staff():
        return Allocation.objects.filter(released_at=None, **which).count()


def set_up(world: World, settings: Any, program: str = "runs", *, keeps: bool = True) -> Scene:
    settings.MOVE_NOTICE_S = NOTICE_S
    site = world.stand(Published(1), Published(1), driver="dra")
    began = world.life.now
    prices.publish_all(since=began.replace(hour=0, minute=0), actor=OPERATOR, now=began)
    kestrel, half = world.home(), world.offering(HALF)
    beside, filler = (world.run(kestrel, half, max_duration_s=LASTS_S) for _ in range(2))
    volume = world.life.volume(kestrel, "kept") if keeps else None
    wanted = {"volume": volume.pk} if volume else {}
    lease = world.run(kestrel, half, program, movable=True, max_duration_s=LASTS_S, **wanted)
    assert held(beside)[0].gpu_id == held(filler)[0].gpu_id != held(lease)[0].gpu_id
    world.end(filler)
    (plan,) = proposing.propose(site.cluster.pk, now=world.life.now)
    deciding.accept(plan, why="a whole card is asked for", actor=OPERATOR, now=world.life.now)
    scene = Scene(world, kestrel, began, beside, lease, volume, plan)
    assert (scene.move.lease_id, scene.move.to_gpu_id) == (lease.pk, held(beside)[0].gpu_id)
    return scene


def test_a_moved_lease_keeps_its_volume_and_is_charged_for_each_second_once(
    world: World, settings: Any
) -> None:
    scene = set_up(world, settings)
    assert scene.volume
    kept, ends_at = world.kept(scene.volume), fresh(scene.lease).ends_at
    assert ends_at
    scene.goes_on()
    scene.ends()
    assert (story(scene.plan), path(scene.lease)) == (DONE, f"{BEFORE} {MOVED}")
    assert scene.is_moved()
    assert world.kept(scene.volume) == kept
    assert world.there() == 2
    steps = {step.after: step.at for step in ledger(scene.lease)}
    assert fresh(scene.lease).ends_at == ends_at + (steps["active"] - steps["stopping"])
    world.wait(60)
    scene.balances()


class Killed(BaseException):
    """The worker is no more: nothing of it may go on, whatever it catches."""


class Deaths:
    """Kills whoever comes to a place for the first time before it, and for the second time right after it.

    Or only after it: of two places in a row that is the same moment, and five deaths in a row end a lease.
    """

    def __init__(self) -> None:
        self.seen: dict[object, int] = {}
        self.number = 0

    def at(
        self, place: Callable[..., Any], key: Callable[..., object], *, before: bool
    ) -> Callable[..., Any]:
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


def test_a_worker_killed_before_and_after_every_step_of_a_move_harms_nobody(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of the lease and of its plan: before it begins, before it is written, and once it is written."""
    scene, deaths = set_up(world, settings), Deaths()

    def of_lease(lease: Lease, *rest: object) -> object:
        told = tuple(each.seen for each in rest if isinstance(each, outcomes.Observation))
        return lease.pk, lease.state, told

    def of_plan(plan: MovePlan, *_: object) -> object:
        return plan.state, scene.move.state

    for where, name, key, before in (
        (reconcile, "_act", of_lease, True),
        (outcomes, "apply", of_lease, True),
        (reconcile, "_work", of_lease, False),
        (stepping, "_next", of_plan, True),
        (stepping, "_look", of_plan, True),
        (stepping, "_again", of_plan, True),
    ):
        monkeypatch.setattr(where, name, deaths.at(getattr(where, name), key, before=before))
    over = False
    for _ in world.patience():
        if over := scene.is_over():
            break
        try:
            world.wait(12)  # so long each claim lasts, and longer than it takes the sweep to come
        except Killed:
            continue
    assert over, story(scene.plan)
    monkeypatch.undo()
    assert deaths.number >= 12
    assert (story(scene.plan), path(scene.lease)) == (DONE, f"{BEFORE} {MOVED}")
    assert scene.is_moved()
    assert world.there() == 2
    scene.balances()


@pytest.mark.parametrize("state", ["stopping", "provisioning"])
def test_a_plan_that_is_called_off_brings_back_what_is_under_way(
    state: str, world: World, settings: Any
) -> None:
    scene = set_up(world, settings, "slow" if state == "provisioning" else "takes its time to go")
    scene.goes_on()
    world.until_true(lambda: fresh(scene.lease).state == state, f"that it is {state}")
    scene.plan.refresh_from_db()
    deciding.cancel(scene.plan, why="not tonight", actor=OPERATOR, now=world.life.now)
    scene.ends()
    assert scene.is_home()
    world.until(scene.lease, "active")
    scene.balances()


def test_a_lease_whose_next_node_is_lost_on_the_way_starts_again_where_it_was(
    world: World, settings: Any
) -> None:
    scene = set_up(world, settings, "slow", keeps=False)
    first = scene.lease.generation
    host = Gpu.objects.values_list("node__name", flat=True).get(pk=scene.move.to_gpu_id)
    scene.goes_on()
    world.until_true(
        lambda: (fresh(scene.lease).state, fresh(scene.lease).generation) == ("provisioning", first + 1),
        "that it starts at its next place",
    )
    world.lose(host)
    world.until(scene.lease, "active")
    assert fresh(scene.lease).generation == first + 2
    assert scene.is_home()
    scene.ends()
    assert taken(leaving_since__isnull=False) == 1, "its next place, until the node proves that it is empty"
    world.wait(45)
    world.until(scene.beside, "released")
    world.find(host)
    world.until_true(lambda: not taken(leaving_since__isnull=False), "that its next place is free")
    scene.balances()
