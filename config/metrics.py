"""Figures for Prometheus: requests by route, and what waits in the database. No tenant is ever named."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from billing.services import undecided
from billing.services.funds import stopping
from broker.services import orphans, sightings
from ports import clock
from tenants.services.walls import as_sweep

MEMORY = Path("/dev/shm")


def place(data: Path, memory: Path = MEMORY) -> Path:
    """Return where the counts of an installation lie: in memory, for whoever counts on a full disk is killed.

    The library writes to files mapped into the process, and a page that the disk has no room for is a SIGBUS.
    """
    if data.is_relative_to(memory) or not os.access(memory, os.W_OK):
        return data / "metrics"
    return memory / f"gpubroker-{os.geteuid()}-{hashlib.sha256(bytes(data)).hexdigest()[:12]}"


# Several web processes count together through files, in a folder named after the process that started them.
FOLDER = place(Path(settings.DATA_DIR).absolute()) / str(os.getppid())
FOLDER.mkdir(parents=True, exist_ok=True)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(FOLDER)
for old in FOLDER.parent.iterdir():
    # The first process of a container has no parent: its folder is called 0, and no process ever is.
    if old != FOLDER and old.name.isdigit() and not Path(f"/proc/{old.name}").exists():
        shutil.rmtree(old, ignore_errors=True)

# Only now: the library decides while it is imported whether it counts for one process or for many.
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest  # noqa: E402
from prometheus_client.core import GaugeMetricFamily  # noqa: E402
from prometheus_client.multiprocess import MultiProcessCollector  # noqa: E402
from prometheus_client.registry import Collector  # noqa: E402

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10)
REQUESTS = Counter("gpubroker_requests", "Answers by route.", ["route", "method", "status"])
SECONDS = Histogram("gpubroker_request_seconds", "Time to answer by route.", ["route"], buckets=BUCKETS)


class Measure:
    """Count every answer, and how long it took, under the name of its route."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = clock.monotonic()
        response = self.get_response(request)
        # A name from our own list, never a path that a visitor made up: the number of series is bounded.
        route = (request.resolver_match and request.resolver_match.view_name) or "none"
        method = request.method if request.method in METHODS else "other"
        REQUESTS.labels(route, method, response.status_code).inc()
        SECONDS.labels(route).observe(clock.monotonic() - began)
        return response


METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


class Waiting(Collector):
    """What stands in the database at the moment of asking."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        leases = GaugeMetricFamily(
            "gpubroker_leases", "Leases that are not over, by state.", labels=["state"]
        )
        with as_sweep(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT state, count(*) FROM broker_lease WHERE state <> 'released' GROUP BY state ORDER BY state"
            )
            for state, number in cursor.fetchall():
                leases.add_metric([state], number)
            cursor.execute(
                "SELECT coalesce(extract(epoch FROM clock_timestamp() - min(at)), 0)::float FROM broker_lease"
                " WHERE state = 'queued'"
            )
            oldest = cursor.fetchone()[0]
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM ports_ring")
            rings = cursor.fetchone()[0]
        yield leases
        yield from clusters()
        yield GaugeMetricFamily("gpubroker_queue_oldest_seconds", "Age of the longest wait.", value=oldest)
        yield from money()
        yield GaugeMetricFamily("gpubroker_outbox_rings", "Hints not yet sent.", value=rings)


def clusters() -> Iterator[GaugeMetricFamily]:
    """Tell how Kubernetes clusters are followed, and what in any of them belongs to no lease."""
    lag = GaugeMetricFamily(
        "gpubroker_agent_lag_seconds",
        "For how long a cluster's quietest watch heard nothing.",
        labels=["cluster"],
    )
    silent = GaugeMetricFamily(
        "gpubroker_agent_silent", "1 where nobody follows a cluster.", labels=["cluster"]
    )
    frozen = GaugeMetricFamily(
        "gpubroker_cluster_frozen", "1 where a cluster waits for an operator.", labels=["cluster"]
    )
    left = GaugeMetricFamily(
        "gpubroker_orphans", "Objects in a cluster that belong to no lease.", labels=["cluster"]
    )
    for agent in sightings.agents(now=clock.now()):
        if agent.lag_s is not None:
            lag.add_metric([agent.cluster], agent.lag_s)
        silent.add_metric([agent.cluster], agent.silent)
        frozen.add_metric([agent.cluster], agent.frozen)
    for name, count in orphans.counts():
        left.add_metric([name], count)
    yield from (lag, silent, frozen, left)


def money() -> Iterator[GaugeMetricFamily]:
    """Tell what is still to be collected; each figure has an index of just these rows."""
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(opened_at)), 0)::float,"
            " count(*) FILTER (WHERE fell > 0) FROM billing_payment WHERE status = 'pending'"
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
            " FROM billing_letter WHERE due_at IS NOT NULL"
        )
        letters, letter_age = cursor.fetchone()
        cursor.execute("SELECT count(*) FROM billing_letter WHERE unsent IN ('nobody', 'given_up')")
        unsent = cursor.fetchone()[0]
        stops = stopping.late(now=clock.now())
        waiting = undecided.look()
    yield GaugeMetricFamily("gpubroker_letters_waiting", "Letters that are still to be sent.", value=letters)
    yield GaugeMetricFamily(
        "gpubroker_letter_oldest_seconds", "Age of the longest of them.", value=letter_age
    )
    yield GaugeMetricFamily("gpubroker_letters_given_up", "Letters that wait for a person.", value=unsent)
    yield GaugeMetricFamily(
        "gpubroker_budget_stops_late", "Stops of budgets that are not done ten minutes later.", value=stops
    )
    yield GaugeMetricFamily("gpubroker_invoices_due", "Final invoices that are not paid.", value=due)
    yield GaugeMetricFamily("gpubroker_payments_pending", "Payments without an answer yet.", value=pending)
    yield GaugeMetricFamily("gpubroker_payment_oldest_seconds", "Age of the longest of them.", value=oldest)
    yield GaugeMetricFamily(
        "gpubroker_payments_failing", "Of them, those whose last try failed as nobody foresaw.", value=failing
    )
    yield GaugeMetricFamily("gpubroker_payments_stuck", "Payments that wait for a person.", value=stuck)
    yield GaugeMetricFamily("gpubroker_refunds_stuck", "Refunds that wait for a person.", value=refunds)
    yield GaugeMetricFamily("gpubroker_topups_stuck", "Top-ups that wait for a person.", value=topups)
    yield from decisions(waiting)


def decisions(waiting: undecided.Undecided) -> Iterator[GaugeMetricFamily]:
    """Tell what tenants and colleagues wait for operators to decide."""
    since = waiting.disputed_since
    oldest = max((clock.now() - since).total_seconds(), 0) if since else 0
    yield GaugeMetricFamily(
        "gpubroker_disputes_open", "Disputes without an answer yet.", value=waiting.disputes
    )
    yield GaugeMetricFamily("gpubroker_dispute_oldest_seconds", "Age of the oldest of them.", value=oldest)
    yield GaugeMetricFamily(
        "gpubroker_corrections_waiting", "Corrections that others must approve.", value=waiting.corrections
    )
    yield GaugeMetricFamily(
        "gpubroker_corrections_waiting_for_second",
        "Of them, those that one person has approved and that need another.",
        value=waiting.second,
    )


def text() -> bytes:
    """Return every figure in Prometheus' text form."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(Waiting())
    return generate_latest(registry)
