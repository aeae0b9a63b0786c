"""Benchmark of launches while months close: `make bench ONLY=launch_month_end`.

Web, workers, relay, beat and log collector run as in `make run`. While every month is closed, and its invoice written,
made a PDF and sent, as many leases as there are months are requested, some each second; and as many again in between,
while invoices stay in their queue, so that other load on the machine affects both. Placed means that the lease has its
slot; the time counts from the request.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection  # noqa: E402

from bench import billing  # noqa: E402
from bench.figures import Figures  # noqa: E402
from bench.house_api import world  # noqa: E402
from billing.models import BillingDetails  # noqa: E402
from billing.services.rating import lease_rating  # noqa: E402
from config.celery import app  # noqa: E402
from config.queues import DOCUMENTS  # noqa: E402
from deploy.embedded.product_processes import SIMULATED_SPEED  # noqa: E402
from ports import clock, ids  # noqa: E402
from tenants.models import Tenant  # noqa: E402
from tenants.services.rls import system_scope, tenant_scope  # noqa: E402
from tests.billing.tax.taxed_tenants import set_tax_rate  # noqa: E402
from tests.chaos.client import Client  # noqa: E402
from tests.live.processes import Processes  # noqa: E402

MONTHS, PER_S, WARM_UP = (8, 4, 2) if sys.argv[1:] == ["small"] else (600, 10, 30)
BLOCKS, LEASES, MAY_BE_SLOWER, THREADS, PATIENCE_S, POLL_S = 2 if MONTHS == 8 else 10, 4, 1.3, 8, 120.0, 0.005
GPUS_PER_NODE, SLICES_PER_GPU = 8, 7
WORKERS = ["background-worker@live"]
SENT_EMAILS = "SELECT count(*) FROM billing_queuedemail WHERE sent_at IS NOT NULL"
NO_LEASES = "SELECT (NOT EXISTS (SELECT FROM broker_lease WHERE state <> 'released'))::int"


def add_months() -> None:
    """Write charged usage of last month for each tenant whose month is closed."""
    billing.TENANTS, billing.LEASES, billing.INTERVALS_PER_LEASE = MONTHS, LEASES, 3
    month_start = clock.month_start(clock.now())
    billing.START = datetime.combine((month_start - timedelta(days=20)).date(), datetime.min.time(), UTC)
    billing.create_usage()
    billing.create_months(clock.now())
    set_tax_rate("DE", 19)
    lease_rating.rate_all_leases(now=clock.now(), whole=True)
    with system_scope():
        tenants = list(Tenant.objects.filter(name__startswith="ten_0").values_list("pk", flat=True))
    for tenant in tenants:
        with tenant_scope(tenant):
            BillingDetails.objects.create(
                tenant_id=tenant, name="Kestrel", email="bills@kestrel.example", changed_at=clock.now()
            )
    billing.vacuum()


def count(sql: str) -> int:
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(sql)
        return int(cursor.fetchone()[0])


class PlacedLeases:
    """Watcher of the database: when each lease got its slot."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _watch(self) -> None:
        seen = datetime.min.replace(tzinfo=UTC)
        while not self.ended.wait(POLL_S):
            with system_scope(), connection.cursor() as cursor:
                cursor.execute(
                    "SELECT lease_id FROM broker_transition WHERE after = 'provisioning' AND at >= %s", [seen]
                )
                found, moment = cursor.fetchall(), time.time()
            for (lease,) in found:
                self.at.setdefault(lease, moment)
            seen = datetime.fromtimestamp(moment - 10, UTC)
        connection.close()

    def stop(self) -> None:
        self.ended.set()
        self.thread.join()


def launch_all(client: Client, body: dict[str, Any], number: int) -> list[float]:
    """Request leases at a steady pace; return the seconds until each was placed."""
    placed, begun = PlacedLeases(), time.time()
    sent: dict[str, float] = {}

    def launch(turn: int) -> None:
        time.sleep(max(begun + turn / PER_S - time.time(), 0))
        answer = client.once("POST", "leases", body, key=ids.new("key"))
        if not answer.accepted:
            raise RuntimeError(f"{answer.status} {answer.body}")
        sent[answer.body["id"]] = answer.sent

    try:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(launch, range(number)))
        while sent.keys() - placed.at.keys():
            if time.time() > begun + number / PER_S + PATIENCE_S:
                raise RuntimeError(f"{len(sent.keys() - placed.at.keys())} leases are not placed")
            time.sleep(POLL_S)
    finally:
        placed.stop()
    for lease in sent:
        client.once("POST", f"leases/{lease}/release", key=ids.new("key"))
    return [max(placed.at[lease] - at, POLL_S) for lease, at in sent.items()]


@contextmanager
def without_documents() -> Iterator[None]:
    """Keep invoices and e-mails in their queue until the block ends."""
    app.control.cancel_consumer(DOCUMENTS.name, destination=WORKERS, reply=True, timeout=5)
    try:
        yield
    finally:
        app.control.add_consumer(DOCUMENTS.name, destination=WORKERS, reply=True, timeout=5)


def wait_for(sql: str) -> int:
    """Wait until a count is above zero; return zero after a timeout."""
    end = time.monotonic() + PATIENCE_S
    while not (found := count(sql)) and time.monotonic() < end:
        time.sleep(0.2)
    return found


def main() -> None:
    figures = Figures("launch_month_end")
    os.environ["GPUBROKER_SIMULATED_SPEED"] = SIMULATED_SPEED
    _, token, body = world(nodes=MONTHS // (GPUS_PER_NODE * SLICES_PER_GPU) + 2)
    add_months()
    with Processes() as processes:
        client = Client(processes.port, token)
        launch_all(client, body, WARM_UP)
        wait_for(NO_LEASES)
        app.send_task("billing.close_due")
        alone, beside = list[float](), list[float]()
        for _ in range(BLOCKS):
            beside += launch_all(client, body, MONTHS // BLOCKS)
            with without_documents():
                alone += launch_all(client, body, MONTHS // BLOCKS)
        closed = count("SELECT count(*) FROM billing_billingperiod WHERE status = 'closed'")
        sent = count(SENT_EMAILS)
        print(f"{closed} months closed and {sent} e-mails sent meanwhile", file=sys.stderr)
        if not wait_for(SENT_EMAILS):
            raise RuntimeError("no invoice was sent by e-mail")
    if closed < MONTHS:
        raise RuntimeError(f"{closed} of {MONTHS} months were closed")
    at_most = MAY_BE_SLOWER
    figures.report_time("placed_p50_while_months_close", median(beside), baseline=median(alone), at_most=at_most)
    slowest, base = (quantiles(each, n=100)[-1] for each in (beside, alone))
    figures.report_time("placed_p99_while_months_close", slowest, baseline=base, at_most=at_most)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
