"""Celery tasks: names, limits and settings."""

import ast
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import current_app

from broker import tasks
from broker.models import Cluster, RelocationPlan
from broker.services.reconciler import lease_reconciler, observation_outcomes
from broker.services.relocation import plan_decisions
from config import queues
from ports import outbox
from tests.broker.services.relocation.scattered_leases import NOTICE_S, scatter_leases
from tests.simulation import OPERATOR, Simulation, create_gpus, create_tenant, offering, reload_lease

ROOT = Path(__file__).resolve().parents[2]
APPS = ("ports", "tenants", "broker", "billing", "config")


def trees() -> list[tuple[Path, ast.Module]]:
    files = [file for app in APPS for file in (ROOT / app).rglob("*.py") if "migrations" not in file.parts]
    return [(file, ast.parse(file.read_text())) for file in files]


def enqueued_names() -> set[str]:
    """Return the literal task names that code enqueues."""
    names = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            first: list[ast.expr] = []
            if isinstance(node, ast.Tuple):
                first = node.elts[:1]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ENQUEUING:
                first = node.args[:1]
            names |= {
                each.value
                for each in first
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and NAME.fullmatch(each.value)
            }
    return names


ENQUEUING = {"enqueue", "enqueue_for_each", "send"}
NAME = re.compile(r"(?:tenants|broker|billing)\.[a-z_]+")
HANDED_ON = {
    "broker.reconcile_lease",
    "broker.run_queue",
    "broker.reconcile_relocation_plan",
    "broker.reconcile_repartition",
    "broker.reconcile_volume",
}  # as tuples


@pytest.mark.deep
def test_every_enqueued_task_name_is_registered() -> None:
    current_app.loader.import_default_modules()
    assert enqueued_names() >= HANDED_ON
    assert enqueued_names() <= set(current_app.tasks)


def test_every_scheduled_task_name_is_registered(settings: Any) -> None:
    current_app.loader.import_default_modules()
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= set(current_app.tasks)


@pytest.mark.deep
def test_a_task_has_at_most_ten_lines() -> None:
    for file, tree in trees():
        if file.name == "tasks.py":
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    assert node.end_lineno
                    assert node.end_lineno - node.lineno + 1 <= 10, f"{file}: {node.name}"


def test_the_celery_settings_prevent_message_loss() -> None:
    conf = current_app.conf  # what a worker goes by: a misspelt name among our settings would not get there
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost) == (True, True)
    assert conf.worker_prefetch_multiplier == 1
    assert (conf.result_backend, conf.task_ignore_result) == (None, True)
    assert (conf.task_serializer, list(conf.accept_content)) == ("json", ["json"])
    assert conf.broker_transport_options == {
        "visibility_timeout": 60,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 5,
    }


@pytest.mark.deep
def test_every_task_has_the_time_limits_of_its_queue_and_is_acknowledged_late() -> None:
    current_app.loader.import_default_modules()
    visibility_timeout_s = current_app.conf.broker_transport_options["visibility_timeout"]
    own = [task for name, task in current_app.tasks.items() if not name.startswith(("celery.", "tests."))]
    assert len(own) >= len(enqueued_names())
    for task in own:
        queue = queues.QUEUE_BY_TASK[task.name]
        assert (task.soft_time_limit, task.time_limit) == (queue.soft_limit_s, queue.hard_limit_s), task.name
        assert task.soft_time_limit < task.time_limit < visibility_timeout_s, task.name  # else it runs twice
        assert (task.acks_late, task.reject_on_worker_lost) == (True, True), task.name


def test_scheduled_sweeps_cover_lost_messages_within_their_limits(settings: Any) -> None:
    every = {entry["task"]: timedelta(seconds=entry["schedule"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    under_way, whoever_lives = timedelta(seconds=15), timedelta(minutes=5)
    assert max(observation_outcomes.RECHECK_AFTER, lease_reconciler.CLAIM_TIME) + every["broker.sweep"] <= under_way
    assert observation_outcomes.ACTIVE_CHECK_INTERVAL + every["broker.sweep"] <= whoever_lives
    assert every["broker.sweep_all"] <= whoever_lives


def test_tasks_schedule_and_reconcile_leases(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease, other = sim.request_lease(kestrel, offering("whole-gpu")), sim.request_lease(kestrel, offering("whole-gpu"))
    sim.messages.clear()
    sent: list[tuple[str, str, str]] = []
    monkeypatch.setattr(outbox, "send", lambda *hint, **_: sent.append(hint))
    tasks.sweep_due()
    assert sent == [("broker.run_queue", "H100-80GB|eu-north", "")]
    tasks.run_queue("H100-80GB|eu-north")
    assert reload_lease(lease).state == "provisioning"
    tasks.reconcile_repartition("lch_nobody")  # nothing to do is no reason to complain
    tasks.reconcile_lease(lease.pk, lease.tenant_id)
    assert reload_lease(lease).progress["text"] == "pulling image"
    sent.clear()
    tasks.sweep_all()
    assert sent == [
        ("broker.reconcile_lease", lease.pk, kestrel.tenant.pk),
        ("broker.run_queue", "H100-80GB|eu-north", ""),
    ]
    assert reload_lease(other).state == "queued"


@pytest.mark.deep
def test_a_relocation_plan_is_proposed_and_started_by_its_tasks(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_gpus(2)
    scatter_leases(sim, create_tenant("Kestrel"), create_tenant("Merlin"), relocatable=True)
    tasks.plan_relocations(Cluster.objects.get().pk)
    plan = RelocationPlan.objects.get(state="proposed")
    plan_decisions.accept_plan(plan, why="room", actor=OPERATOR, now=sim.now)
    sim.messages.clear()  # they are lost
    sim.run(NOTICE_S)
    sent: list[tuple[str, str, str]] = []
    monkeypatch.setattr(outbox, "send", lambda *hint, **_: sent.append(hint))
    tasks.sweep_due()
    assert ("broker.reconcile_relocation_plan", plan.pk, "") in sent
    tasks.reconcile_relocation_plan(plan.pk)
    plan.refresh_from_db()
    assert plan.state == "running"
    tasks.reconcile_relocation_plan("mpl_nobody")  # nothing to do is no reason to complain
