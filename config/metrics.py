"""Prometheus metrics: requests by route, and what waits in the database.

No tenant is ever named.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from billing.services.funds.budgets import budget_stops
from billing.services.reports import pending_decisions
from broker.services.clusters import orphan_removal
from broker.services.clusters.observed import observed_objects
from config import queues
from ports import clock, ids, task_queues
from ports.postgres.sql_statements import load_sql
from tenants.services.rls import system_scope

SHARED_MEMORY = Path("/dev/shm")


def counters_directory(data: Path, memory: Path = SHARED_MEMORY) -> Path:
    """Return the directory of an installation's counters, in memory if possible.

    The library writes to memory-mapped files: on a full disk, writing one raises SIGBUS and kills the
    process.
    """
    if data.is_relative_to(memory) or not os.access(memory, os.W_OK):
        return data / "metrics"
    return memory / f"gpubroker-{os.geteuid()}-{hashlib.sha256(bytes(data)).hexdigest()[:12]}"


# Several web processes count together through files, in a directory named after their parent process.
COUNTERS_DIRECTORY = counters_directory(Path(settings.DATA_DIR).absolute()) / str(os.getppid())
COUNTERS_DIRECTORY.mkdir(parents=True, exist_ok=True)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(COUNTERS_DIRECTORY)
for old in COUNTERS_DIRECTORY.parent.iterdir():
    # The first process of a container has parent 0: no process ever has that id.
    if old != COUNTERS_DIRECTORY and old.name.isdigit() and not Path(f"/proc/{old.name}").exists():
        shutil.rmtree(old, ignore_errors=True)

# Imported only now: on import the library decides between one process and many.
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest  # noqa: E402
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: E402
from prometheus_client.metrics_core import Metric  # noqa: E402
from prometheus_client.multiprocess import MultiProcessCollector  # noqa: E402
from prometheus_client.registry import Collector  # noqa: E402

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10)
REQUESTS = Counter("gpubroker_http_requests", "Responses by route.", ["route", "method", "status"])
SECONDS = Histogram("gpubroker_http_request_duration_seconds", "Response time by route.", ["route"], buckets=BUCKETS)


class RequestMetricsMiddleware:
    """Middleware: counts responses and their duration by route name."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = clock.monotonic()
        response = self.get_response(request)
        # A route name, never a visitor's path: this bounds the number of series.
        route = (request.resolver_match and request.resolver_match.view_name) or "none"
        method = request.method if request.method in METHODS else "other"
        REQUESTS.labels(route, method, response.status_code).inc()
        SECONDS.labels(route).observe(clock.monotonic() - began)
        return response


LATELY = timedelta(minutes=15)
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


GAUGES = {
    "gpubroker_queue_oldest_wait_seconds": "Age of the oldest queued lease.",
    "gpubroker_emails_pending": "E-mails that are not sent yet.",
    "gpubroker_email_oldest_pending_seconds": "Age of the oldest unsent e-mail.",
    "gpubroker_emails_undeliverable": "E-mails that need attention.",
    "gpubroker_budget_stops_overdue": "Budget stops that are not done after ten minutes.",
    "gpubroker_invoices_due": "Final invoices that are not paid.",
    "gpubroker_payments_pending": "Payments without a response yet.",
    "gpubroker_payment_oldest_pending_seconds": "Age of the oldest pending payment.",
    "gpubroker_payments_failing": "Pending payments whose last attempt failed unexpectedly.",
    "gpubroker_payments_stuck": "Payments that need attention.",
    "gpubroker_refunds_stuck": "Refunds that need attention.",
    "gpubroker_topups_stuck": "Top-ups that need attention.",
    "gpubroker_disputes_open": "Open disputes.",
    "gpubroker_dispute_oldest_open_seconds": "Age of the oldest open dispute.",
    "gpubroker_corrections_pending": "Corrections that need approval.",
    "gpubroker_corrections_pending_second_approval": "Corrections that need a second approval only.",
    "gpubroker_outbox_pending": "Outbox messages that are not sent yet, most of them checks still to come.",
    "gpubroker_outbox_due": "Outbox messages that are due and not sent yet.",
    "gpubroker_outbox_oldest_due_seconds": "Age of the oldest outbox message that is due.",
    "gpubroker_rating_lag_seconds": "Age of the oldest usage that ended and is not rated yet.",
}


class DatabaseCollector(Collector):
    """What is read from the database and from Valkey when scraped."""

    def collect(self) -> Iterator[Metric]:
        leases = GaugeMetricFamily("gpubroker_leases", "Leases that have not ended, by state.", labels=["state"])
        with system_scope(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT state, count(*) FROM broker_lease WHERE state <> 'released' GROUP BY state ORDER BY state"
            )
            for state, number in cursor.fetchall():
                leases.add_metric([state], number)
        yield leases
        yield free_gpus_gauge()
        yield start_times_gauge()
        yield from cluster_gauges()
        yield from database_gauges()
        yield from queue_gauges()
        yield task_failures_counter()


