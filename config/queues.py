"""Queues of the workers by urgency: which task is in which, and its time limits.

A task of one queue never waits for messages of another where each has a worker of its own. Where one worker serves
several, it takes a message of each in turn, so that none starves.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TaskQueue:
    """Queue of tasks that are equally urgent.

    At the soft limit a task gets an exception, and ends in order; at the hard limit its process is killed.
    """

    name: str
    soft_limit_s: int
    hard_limit_s: int
    tasks: frozenset[str]


LIFECYCLE = TaskQueue(
    "lifecycle",
    soft_limit_s=30,
    hard_limit_s=35,
    tasks=frozenset(
        {
            "broker.check_lease_ends",
            "broker.free_abandoned_placements",
            "broker.reconcile_lease",
            "broker.reconcile_relocation_plan",
            "broker.reconcile_repartition",
            "broker.reconcile_spot_reclaim",
            "broker.reconcile_volume",
            "broker.release_waiting_leases",
            "broker.run_checkpoint",
            "broker.run_queue",
            "broker.run_schedules",
            "broker.sweep",  # it repeats what leases have lost: behind a month's close it would come too late
        }
    ),
)
MONEY = TaskQueue(
    "money",
    soft_limit_s=40,
    hard_limit_s=45,
    tasks=frozenset(
        {
            "billing.book_corrections",
            "billing.card_form",
            "billing.check_budgets",
            "billing.close_due",
            "billing.collect",
            "billing.collect_due",
            "billing.expire_approvals",
            "billing.post_and_seal_ledger",
            "billing.rate",
            "billing.refund",
            "billing.run_dunning",
            "billing.stop_budgets",
            "billing.stripe_event",
            "billing.top_up",
        }
    ),
)
DOCUMENTS = TaskQueue(
    "documents",
    soft_limit_s=40,
    hard_limit_s=45,
    tasks=frozenset({"billing.queue_lease_emails", "billing.send_due_emails", "billing.send_email"}),
)
MAINTENANCE = TaskQueue(
    "maintenance",
    soft_limit_s=45,
    hard_limit_s=50,
    tasks=frozenset(
        {
            "billing.check_integrity",
            "billing.reconcile_stripe",
            "billing.reconcile_stripe_day",
            "broker.check_image_prepull",
            "broker.delete_old_logs",
            "broker.examine_cluster",
            "broker.keep_telemetry_partitions",
            "broker.plan_relocations",
            "broker.plan_repartitions",
            "broker.probe_cluster",
            "broker.probe_clusters",
            "broker.refresh_statistics",
            "broker.remove_orphans",
            "broker.roll_up_samples",
            "broker.sample_simulated_gpus",
            "broker.sweep_all",
            "tenants.delete_expired_rows",
        }
    ),
)
QUEUES = (LIFECYCLE, MONEY, DOCUMENTS, MAINTENANCE)  # the most urgent first
QUEUE_BY_TASK = {task: queue for queue in QUEUES for task in queue.tasks}
VISIBILITY_TIMEOUT_S = 60  # above every hard limit: else a task that takes long runs twice at once


def route_task(name: str, *_: Any, **__: Any) -> dict[str, str]:
    """Return the queue of a task, for Celery; LookupError for one without a queue."""
    if name not in QUEUE_BY_TASK:
        raise LookupError(f"Task {name} has no queue: add it to one in config/queues.py.")
    return {"queue": QUEUE_BY_TASK[name].name}


def time_limits() -> dict[str, dict[str, int]]:
    """Return the time limits of every task, as Celery's annotations."""
    return {
        task: {"soft_time_limit": queue.soft_limit_s, "time_limit": queue.hard_limit_s}
        for task, queue in QUEUE_BY_TASK.items()
    }
