"""`manage.py relay`: send messages from the outbox to Celery, woken by NOTIFY."""

import signal
from typing import Any

import structlog
from django.core.management.base import BaseCommand
from django.db import InterfaceError, OperationalError, connection
from kombu.exceptions import OperationalError as BrokerConnectionError

from ports import clock
from ports.heartbeat import HeartbeatFile
from ports.outbox import CHANNEL
from ports.outbox_relay import next_due, send_due_messages

log = structlog.get_logger(__name__)
MAX_WAIT_S = 2.0
RETRY_INTERVAL_S = 1.0


class Command(BaseCommand):
    help = "Send messages from the outbox to Celery until SIGTERM or Ctrl-C."
    running = True

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        self.relay_messages()

    def relay_messages(self) -> None:
        """Relay until stopped; wait while database or broker is unreachable."""
        self.heartbeat = HeartbeatFile("relay")
        while self.running:
            self.heartbeat()
            try:
                self._relay_until_stopped()
            except (OperationalError, InterfaceError, BrokerConnectionError) as error:
                log.warning("relay waiting", because=str(error).strip())
                connection.close()
                clock.sleep(RETRY_INTERVAL_S)

    def _stop(self, *_: object) -> None:
        self.running = False

    def _relay_until_stopped(self) -> None:
        """Listen, then relay, then wait: a message in between still wakes us."""
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        while self.running:
            while self.running and send_due_messages(now=clock.now()):
                self.heartbeat()
            self.heartbeat()
            wait = MAX_WAIT_S
            if due := next_due():
                wait = min(max((due - clock.now()).total_seconds(), 0.01), MAX_WAIT_S)
            with connection.wrap_database_errors:
                for _ in connection.connection.notifies(timeout=wait, stop_after=1):
                    pass
