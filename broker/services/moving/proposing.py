"""Plans for the pools of a cluster. A plan is only rows until somebody accepts it."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from broker.domain.moves import PlanState
from broker.domain.placement.moving import Step
from broker.models import Cluster, Move, MovePlan
from broker.services.moving.choosing import Choice, choose, gain_of
from broker.services.moving.pools import Pool, pools_of
from broker.services.moving.records import enter, moves_of, turn_plan
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant

Place = tuple[str, int]
Drawn = dict[str, object]


@transaction.atomic
def ask_for(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Have a worker plan a cluster soon: a large fleet takes a second, which no page should wait for."""
    audit.record("plans.propose", actor=actor, now=now, subject_id=cluster.pk, subject_label=cluster.name)
    doorbell.ring("broker.plan_moves", cluster.pk, now=now)


def propose(cluster_id: str, *, now: datetime) -> list[MovePlan]:
    """Plan every pool of a cluster anew and return what is proposed; proposals nobody has accepted give way."""
    cluster = Cluster.objects.get(pk=cluster_id)
    found = [_keep(pool, now) for pool in pools_of(cluster, now=now)]
    return [plan for plan in found if plan]


def _keep(pool: Pool, now: datetime) -> MovePlan | None:
    """Write down what is worth moving in a pool, unless the same is proposed or a plan is being carried out."""
    before = {number: _drawn(pool, number) for number in range(len(pool.cards))}
    choice = choose(pool.fleet)
    with transaction.atomic():
        # Whoever plans the same cluster just now sees what we write, and we what they wrote.
        Cluster.objects.select_for_update(of=("self",), no_key=True).get(pk=pool.cluster.pk)
        return _settle(pool, choice, before, now)


def _settle(pool: Pool, choice: Choice, before: dict[int, list[list[int]]], now: datetime) -> MovePlan | None:
    open_plans = MovePlan.objects.open().filter(cluster=pool.cluster, gpu_model=pool.model)
    standing = open_plans.select_for_update(of=("self",)).first()
    if standing and standing.state != PlanState.PROPOSED:
        return None
    if standing and _same(standing, pool, choice.steps):
        return standing
    if standing:
        why = "another plan took its place" if choice.steps else "nothing would be won by it any longer"
        turn_plan(standing, PlanState.DECLINED, why=why, now=now, due_at=None)
    return _write(pool, choice, before, now) if choice.steps else None


def _same(plan: MovePlan, pool: Pool, steps: Iterable[Step]) -> bool:
    kept = [(each.lease_id, each.to_gpu_id, each.to_start) for each in moves_of(plan)]
    wanted = [
        (pool.held[step.allocation].lease_id, pool.cards[step.to_card].pk, step.to_start) for step in steps
    ]
    return kept == wanted


def _write(pool: Pool, choice: Choice, before: dict[int, list[list[int]]], now: datetime) -> MovePlan:
    plan = MovePlan.objects.create(
        cluster=pool.cluster,
        gpu_model_id=pool.model,
        reason=_reason(choice),
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


def _reason(choice: Choice) -> str:
    if choice.emptied == 1:
        return "One card holds so little that it finds room beside others; emptied, it can be sold whole."
    return f"{choice.emptied} cards hold so little that it finds room beside others; emptied, they can be sold whole."


def _cards(pool: Pool, choice: Choice, before: dict[int, list[list[int]]]) -> list[Drawn]:
    """Draw the cards concerned as they were and would be: first unit, units, and whether it is what moves."""
    concerned = sorted({card for step in choice.steps for card in (step.card, step.to_card)})
    leaves = {(step.card, step.start) for step in choice.steps}
    comes = {(step.to_card, step.to_start) for step in choice.steps}
    return [
        {
            "gpu": pool.cards[card].pk,
            "name": pool.name(card),
            "grid": pool.grid,
            "before": [[start, size, int((card, start) in leaves)] for start, size in before[card]],
            "after": [[start, size, int((card, start) in comes)] for start, size in _drawn(pool, card)],
        }
        for card in concerned
    ]


def _drawn(pool: Pool, card: int) -> list[list[int]]:
    table = pool.fleet.table
    on = sorted(pool.fleet.on[card].items())
    return [[start, table.profiles[piece.profile].memory] for start, piece in on]
