"""Plans for the pools of a cluster. A plan is only rows until somebody accepts it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from django.db import connection, transaction

from broker.domain.moves import PlanState
from broker.models import Cluster, Lease, Move, MovePlan
from broker.services.moving.choosing import Choice, choose, gain_of
from broker.services.moving.holding import why_not
from broker.services.moving.pools import Pool, pools_of
from broker.services.moving.records import enter, moves_of, turn_plan
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep, as_tenant

Drawn = dict[str, object]
Hint = tuple[str, str, str]
MOVES, GOES_THERE = 1, 2  # what is drawn: a slice that moves, and the place of who waits
LONGEST_REASON = 300
WINDOW_S, SWEEP_S = 6 * 3600, 240  # of the beat's `sweep-all`: one in each window finds its beginning
# A lease that ended beside one that may be moved left a card that could be whole again. What a person declined is not
# proposed at the next such occasion, but with all others of its window.
WORTH_A_LOOK = """
SELECT DISTINCT c.id
  FROM broker_lease l JOIN broker_allocation a ON a.lease_id = l.id AND a.released_at IS NULL
  JOIN broker_gpu g ON g.id = a.gpu_id JOIN broker_node n ON n.id = g.node_id
  JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE l.state = 'active' AND l.movable AND (%(anyway)s OR EXISTS (
         SELECT FROM broker_lease q JOIN broker_offering o ON o.id = q.offering_id
          WHERE q.state = 'queued' AND q.waits_for <> '' AND o.gpu_model_id = g.gpu_model_id AND o.region = c.region)
   OR EXISTS (SELECT FROM broker_allocation r WHERE r.gpu_id = g.id AND r.released_at > %(lately)s)
      AND NOT EXISTS (
         SELECT FROM broker_moveentry e JOIN broker_moveplan p ON p.id = e.plan_id
          WHERE p.cluster_id = c.id AND p.gpu_model_id = g.gpu_model_id
            AND e.state = 'declined' AND e.actor_label <> '' AND e.at > %(declined)s))
 ORDER BY c.id
"""


@transaction.atomic
def ask_for(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Have a worker plan a cluster soon: a large fleet takes a second, which no page should wait for."""
    audit.record("plans.propose", actor=actor, now=now, subject_id=cluster.pk, subject_label=cluster.name)
    doorbell.ring("broker.plan_moves", cluster.pk, now=now)


def propose(cluster_id: str, *, now: datetime) -> list[MovePlan]:
    """Plan every pool of a cluster anew and return what is proposed; proposals nobody has accepted give way."""
    cluster = Cluster.objects.get(pk=cluster_id)
    pools = groupby(pools_of(cluster, now=now), key=attrgetter("model"))
    found = [_keep(list(alike), now) for _, alike in pools]
    return [plan for plan in found if plan]


def _keep(pools: Sequence[Pool], now: datetime) -> MovePlan | None:
    """Write down what is most worth moving among one model's pools, unless it is proposed or one is under way."""
    drawn = [{number: _drawn(pool, number) for number in range(len(pool.cards))} for pool in pools]
    choices = [choose(pool, now=now) for pool in pools]
    pool, choice, before = max(zip(pools, choices, drawn, strict=True), key=lambda each: _urgency(each[1]))
    with transaction.atomic():
        # Whoever plans the same cluster just now sees what we write, and we what they wrote.
        Cluster.objects.select_for_update(of=("self",), no_key=True).get(pk=pool.cluster.pk)
        return _settle(pool, choice, before, now)


def _urgency(choice: Choice) -> tuple[bool, bool, int]:
    """Rank what could be done: room for who waits before cards made whole, then what wins most."""
    return choice.room is not None, bool(choice.steps), choice.gain_milli


def _settle(pool: Pool, choice: Choice, before: dict[int, list[list[int]]], now: datetime) -> MovePlan | None:
    open_plans = MovePlan.objects.open().filter(cluster=pool.cluster, gpu_model=pool.model)
    standing = open_plans.select_for_update(of=("self",)).first()
    if standing and standing.state != PlanState.PROPOSED:
        return None
    if standing and (_same(standing, pool, choice) or _serves_as_well(standing, choice, now)):
        return standing
    if standing:
        why = "another plan took its place" if choice.steps else "nothing would be won by it any longer"
        turn_plan(standing, PlanState.DECLINED, why=why, now=now, due_at=None)
    return _write(pool, choice, before, now) if choice.steps else None