def cluster_gauges() -> Iterator[GaugeMetricFamily]:
    """Yield gauges of cluster agents and orphaned objects."""
    lag = GaugeMetricFamily(
        "gpubroker_agent_lag_seconds",
        "Seconds since the least recent event of a cluster's watches.",
        labels=["cluster"],
    )
    silent = GaugeMetricFamily("gpubroker_agent_down", "1 if no agent follows the cluster.", labels=["cluster"])
    frozen = GaugeMetricFamily(
        "gpubroker_cluster_frozen", "1 if the cluster is frozen until an operator decides.", labels=["cluster"]
    )
    left = GaugeMetricFamily("gpubroker_orphans", "Objects in a cluster without a lease.", labels=["cluster"])
    for agent in observed_objects.agent_statuses(now=clock.now()):
        if agent.lag_s is not None:
            lag.add_metric([agent.cluster], agent.lag_s)
        silent.add_metric([agent.cluster], agent.is_silent)
        frozen.add_metric([agent.cluster], agent.frozen)
    for name, count in orphan_removal.count_orphans():
        left.add_metric([name], count)
    yield from (lag, silent, frozen, left)


def free_gpus_gauge() -> GaugeMetricFamily:
    """Return the gauge of free GPUs by model."""
    free = GaugeMetricFamily("gpubroker_gpus_free", "GPUs in service that no lease holds, by model.", labels=["model"])
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(load_sql("config/metrics/free_gpus"))
        for model, count in cursor.fetchall():
            free.add_metric([model], count)
    return free


def start_times_gauge() -> GaugeMetricFamily:
    """Return the gauge of how long starts took lately; without values if nothing was started."""
    took = GaugeMetricFamily(
        "gpubroker_lease_start_seconds",
        "Seconds from request to active, of leases requested in the last 15 minutes, by quantile.",
        labels=["quantile"],
    )
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(load_sql("config/metrics/start_times"), {"first": ids.first_at("lse", clock.now() - LATELY)})
        for quantile, seconds in zip(("0.5", "0.95"), cursor.fetchone(), strict=True):
            if seconds is not None:
                took.add_metric([quantile], seconds)
    return took


def queue_gauges() -> Iterator[GaugeMetricFamily]:
    """Yield gauges of the workers' queues; without values while Valkey does not answer."""
    waiting = GaugeMetricFamily(
        "gpubroker_task_queue_messages", "Messages that wait for a worker, by queue.", labels=["queue"]
    )
    oldest = GaugeMetricFamily(
        "gpubroker_task_queue_oldest_seconds", "Age of the oldest message that waits, by queue.", labels=["queue"]
    )
    for backlog in task_queues.read_backlogs(queue.name for queue in queues.QUEUES):
        waiting.add_metric([backlog.queue], backlog.messages)
        oldest.add_metric([backlog.queue], backlog.oldest_s)
    yield from (waiting, oldest)


def task_failures_counter() -> CounterMetricFamily:
    """Return the counter of failed runs by task, of all workers."""
    failures = CounterMetricFamily("gpubroker_task_failures", "Runs of tasks that failed, by task.", labels=["task"])
    for task, count in sorted(task_queues.read_failures().items()):
        failures.add_metric([task], count)
    return failures


def database_gauges() -> list[GaugeMetricFamily]:
    """Return the gauges of one value each, in the order of GAUGES."""
    now = clock.now()
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(load_sql("config/metrics/database_gauges"))
        values = dict(zip([column.name for column in cursor.description or ()], cursor.fetchone(), strict=True))
        late_stops, waiting = budget_stops.count_late_stops(now=now), pending_decisions.count_pending_decisions()
    with connection.cursor() as cursor:
        cursor.execute(load_sql("config/metrics/outbox"))
        names = ("gpubroker_outbox_pending", "gpubroker_outbox_due", "gpubroker_outbox_oldest_due_seconds")
        values |= zip(names, cursor.fetchone(), strict=True)
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(load_sql("config/metrics/rating_lag"))
        values["gpubroker_rating_lag_seconds"] = cursor.fetchone()[0]
    since = waiting.disputed_since
    values |= {
        "gpubroker_budget_stops_overdue": late_stops,
        "gpubroker_disputes_open": waiting.disputes,
        "gpubroker_dispute_oldest_open_seconds": max((now - since).total_seconds(), 0) if since else 0,
        "gpubroker_corrections_pending": waiting.corrections,
        "gpubroker_corrections_pending_second_approval": waiting.second,
    }
    return [GaugeMetricFamily(name, text, value=values[name]) for name, text in GAUGES.items()]


def render_metrics() -> bytes:
    """Return every metric in Prometheus' text format."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(DatabaseCollector())
    return generate_latest(registry)
