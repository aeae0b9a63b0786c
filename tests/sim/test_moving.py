"""Lives in which operators move leases, with the same faults: both places are held until one of them is left."""

import os
from typing import Any

import pytest
from django.db import transaction

from broker.domain.moves import CANCELLABLE
from broker.domain.states import Isolation
from broker.models import Allocation, Cluster, Gpu, Move, MovePlan
from broker.services import proofs
from broker.services.catalogue import spec_of
from broker.services.leases import allowing
from broker.services.leases.request import Wanted, request
from broker.services.moving import deciding, stepping
from ports.clock import SetClock
from tenants.services.walls import as_staff, as_sweep, as_tenant
from tests.database import OwnDatabase
from tests.sim.driver import Sim, live_and_rest, simulated
from tests.world import MODEL, OPERATOR, home, offering, work

SEEDS = range(1, 1 + int(os.environ.get("SIM_SEEDS", "3")))
STEPS = 500


class Moving(Sim):
    """The same world, where leases may be moved: any of them, to wherever there is room."""

    profiles = ("1g.10gb", "1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")
    lasts = (1000, 9000)
    moves = True

    def __init__(self, seed: int, clock: SetClock) -> None:
        super().__init__(seed, clock)
        acts = ((24, self.plan), (20, self.time_passes), (1, self.call_off), (1, self.change_their_mind))
        for weight, act in acts:
            self.acts += [act] * weight

    def plan(self) -> None:
        """Have a lease or two moved, unless another plan is open: more than a planner would think of."""
        moves = [move for move in (self.some_move() for _ in range(2)) if move]
        if moves and not MovePlan.objects.open().exists():
            self.accept(moves)

    @transaction.atomic
    def accept(self, moves: list[Move]) -> None:
        now = self.clock.at
        plan = MovePlan.objects.create(
            cluster=Cluster.objects.get(),
            gpu_model_id=MODEL,
            reason="sim",
            cost_s=30,
            gain_milli=0,
            cards=[],
            state_at=now,
            proposed_at=now,
        )
        for n, move in enumerate(moves, 1):
            move.plan, move.n, move.state_at = plan, n, now
            with as_tenant(move.tenant_id):
                move.save()
        deciding.accept(plan, why="sim", actor=OPERATOR, now=now)

    def some_move(self) -> Move | None:
        """Pick a lease and a card in service with room for it."""
        with as_sweep():
            places = Allocation.objects.filter(released_at=None).order_by("id")
            whole = places.filter(lease__state="active", lease__quantity=1, lease__movable=True)
            mine = list(whole.filter(lease__conditions={}))
            taken = [(each.gpu_id, each.placement) for each in places]
            serving = list(Gpu.objects.sellable().order_by("uuid"))
        if not mine or len(serving) < 2:
            return None
        held: Any = self.pick(mine)  # type: ignore[arg-type]
        profile = spec_of(MODEL).profile(held.profile, Isolation(held.isolation))
        card: Any = self.pick([each for each in serving if each.pk != held.gpu_id])
        for place in profile.placements:
            if not any(gpu == card.pk and r.lower < place.end and place.start < r.upper for gpu, r in taken):
                return Move(
                    tenant_id=held.tenant_id,
                    lease_id=held.lease_id,
                    profile=held.profile,
                    size=place.size,
                    from_gpu_id=held.gpu_id,
                    from_start=held.placement.lower,
                    to_gpu=card,
                    to_start=place.start,
                    cost_s=30,
                    gain_milli=0,
                )
        return None

    def move_in_the_calm(self) -> Move:
        """Let somebody new come when nothing fails any more, and move their lease."""
        swallow = home("Swallow")
        wanted = Wanted(offering_id=offering("1g.10gb").pk, name="calm", max_duration_s=9000, movable=True)
        with as_tenant(swallow.tenant.pk):
            request(wanted, project=swallow.project, actor=swallow.actor, now=self.clock.at)
        self.run_calm(60)
        move = self.some_move()
        assert move
        self.accept([move])
        self.run_calm(60)
        with as_tenant(move.tenant_id):
            move.refresh_from_db()
        return move

    def call_off(self) -> None:
        found = MovePlan.objects.filter(state__in=CANCELLABLE).first()
        if found and self.chance.below(0.3):
            deciding.cancel(found, why="sim", actor=OPERATOR, now=self.clock.at)

    def change_their_mind(self) -> None:
        if (lease := self.some_lease()) and not lease.stays:
            with as_tenant(lease.tenant_id):
                allowing.allow_moves(lease, not lease.movable, actor=OPERATOR, now=self.clock.at)

    def sweep(self) -> None:
        super().sweep()
        for hint in stepping.due(now=self.clock.at):
            work(*hint, now=self.clock.at)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_while_leases_are_moved_the_invariants_hold(
    own_database: OwnDatabase, settings: Any, seed: int
) -> None:
    settings.MOVE_NOTICE_S = 2
    with simulated(seed, Moving) as sim:
        live_and_rest(sim, steps=STEPS)
        last = sim.move_in_the_calm()
        with as_staff():
            became = set(Move.objects.values_list("state", flat=True))
            under_way = list(MovePlan.objects.at_work())
            wrong = [(each.name, each.examples) for each in proofs.check(now=sim.clock.at) if not each.holds]
    assert (under_way, wrong) == ([], [])
    assert (last.state, last.why) == ("done", "active at its new place")
    assert became <= {"planned", "done", "undone", "failed"}
