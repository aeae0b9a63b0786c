"""`manage.py log_collector`: collect the logs of leases from their clusters.

Several may run at once: each log is claimed by one of them.
"""

import signal
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import structlog
from django.core.management.base import BaseCommand
from django.db import InterfaceError, OperationalError, connection

from broker.services.logs import log_collection
from ports import clock
from ports.heartbeat import HeartbeatFile

log = structlog.get_logger(__name__)
THREADS = 16
MAX_SUBMITTED = 2 * THREADS
POLL_INTERVAL_S = 0.25
RETRY_INTERVAL_S = 2.0
ADOPT_EVERY_S = 60.0


class Command(BaseCommand):
    help = "Collect the logs of leases from their clusters until SIGTERM or Ctrl-C."
    requires_system_checks = ()  # they load every page of the portal, which is never shown here
    running = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.collecting: dict[str, Future[int]] = {}

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        self.collect_logs()

    def collect_logs(self) -> None:
        """Collect until stopped; wait while the database is unreachable."""
        heartbeat, adopt_at = HeartbeatFile("log-collector"), 0.0
        with ThreadPoolExecutor(THREADS, thread_name_prefix="log") as pool:
            while self.running:
                heartbeat()
                try:
                    if clock.monotonic() >= adopt_at:
                        log_collection.begin_missing_logs(now=clock.now())
                        adopt_at = clock.monotonic() + ADOPT_EVERY_S
                    self._submit_due(pool)
                except (OperationalError, InterfaceError) as error:
                    log.warning("log collector waiting", because=str(error).strip())
                    connection.close()
                    clock.sleep(RETRY_INTERVAL_S)
                    continue
                clock.sleep(POLL_INTERVAL_S)

    def _submit_due(self, pool: ThreadPoolExecutor) -> None:
        """Start collecting what is due; a slow cluster keeps only its own threads busy."""
        for lease_id, future in list(self.collecting.items()):
            if future.done():
                del self.collecting[lease_id]
                if error := future.exception():
                    log.error("log not collected", lease_id=lease_id, exc_info=error)
        for lease_id, tenant_id in log_collection.due_logs(now=clock.now()):
            if lease_id not in self.collecting and len(self.collecting) < MAX_SUBMITTED:
                self.collecting[lease_id] = pool.submit(collect_one, (lease_id, tenant_id))

    def _stop(self, *_: object) -> None:
        self.running = False


def collect_one(due: tuple[str, str]) -> int:
    """Collect one log in a thread with its own connection."""
    try:
        return log_collection.collect_log(*due, now=clock.now())
    except (OperationalError, InterfaceError):
        connection.close()  # else this thread keeps a broken connection for ever
        raise
