"""A running product with faults injected by tests."""

import itertools
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.chaos.client import Answer, Client, Launch
from tests.chaos.fault_injector import FaultInjector
from tests.chaos.history import History
from tests.chaos.running import Connection, Running

_numbers = itertools.count()


class Disturbed:
    """A running product with a client, its history and a fault injector."""

    def __init__(self, running: Running) -> None:
        self.running, self.history = running, History(running)
        self.fault_injector = FaultInjector(running, random.Random())
        self.client = Client(running.port, str(running.world["token"]))

    def close(self) -> None:
        self.client.close()
        self.history.close()

    def intent(self, profile: str = "1g.10gb") -> Launch:
        """Return a new intended lease."""
        number, world = next(_numbers), self.running.world
        body = {
            "name": f"disturbed-{number}",
            "project": world["project"],
            "offering": world["offerings"][profile],  # type: ignore[index]
            "max_duration_s": 3600,
        }
        return Launch(number, f"disturbed-{number}-{time.time_ns()}", body)

    def ask(self, launch: Launch) -> Answer:
        """Send the request of an intent once."""
        answer = self.client.once("POST", "leases", launch.body, key=launch.key)
        launch.heard.append(answer)
        return answer

    def count(self, launch: Launch) -> int:
        """Count the leases of one intent in the database."""
        return self.history.number("SELECT count(*) FROM broker_lease WHERE name = %s", launch.body["name"])

    def pods(self, launch: Launch) -> int:
        """Count the pods ever created for an intent."""
        return self.history.number(
            "SELECT count(*) FROM chaos.pod p JOIN broker_lease l ON p.name LIKE 'l-' || substr(l.id, 5) || '-g%%'"
            " WHERE l.name = %s",
            launch.body["name"],
        )

    def state(self, launch: Launch) -> str:
        return str(self.history.rows("SELECT state FROM broker_lease WHERE name = %s", launch.body["name"])[0][0])

    def until(self, launch: Launch, state: str, *, within_s: float) -> float:
        """Wait until its lease is in a state; return how long that took."""
        began = time.monotonic()
        while (now := self.state(launch)) != state:
            assert time.monotonic() - began < within_s, (now, self.history.stuck())
            time.sleep(0.1)
        return time.monotonic() - began

    @contextmanager
    def locked(self, table: str, mode: str = "ACCESS EXCLUSIVE") -> Iterator[Connection]:
        """Lock a table until the block ends."""
        with self.running.connect() as holder, holder.transaction():
            holder.execute(f"LOCK TABLE {table} IN {mode} MODE")
            yield holder

    def until_someone_waits(self) -> None:
        """Wait until a session of the product waits for a lock."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename LIKE 'gpubroker_w%'"
        end = time.monotonic() + 10
        while not self.history.number(query):
            assert time.monotonic() < end, "nobody waits"
            time.sleep(0.02)

    @contextmanager
    def heard(self, part: str, words: str, *, within_s: float = 30) -> Iterator[None]:
        """Run the block, and wait for a text in a log."""
        log = self.running.data / "logs" / f"{part}.log"
        before = log.stat().st_size
        yield
        end = time.monotonic() + within_s
        while words not in (said := log.read_bytes()[before:].decode(errors="replace")):
            assert time.monotonic() < end, f"{part} never said {words}: {said[-2000:]}"
            time.sleep(0.05)

    def tidy(self) -> None:
        """Release all leases, and wait until they have ended."""
        end = time.monotonic() + 60
        while ids := [row[0] for row in self.history.rows("SELECT id FROM broker_lease WHERE state <> 'released'")]:
            assert time.monotonic() < end, self.history.stuck()
            for lease in ids:
                self.client.insist("POST", f"leases/{lease}/release", key=f"tidy-{lease}", heard=[])
            time.sleep(0.3)
