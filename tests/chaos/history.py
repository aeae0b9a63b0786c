"""The history of database and simulated cluster, read from outside."""

import time
from contextlib import suppress
from dataclasses import dataclass

import psycopg

from tests.chaos.running import Connection, Running

# The cluster's own memory forgets a pod when it is gone; this does not.
REMEMBER_PODS = """
CREATE SCHEMA chaos;
CREATE TABLE chaos.pod (name text, born timestamptz NOT NULL, ready_at timestamptz, died timestamptz);
CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO chaos.pod VALUES (NEW.name, clock_timestamp(), NEW.ready_at);
  ELSE
    UPDATE chaos.pod SET died = clock_timestamp() WHERE name = OLD.name AND died IS NULL;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR DELETE ON broker_simulatedpod FOR EACH ROW EXECUTE FUNCTION chaos.note();
"""
UNSETTLED = """
SELECT count(*) FILTER (WHERE state IN ('requested', 'provisioning', 'releasing')
                           OR (state = 'queued' AND pending_reason = '')),
       count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'active'),
       count(*) FILTER (WHERE state = 'provisioning'), count(*) FILTER (WHERE state <> 'released'),
       (SELECT count(*) FROM ports_outboxmessage WHERE at < clock_timestamp() - interval '2 seconds')
  FROM broker_lease
"""


@dataclass(frozen=True)
class Standing:
    """Number of leases by state, and of overdue messages."""

    moving: int
    queued: int
    active: int
    provisioning: int
    live: int
    late: int

    @property
    def calm(self) -> bool:
        return self.moving == 0 and self.late == 0


class History:
    """A connection that survives the server's deaths."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._connection: Connection | None = None

    def rows(self, query: str, *arguments: object) -> list[tuple[object, ...]]:
        """Query the database; reconnect while the server is down."""
        end = time.monotonic() + 60
        while True:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self.running.connect()
                return self._connection.execute(query, arguments or None).fetchall()
            except psycopg.OperationalError:
                self.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def number(self, query: str, *arguments: object) -> int:
        return int(str(self.rows(query, *arguments)[0][0]))

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def remember_pods(self) -> None:
        """Record creation and deletion of every pod."""
        with self.running.connect() as connection:
            connection.execute(REMEMBER_PODS)

    def standing(self) -> Standing:
        return Standing(*(int(str(number)) for number in self.rows(UNSETTLED)[0]))

    def settle(self, within_s: float) -> float:
        """Wait until no lease is in transition; return how long it took."""
        began = time.monotonic()
        while not self.standing().calm:
            if time.monotonic() - began > within_s:
                raise AssertionError(f"not calm after {within_s:.0f} s: {self.standing()}; {self.stuck()}")
            time.sleep(0.25)
        return time.monotonic() - began

    def stuck(self) -> list[tuple[object, ...]]:
        """Return a few leases in transition, for error messages."""
        return self.rows(
            "SELECT id, name, state, seq, unfinished_claims, due_at - clock_timestamp(),"
            " claimed_until - clock_timestamp() FROM broker_lease"
            " WHERE state IN ('requested', 'provisioning', 'releasing')"
            " OR (state = 'queued' AND pending_reason = '') ORDER BY state_since LIMIT 5"
        )
