"""Queues of the workers: every task is in one, and what a sweep repeats expires."""

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.test import Client

from billing import tasks as billing_tasks
from broker import tasks as broker_tasks
from config import metrics, queues
from ports import clock, outbox, task_queues

ROOT = Path(__file__).resolve().parents[2]


def registered_tasks() -> set[str]:
    current_app.loader.import_default_modules()
    return {name for name in current_app.tasks if name.startswith(("broker.", "billing.", "tenants.", "ports."))}


def test_every_task_is_in_exactly_one_queue() -> None:
    found = Counter(task for queue in queues.QUEUES for task in queue.tasks)
    assert set(found) == registered_tasks()
    assert set(found.values()) == {1}


def test_a_task_without_a_queue_cannot_be_sent() -> None:
    with pytest.raises(LookupError, match=r"broker\.brew_tea has no queue: add it to one in config/queues\.py"):
        outbox.send("broker.brew_tea", "cup_1", "")


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        ("broker.reconcile_lease", "lifecycle"),
        ("broker.run_queue", "lifecycle"),
        ("broker.reconcile_spot_reclaim", "lifecycle"),
        ("billing.rate", "money"),
        ("billing.close_due", "money"),
        ("billing.collect", "money"),
        ("billing.send_email", "documents"),
        ("broker.delete_old_logs", "maintenance"),
        ("billing.reconcile_stripe_day", "maintenance"),
    ],
)
def test_celery_sends_a_task_to_the_queue_of_its_urgency(task: str, queue: str) -> None:
    route = current_app.amqp.router.route({}, task)
    assert route["queue"].name == queue


def test_every_queue_has_a_soft_limit_below_its_hard_limit_below_redelivery() -> None:
    for queue in queues.QUEUES:
        assert 0 < queue.soft_limit_s < queue.hard_limit_s < queues.VISIBILITY_TIMEOUT_S, queue.name


def test_every_scheduled_message_expires_when_the_next_is_sent(settings: Any) -> None:
    for name, entry in settings.CELERY_BEAT_SCHEDULE.items():
        assert entry["options"]["expires"] == entry["schedule"], name


def test_every_message_that_a_task_sends_expires() -> None:
    """A task sends without the outbox only what its next run repeats."""
    for file in (ROOT / app / "tasks.py" for app in ("broker", "billing", "tenants")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "outbox.send":
                assert "expires_s" in {keyword.arg for keyword in node.keywords}, f"{file}:{node.lineno}"


def test_what_a_sweep_repeats_lives_until_the_next_sweep_and_at_most_three(settings: Any) -> None:
    every = {entry["task"]: entry["schedule"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    for task, expires_s in (
        ("broker.sweep", broker_tasks.SWEEP_EXPIRES_S),
        ("broker.probe_clusters", broker_tasks.PROBE_EXPIRES_S),
        ("broker.sweep_all", broker_tasks.SWEEP_ALL_EXPIRES_S),
        ("billing.collect_due", billing_tasks.SWEEP_EXPIRES_S),
        ("billing.send_due_emails", billing_tasks.SWEEP_EXPIRES_S),
        ("billing.reconcile_stripe", billing_tasks.STRIPE_DAY_EXPIRES_S),
    ):
        assert every[task] <= expires_s <= 3 * every[task], task


@pytest.fixture
def valkey_queues(valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Celery use a Valkey without messages."""
    monkeypatch.setattr(current_app.conf, "broker_write_url", valkey_url)
    monkeypatch.setattr(current_app.conf, "broker_read_url", valkey_url)


@pytest.mark.django_db
@pytest.mark.usefixtures("valkey_queues")
def test_metrics_tell_length_and_age_of_each_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    sent_at_ms = clock.milliseconds() - 90_000
    with monkeypatch.context() as earlier:
        earlier.setattr(clock, "milliseconds", lambda: sent_at_ms)
        outbox.send("billing.send_email", "eml_1", "ten_1")
    outbox.send("billing.send_email", "eml_2", "ten_1")
    outbox.send("broker.reconcile_lease", "lse_1", "ten_1", expires_s=15)
    text = Client().get("/metrics").content.decode()
    for line in (
        'gpubroker_task_queue_messages{queue="documents"} 2.0',
        'gpubroker_task_queue_messages{queue="lifecycle"} 1.0',
        'gpubroker_task_queue_messages{queue="money"} 0.0',
        'gpubroker_task_queue_oldest_seconds{queue="money"} 0.0',
    ):
        assert line in text
    ages = {family.name: family for family in metrics.queue_gauges()}["gpubroker_task_queue_oldest_seconds"].samples
    age_s = {sample.labels["queue"]: sample.value for sample in ages}
    assert 90 <= age_s["documents"] < 150
    assert age_s["lifecycle"] < 60


def test_metrics_without_valkey_have_no_queue_values() -> None:
    assert [family.samples for family in metrics.queue_gauges()] == [[], []]


@pytest.mark.django_db
@pytest.mark.usefixtures("valkey_queues")
def test_failed_tasks_are_counted_by_name() -> None:
    assert 'gpubroker_task_failures_total{task="billing.rate"}' not in Client().get("/metrics").content.decode()
    for _ in range(2):
        task_queues.count_failure("billing.rate")
    assert 'gpubroker_task_failures_total{task="billing.rate"} 2.0' in Client().get("/metrics").content.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("valkey_queues")
def test_a_failing_run_of_a_worker_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    @outbox.task("tests.fail")
    def fail() -> None:
        raise LookupError("on purpose")

    with pytest.raises(LookupError):
        fail()  # called as a function
    assert task_queues.read_failures() == {}
    assert fail.apply().failed()  # type: ignore[attr-defined]  # as a worker runs it
    assert task_queues.read_failures() == {"tests.fail": 1}
