"""`manage.py relay`: send messages from the outbox to Celery, woken by NOTIFY."""

import signal
from typing import Any

import structlog
from django.core.management.base import BaseCommand
from django.db import InterfaceError, connection
from django.db import OperationalError as DatabaseAway
from kombu.exceptions import OperationalError as BrokerAway

from ports import clock
from ports.heartbeat import HeartbeatFile
from ports.outbox import CHANNEL
from ports.outbox_relay import next_due, send_due_messages

log = structlog.get_logger(__name__)
LONGEST_NAP_S = 2.0
AWAY_NAP_S = 1.0


class Command(BaseCommand):
    help = "Send messages from the outbox to Celery until SIGTERM or Ctrl-C."
    going = True

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        self.carry_on()

    def carry_on(self) -> None:
        """Relay until stopped; wait while database or broker is unreachable."""
        self.alive = HeartbeatFile("relay")
        while self.going:
            self.alive()
            try:
                self._carry()
            except (DatabaseAway, InterfaceError, BrokerAway) as away:
                log.warning("relay waiting", because=str(away).strip())
                connection.close()
                clock.sleep(AWAY_NAP_S)

    def _stop(self, *_: object) -> None:
        self.going = False

    def _carry(self) -> None:
        """Listen, then relay, then wait: a message in between still wakes us."""
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        while self.going:
            while self.going and send_due_messages(now=clock.now()):
                self.alive()
            self.alive()
            wait = LONGEST_NAP_S
            if due := next_due():
                wait = min(max((due - clock.now()).total_seconds(), 0.01), LONGEST_NAP_S)
            with connection.wrap_database_errors:
                for _ in connection.connection.notifies(timeout=wait, stop_after=1):
                    pass