def _same(plan: MovePlan, pool: Pool, choice: Choice) -> bool:
    """Tell whether a plan makes the same moves, and for the same lease if for one."""
    if plan.room_for != (choice.room.lease_id if choice.room else ""):
        return False
    kept = [(each.lease_id, each.to_gpu_id, each.to_start) for each in moves_of(plan)]
    wanted = [
        (pool.held[step.allocation].lease_id, pool.cards[step.to_card].pk, step.to_start)
        for step in choice.steps
    ]
    return kept == wanted


def _serves_as_well(plan: MovePlan, choice: Choice, now: datetime) -> bool:
    """Tell whether a plan makes room for the same lease and can still be carried out: who looks at it keeps it."""
    if choice.room is None or plan.room_for != choice.room.lease_id:
        return False
    return all(_can_be_made(move, now) for move in moves_of(plan))


def _can_be_made(move: Move, now: datetime) -> bool:
    with as_tenant(move.tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=move.lease_id)
        return not why_not(lease, move, now=now)


def _write(pool: Pool, choice: Choice, before: dict[int, list[list[int]]], now: datetime) -> MovePlan:
    plan = MovePlan.objects.create(
        cluster=pool.cluster,
        gpu_model_id=pool.model,
        reason=choice.reason[:LONGEST_REASON],
        cost_s=choice.cost_s,
        gain_milli=choice.gain_milli,
        cards=_cards(pool, choice, before),
        state_at=now,
        proposed_at=now,
    )
    enter(plan.pk, PlanState.PROPOSED, why=plan.reason, now=now)
    for n, step in enumerate(choice.steps, 1):
        held = pool.held[step.allocation]
        with as_tenant(held.tenant_id):
            Move.objects.create(
                tenant_id=held.tenant_id,
                plan=plan,
                n=n,
                lease_id=held.lease_id,
                profile=held.profile,
                size=held.placement.upper - held.placement.lower,
                from_gpu=pool.cards[step.card],
                from_start=step.start,
                to_gpu=pool.cards[step.to_card],
                to_start=step.to_start,
                cost_s=step.cost,
                gain_milli=gain_of(step),
                state_at=now,
            )
    return plan


def _cards(pool: Pool, choice: Choice, before: dict[int, list[list[int]]]) -> list[Drawn]:
    """Draw the cards concerned as they were and would be: first unit, units, and what it is there."""
    leaves = {(step.card, step.start): MOVES for step in choice.steps}
    comes = {(step.to_card, step.to_start): MOVES for step in choice.steps}
    seats = choice.room.seats if choice.room else ()
    comes |= {(card, start): GOES_THERE for card, start, _ in seats}
    concerned = sorted({card for card, _ in (*leaves, *comes)})
    given = {card for card, _, _ in seats}
    return [
        {
            "gpu": pool.cards[card].pk,
            "name": pool.name(card),
            "grid": pool.grid,
            "before": [[start, size, leaves.get((card, start), 0)] for start, size in before[card]],
            "after": [[start, size, comes.get((card, start), 0)] for start, size in _drawn(pool, card)],
            **({"for": choice.room.lease_id} if choice.room and card in given else {}),
        }
        for card in concerned
    ]


def _drawn(pool: Pool, card: int) -> list[list[int]]:
    table = pool.fleet.table
    on = sorted(pool.fleet.on[card].items())
    return [[start, table.profiles[piece.profile].memory] for start, piece in on]


def clusters_to_plan(*, now: datetime) -> list[Hint]:
    """Return the clusters in which leases may be moved and somebody waits whom that could help, or a lease has ended
    beside them lately; four times a day all of them.

    A plan is only proposed: who accepts it is a person.
    """
    when: dict[str, bool | datetime] = {
        "anyway": now.timestamp() % WINDOW_S < SWEEP_S,
        "lately": now - timedelta(seconds=2 * SWEEP_S),  # a look may come late
        "declined": now - timedelta(seconds=WINDOW_S),
    }
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(WORTH_A_LOOK, when)
        return [("broker.plan_moves", cluster, "") for (cluster,) in cursor.fetchall()]
