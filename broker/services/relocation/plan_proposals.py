"""Relocation plans for a cluster's pools; nothing changes until one is accepted."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from django.db import transaction

from broker.domain.lifecycle.relocation_states import RelocationPlanState
from broker.models import Cluster, Lease, Relocation, RelocationPlan
from broker.services.leases.relocation_records import append_log_entry, relocations_of, set_plan_state
from broker.services.relocation.relocation_choice import RelocationChoice, choose_relocations, gain_milli_of
from broker.services.relocation.relocation_pools import RelocationPool, load_relocation_pools
from broker.services.relocation.target_slots import relocation_obstacle
from ports import outbox
from ports.postgres.sql_statements import query_rows
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.rls import system_scope, tenant_scope

GpuDrawing = dict[str, object]
DRAWN_RELOCATED, DRAWN_QUEUED = 1, 2  # kinds drawn: a relocated slice, and the slot of a queued lease
MAX_REASON_LENGTH = 300
WINDOW_S, SWEEP_S = (6 * 3600, 240)  # interval of the beat's `sweep-all`: exactly one falls at the start of each window


@transaction.atomic
def request_planning(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Queue relocation planning for a cluster.

    A large fleet takes a second, which no page should wait for.
    """
    audit.record("relocation_plans.propose", cluster, actor=actor, now=now)
    outbox.enqueue("broker.plan_relocations", cluster.pk, now=now)


