"""Prometheus metrics: requests by route, and what waits in the database.

No tenant is ever named.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from billing.services.funds.budgets import budget_stops
from billing.services.reports import pending_decisions
from broker.services.clusters import orphan_removal
from broker.services.clusters.observed import observed_objects
from ports import clock
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
from prometheus_client.core import GaugeMetricFamily  # noqa: E402
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


METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


class DatabaseCollector(Collector):
    """Gauges read from the database when scraped."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        leases = GaugeMetricFamily("gpubroker_leases", "Leases that have not ended, by state.", labels=["state"])
        with system_scope(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT state, count(*) FROM broker_lease WHERE state <> 'released' GROUP BY state ORDER BY state"
            )
            for state, number in cursor.fetchall():
                leases.add_metric([state], number)
            cursor.execute(
                "SELECT coalesce(extract(epoch FROM clock_timestamp() - min(state_since)), 0)::float FROM broker_lease"
                " WHERE state = 'queued'"
            )
            oldest = cursor.fetchone()[0]
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM ports_outboxmessage")
            pending_messages = cursor.fetchone()[0]
        yield leases
        yield from cluster_gauges()
        yield GaugeMetricFamily("gpubroker_queue_oldest_wait_seconds", "Age of the oldest queued lease.", value=oldest)
        yield from billing_gauges()
        yield GaugeMetricFamily(
            "gpubroker_outbox_pending", "Outbox messages that are not sent yet.", value=pending_messages
        )


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


def billing_gauges() -> Iterator[GaugeMetricFamily]:
    """Yield gauges of payments, invoices and e-mails; each uses an index of just these rows."""
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(opened_at)), 0)::float,"
            " count(*) FILTER (WHERE consecutive_failures > 0) FROM billing_payment WHERE status = 'pending'"
        )
        pending, oldest, failing = cursor.fetchone()
        cursor.execute("SELECT count(*) FROM billing_payment WHERE status = 'stuck'")
        stuck = cursor.fetchone()[0]
        cursor.execute("SELECT count(*) FROM billing_topup WHERE status = 'stuck'")
        topups = cursor.fetchone()[0]
        cursor.execute("SELECT count(*) FROM billing_refund WHERE status = 'stuck'")
        refunds = cursor.fetchone()[0]
        cursor.execute("SELECT count(*) FROM billing_invoice WHERE status = 'finalized'")
        due = cursor.fetchone()[0]
        cursor.execute(
            "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(made_at)), 0)::float"
            " FROM billing_queuedemail WHERE due_at IS NOT NULL"
        )
        unsent_emails, oldest_email_age = cursor.fetchone()
        cursor.execute(
            "SELECT count(*) FROM billing_queuedemail WHERE undelivered_reason IN ('no_recipient', 'given_up')"
        )
        unsent = cursor.fetchone()[0]
        stops = budget_stops.count_late_stops(now=clock.now())
        waiting = pending_decisions.count_pending_decisions()
    yield GaugeMetricFamily("gpubroker_emails_pending", "E-mails that are not sent yet.", value=unsent_emails)
    yield GaugeMetricFamily(
        "gpubroker_email_oldest_pending_seconds", "Age of the oldest unsent e-mail.", value=oldest_email_age
    )
    yield GaugeMetricFamily("gpubroker_emails_undeliverable", "E-mails that need attention.", value=unsent)
    yield GaugeMetricFamily(
        "gpubroker_budget_stops_overdue", "Budget stops that are not done after ten minutes.", value=stops
    )
    yield GaugeMetricFamily("gpubroker_invoices_due", "Final invoices that are not paid.", value=due)
    yield GaugeMetricFamily("gpubroker_payments_pending", "Payments without a response yet.", value=pending)
    yield GaugeMetricFamily(
        "gpubroker_payment_oldest_pending_seconds", "Age of the oldest pending payment.", value=oldest
    )
    yield GaugeMetricFamily(
        "gpubroker_payments_failing", "Pending payments whose last attempt failed unexpectedly.", value=failing
    )
    yield GaugeMetricFamily("gpubroker_payments_stuck", "Payments that need attention.", value=stuck)
    yield GaugeMetricFamily("gpubroker_refunds_stuck", "Refunds that need attention.", value=refunds)
    yield GaugeMetricFamily("gpubroker_topups_stuck", "Top-ups that need attention.", value=topups)
    yield from decision_gauges(waiting)


def decision_gauges(waiting: pending_decisions.PendingDecisions) -> Iterator[GaugeMetricFamily]:
    """Yield gauges of what waits for an operator's decision."""
    since = waiting.disputed_since
    oldest = max((clock.now() - since).total_seconds(), 0) if since else 0
    yield GaugeMetricFamily("gpubroker_disputes_open", "Open disputes.", value=waiting.disputes)
    yield GaugeMetricFamily("gpubroker_dispute_oldest_open_seconds", "Age of the oldest open dispute.", value=oldest)
    yield GaugeMetricFamily(
        "gpubroker_corrections_pending", "Corrections that need approval.", value=waiting.corrections
    )
    yield GaugeMetricFamily(
        "gpubroker_corrections_pending_second_approval",
        "Corrections that need a second approval only.",
        value=waiting.second,
    )


def render_metrics() -> bytes:
    """Return every metric in Prometheus' text format."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(DatabaseCollector())
    return generate_latest(registry)
