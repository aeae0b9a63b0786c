"""Reconciler of repartitions: checks one and performs the next step it needs.

Level-triggered, like the reconciler of leases: messages may be lost or doubled. Loads and claims the
row, acts with no transaction open, and applies the result if the row is unchanged. No lease is ever
evicted: a repartition waits until the last lease has ended.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from broker.domain.repartition.mig_configs import layout_alias, layout_name, slices_offered
from broker.domain.repartition.repartition_steps import (
    RENAME_PAUSE,
    UNRELIABLE_INVENTORY_STEPS,
    RepartitionDecision,
    RepartitionProgress,
    RepartitionStep,
    TargetLayout,
    decide_next_step,
)
from broker.models import Allocation, Gpu, Lease, Repartition
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.node_partitioner import NodePartitioner
from broker.services.repartition import layout_rows
from broker.services.repartition.node_partitioners import machine_of, partitioner_of
from broker.services.repartition.repartition_records import MAX_REASON_LENGTH, set_repartition_step
from ports import outbox
from tenants.services.rls import staff_scope

CLAIM = timedelta(seconds=30)
RECHECK_AFTER, RECHECK_LEASES_AFTER = timedelta(seconds=5), timedelta(seconds=15)
BATCH = 100
S = RepartitionStep


def reconcile_repartition(change_id: str, *, now: datetime) -> None:
    """Perform the next step of a repartition. Idempotent; may be called at any time."""
    change = _claim(change_id, now)
    partitioner = partitioner_of(change.node) if change else None
    if change is None or partitioner is None:
        return
    try:
        decision = _act(change, partitioner, now)
    except ClusterUnreachable as error:
        decision = RepartitionDecision(S(change.step), f"the cluster does not respond: {error}")
    _apply_decision(change, decision, now)


def _claim(change_id: str, now: datetime) -> Repartition | None:
    """Claim the repartition; return None if another worker has it or nothing is due."""
    change = Repartition.objects.under_way().select_related("node__cluster").filter(pk=change_id).first()
    if change is None:
        return None
    free = Repartition.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=now), pk=change.pk, seq=change.seq)
    return change if free.update(claimed_until=now + CLAIM, checks=F("checks") + 1) else None


def _act(change: Repartition, partitioner: NodePartitioner, now: datetime) -> RepartitionDecision:
    """Observe the node and instruct it; no transaction is open."""
    machine = machine_of(change.node)
    if change.step == S.CLOSING:
        partitioner.taint(machine, on=True)
        partitioner.prepare(machine, change.layouts, now=now)  # it loads the layout while the last lease is awaited
        return RepartitionDecision(S.DRAINING, "no new leases are placed on it")
    if change.step in (S.REOPENING, S.CANCELLING):
        partitioner.taint(machine, on=False)
        return RepartitionDecision(
            *(S.DONE, "available again") if change.step == S.REOPENING else (S.CANCELLED, "cancelled")
        )
    held = _count_placements(change)  # before the node is observed: nothing can be placed while its GPUs are closed
    observed = partitioner.observe(machine, now=now)
    decision = decide_next_step(_progress_of(change, held, now), observed, target_layout_of(change))
    if decision.taint:
        partitioner.taint(machine, on=True)
    return (
        _instruct_node(change, partitioner, decision, observed.version, now) if decision.config_to_apply else decision
    )


def _instruct_node(
    change: Repartition, partitioner: NodePartitioner, decision: RepartitionDecision, version: str, now: datetime
) -> RepartitionDecision:
    machine = machine_of(change.node)
    if wait := partitioner.prepare(machine, change.layouts, now=now):
        return RepartitionDecision(
            S(change.step), f"waiting for the node to read the layout, another {wait.total_seconds():.0f} s"
        )
    if not partitioner.apply_config(machine, decision.config_to_apply, version=version, now=now):
        return RepartitionDecision(S(change.step), "the node changed while it was read")
    return decision


def target_layout_of(change: Repartition) -> TargetLayout:
    name = layout_name(change.layouts)
    return TargetLayout(name, layout_alias(name), slices_offered(change.layouts.values()))


def _progress_of(change: Repartition, held: int, now: datetime) -> RepartitionProgress:
    return RepartitionProgress(S(change.step), now - change.step_at, held, change.attempts, change.checks > 0)


def _count_placements(change: Repartition) -> int:
    with staff_scope():
        return Allocation.objects.filter(gpu__node_id=change.node_id, released_at=None).count()


@transaction.atomic
def _apply_decision(change: Repartition, decision: RepartitionDecision, now: datetime) -> None:
    if decision.step == change.step:
        _schedule_check(change, decision, now)
        return
    if not set_repartition_step(change, decision.step, why=decision.reason, now=now):
        return  # another worker was faster; the observation is outdated
    if change.step == S.DONE:
        layout_rows.store_node_layout(change.node_id, change.layouts)
    if change.is_over:
        _enqueue_queue_runs(change, now)
    else:
        outbox.enqueue("broker.reconcile_repartition", change.pk, now=now)


def _schedule_check(change: Repartition, decision: RepartitionDecision, now: datetime) -> None:
    after = RECHECK_LEASES_AFTER if change.step == S.DRAINING else RECHECK_AFTER
    after = RENAME_PAUSE if decision.config_to_apply else after
    Repartition.objects.filter(pk=change.pk, seq=change.seq).update(
        why=decision.reason[:MAX_REASON_LENGTH], due_at=now + after, claimed_until=None
    )


def _enqueue_queue_runs(change: Repartition, now: datetime) -> None:
    """Enqueue a run of the queues of the node's pools."""
    region = change.node.cluster.region
    for model in Gpu.objects.filter(node_id=change.node_id).values_list("gpu_model", flat=True).distinct():
        outbox.enqueue("broker.run_queue", f"{model}|{region}", now=now)


def is_node_repartitioning(lease: Lease) -> bool:
    """Return whether a node of the lease is being repartitioned.

    Its report of its GPUs is worth nothing meanwhile.
    """
    places = lease.allocations.filter(generation=lease.generation, released_at=None)
    gpus = places.values("gpu__node")
    return Repartition.objects.filter(
        node__in=gpus, step__in=[each.value for each in UNRELIABLE_INVENTORY_STEPS]
    ).exists()


def due_repartitions(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return a message for every repartition that is due."""
    idle = Q(claimed_until=None) | Q(claimed_until__lt=now)
    rows = Repartition.objects.under_way().filter(idle, due_at__lte=now).order_by("due_at", "id")
    return [("broker.reconcile_repartition", pk, "") for pk in rows.values_list("id", flat=True)[:BATCH]]
