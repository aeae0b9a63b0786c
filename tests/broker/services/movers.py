"""Leases that lie apart though one card would do, for tests of how they are moved together."""

from broker.domain.moves import PlanState
from broker.models import Cluster, Gpu, Lease, Move, MoveEntry, MovePlan
from broker.services import proofs
from broker.services.moving import deciding, proposing
from tenants.services.walls import as_staff
from tests.world import OPERATOR, Home, Life, fresh, held, offering

NOTICE_S = 900


def apart(life: Life, one: Home, other: Home, **wanted: object) -> tuple[Lease, Lease]:
    """Let two have a small slice each on a card of its own, as leases that ended around them leave it."""
    first = life.lease(one, offering("1g.10gb"), max_duration_s=7200, **wanted)
    fillers = [life.lease(one, offering("1g.10gb")) for _ in range(6)]
    second = life.lease(other, offering("1g.10gb"), max_duration_s=7200, **wanted)
    for filler in fillers:
        life.release(filler)
    life.run(30)
    places = {held(lease)[0].gpu_id for lease in (first, second)}
    assert len(places) == 2, "they lie on one card already"
    return fresh(first), fresh(second)


def proposed(life: Life) -> MovePlan:
    (plan,) = proposing.propose(Cluster.objects.get().pk, now=life.now)
    assert plan.state == PlanState.PROPOSED
    return plan


def accepted(life: Life) -> MovePlan:
    plan = proposed(life)
    deciding.accept(plan, why="whole cards are asked for", actor=OPERATOR, now=life.now)
    plan.refresh_from_db()
    return plan


def moves(plan: MovePlan) -> list[Move]:
    with as_staff():
        return list(Move.objects.filter(plan=plan).order_by("n"))


def story(plan: MovePlan) -> str:
    """Write a plan's ledger: its own states, and those of its moves with their number."""
    entries = MoveEntry.objects.filter(plan=plan).order_by("seq").values_list("n", "state")
    return " ".join(state if n is None else f"{n}:{state}" for n, state in entries)


def card_of(lease: Lease) -> Gpu:
    (place,) = [each for each in held(lease) if not each.for_move]
    return place.gpu


def no_contradiction(life: Life) -> None:
    with as_staff():
        found = [(each.name, each.examples) for each in proofs.check(now=life.now) if not each.holds]
    assert found == []