def propose_plans(cluster_id: str, *, now: datetime) -> list[RelocationPlan]:
    """Plan every pool of a cluster again and return the proposals.

    Proposals that nobody has accepted are replaced.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    pools = groupby(load_relocation_pools(cluster, now=now), key=attrgetter("model"))
    found = [_store_best_plan(list(alike), now) for _, alike in pools]
    return [plan for plan in found if plan]


def _store_best_plan(pools: Sequence[RelocationPool], now: datetime) -> RelocationPlan | None:
    """Store the best plan among one model's pools.

    Nothing is stored if it is proposed already, or while another is under way.
    """
    drawn = [{number: _draw_slices(pool, number) for number in range(len(pool.gpus))} for pool in pools]
    choices = [choose_relocations(pool, now=now) for pool in pools]
    pool, choice, before = max(zip(pools, choices, drawn, strict=True), key=lambda each: _urgency(each[1]))
    with transaction.atomic():
        # Concurrent planners of one cluster see each other's plans.
        Cluster.objects.select_for_update(of=("self",), no_key=True).get(pk=pool.cluster.pk)
        return _replace_proposal(pool, choice, before, now)


def _urgency(choice: RelocationChoice) -> tuple[bool, bool, int]:
    """Return a rank: room for waiting leases first, then the gain."""
    return choice.freed_slots is not None, bool(choice.steps), choice.gain_milli


def _replace_proposal(
    pool: RelocationPool, choice: RelocationChoice, before: dict[int, list[list[int]]], now: datetime
) -> RelocationPlan | None:
    open_plans = RelocationPlan.objects.open().filter(cluster=pool.cluster, gpu_model=pool.model)
    existing = open_plans.select_for_update(of=("self",)).first()
    if existing and existing.state != RelocationPlanState.PROPOSED:
        return None
    if existing and (_is_same_plan(existing, pool, choice) or _still_serves_lease(existing, choice, now)):
        return existing
    if existing:
        why = "replaced by another plan" if choice.steps else "it no longer has a benefit"
        set_plan_state(existing, RelocationPlanState.DECLINED, why=why, now=now, due_at=None)
    return _create_plan(pool, choice, before, now) if choice.steps else None


def _is_same_plan(plan: RelocationPlan, pool: RelocationPool, choice: RelocationChoice) -> bool:
    """Return whether a plan has the same relocations, for the same lease."""
    if plan.room_for != (choice.freed_slots.lease_id if choice.freed_slots else ""):
        return False
    unchanged = [(each.lease_id, each.to_gpu_id, each.to_start) for each in relocations_of(plan)]
    steps, allocations = choice.steps, pool.allocations
    wanted = [(allocations[step.allocation].lease_id, pool.gpus[step.to_gpu].pk, step.to_start) for step in steps]
    return unchanged == wanted


def _still_serves_lease(plan: RelocationPlan, choice: RelocationChoice, now: datetime) -> bool:
    """Return whether a plan serves the same lease and can still be carried out.

    Such a plan is kept, for an operator who is reading it.
    """
    if choice.freed_slots is None or plan.room_for != choice.freed_slots.lease_id:
        return False
    return all(_is_still_possible(move, now) for move in relocations_of(plan))


def _is_still_possible(move: Relocation, now: datetime) -> bool:
    with tenant_scope(move.tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=move.lease_id)
        return not relocation_obstacle(lease, move, now=now)


def _create_plan(
    pool: RelocationPool, choice: RelocationChoice, before: dict[int, list[list[int]]], now: datetime
) -> RelocationPlan:
    plan = RelocationPlan.objects.create(
        cluster=pool.cluster,
        gpu_model_id=pool.model,
        reason=choice.reason[:MAX_REASON_LENGTH],
        cost_s=choice.cost_s,
        gain_milli=choice.gain_milli,
        gpus=_draw_gpus(pool, choice, before),
        state_at=now,
        proposed_at=now,
    )
    append_log_entry(plan.pk, RelocationPlanState.PROPOSED, why=plan.reason, now=now)
    for n, step in enumerate(choice.steps, 1):
        held = pool.allocations[step.allocation]
        with tenant_scope(held.tenant_id):
            Relocation.objects.create(
                tenant_id=held.tenant_id,
                plan=plan,
                n=n,
                lease_id=held.lease_id,
                profile=held.profile,
                size=held.placement.upper - held.placement.lower,
                from_gpu=pool.gpus[step.gpu],
                from_start=step.start,
                to_gpu=pool.gpus[step.to_gpu],
                to_start=step.to_start,
                cost_s=step.cost,
                gain_milli=gain_milli_of(step),
                state_at=now,
            )
    return plan


def _draw_gpus(pool: RelocationPool, choice: RelocationChoice, before: dict[int, list[list[int]]]) -> list[GpuDrawing]:
    """Return the GPUs before and after the plan, as drawn: start, size and kind."""
    leaves = {(step.gpu, step.start): DRAWN_RELOCATED for step in choice.steps}
    comes = {(step.to_gpu, step.to_start): DRAWN_RELOCATED for step in choice.steps}
    slots = choice.freed_slots.slots if choice.freed_slots else ()
    comes |= {(gpu, start): DRAWN_QUEUED for gpu, start, _ in slots}
    concerned = sorted({gpu for gpu, _ in (*leaves, *comes)})
    given = {gpu for gpu, _, _ in slots}
    return [
        {
            "gpu": pool.gpus[gpu].pk,
            "name": pool.name(gpu),
            "grid": pool.grid,
            "before": [[start, size, leaves.get((gpu, start), 0)] for start, size in before[gpu]],
            "after": [[start, size, comes.get((gpu, start), 0)] for start, size in _draw_slices(pool, gpu)],
            **({"for": choice.freed_slots.lease_id} if choice.freed_slots and gpu in given else {}),
        }
        for gpu in concerned
    ]


def _draw_slices(pool: RelocationPool, gpu: int) -> list[list[int]]:
    table = pool.fleet.table
    on = sorted(pool.fleet.slices[gpu].items())
    return [[start, table.profiles[piece.profile].memory] for start, piece in on]


def clusters_to_plan(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return a planning message for each cluster where a plan may gain something.

    There a relocatable lease is active and another lease waits in vain, or one beside it has ended lately; four
    times a day any cluster with a relocatable lease. A plan is only proposed; an operator accepts it.
    """
    when: dict[str, bool | datetime] = {
        "anyway": now.timestamp() % WINDOW_S < SWEEP_S,
        "lately": now - timedelta(seconds=2 * SWEEP_S),  # a sweep may be late
        "declined": now - timedelta(seconds=WINDOW_S),
    }
    with system_scope():
        clusters = query_rows("broker/relocation/clusters_to_plan", when)
    return [("broker.plan_relocations", cluster, "") for (cluster,) in clusters]
