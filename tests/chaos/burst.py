"""Launch in bursts while everything dies: `python -m tests.chaos.burst [--launches 200] [--seed N]`.

Nothing acknowledged may be lost, doubled, or charged for time it was not active. Exits 0 only when all holds.
"""

import argparse
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.chaos import recovery
from tests.chaos.checks import CHECKS, Check, Evidence
from tests.chaos.client import Client, Launch
from tests.chaos.history import History
from tests.chaos.nemesis import Kill, Nemesis
from tests.chaos.running import Running, product

THREADS = 8
EACH_ONCE = (
    "worker's child",
    "PostgreSQL",
    "Valkey and its file",
    "worker's main process",
    "Valkey",
    "worker with its children",
)
# Neighbours differ: what is killed again before it has lived for a while counts as unable to live.
FULL = (*EACH_ONCE, "relay", *EACH_ONCE, "beat", "PostgreSQL", "web", *EACH_ONCE)
MIX = (("1g.10gb", 1), ("1g.10gb", 1), ("1g.10gb", 2), ("2g.20gb", 1), ("3g.40gb", 1), ("card", 1))
SHORT_S, LONG_S = 60, 3600
CALM_S = 90.0


@dataclass
class Burst:
    """One storm over one product."""

    running: Running
    count: int
    plan: Sequence[str]
    gap_s: float
    chance: random.Random
    say: Callable[[str], None] = print
    kills: list[Kill] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = self.running.world
        self.client = Client(self.running.port, str(world["token"]))
        self.history = History(self.running)
        self.nemesis = Nemesis(self.running, self.chance)
        self.launches = [self._intent(number) for number in range(self.count)]
        self.pending: list[Future[None]] = []

    def _intent(self, number: int) -> Launch:
        world, (profile, quantity) = self.running.world, self.chance.choice(MIX)
        body = {
            "name": f"burst-{number:03}",
            "project": world["project"],
            "offering": world["offerings"][profile],  # type: ignore[index]
            "quantity": quantity,
            "max_duration_s": SHORT_S if self.chance.random() < 0.15 else LONG_S,
        }
        return Launch(number, f"key-{number}-{self.chance.randrange(10**9)}", body)

    def storm(self, pool: ThreadPoolExecutor) -> None:
        """Wave after wave: launches and releases set out, something dies while they are on their way."""
        waves = len(self.plan)
        for number, kind in enumerate(self.plan):
            wave = self.launches[number * self.count // waves : (number + 1) * self.count // waves]
            landed = self.client.landed
            self._send(pool, wave)
            self._kill(kind, after=landed + self.chance.randrange(max(len(wave) // 2, 1)))
            time.sleep(self.gap_s * self.chance.uniform(0.7, 1.3))

    def _send(self, pool: ThreadPoolExecutor, wave: Sequence[Launch]) -> None:
        for launch in wave:
            self.pending.append(pool.submit(self.client.launch, launch))
            if self.chance.random() < 0.1:  # somebody impatient sends the same again at once
                self.pending.append(pool.submit(self.client.launch, launch))
        known = [launch for launch in self.launches if launch.acknowledged and not launch.released]
        for launch in self.chance.sample(known, len(known) // 6):
            self.pending.append(pool.submit(self.client.release, launch))

    def _kill(self, kind: str, *, after: int) -> None:
        provisioning = self.history.standing().provisioning
        end = time.monotonic() + 5
        while (self.client.landed < after or not self.client.in_flight) and time.monotonic() < end:
            time.sleep(0.001)
        kill = self.nemesis.kill(kind, in_flight=self.client.in_flight, provisioning=provisioning)
        self.kills.append(kill)
        self.say(f"killed {kind}: {kill.in_flight} requests in flight, {provisioning} leases provisioning")

    def calm(self) -> float:
        """Wait until every intent is answered and every lease stands still; return how long since the last kill."""
        for future in self.pending:
            future.result()
        self.history.settle(CALM_S)
        took = time.time() - self.kills[-1].at
        stands = self.history.standing()
        self.say(f"calm: {stands.active} active, {stands.queued} queued behind a full fleet")
        return took

    def send_home(self, pool: ThreadPoolExecutor) -> None:
        """Release what is active, round after round, so that everyone in the queue has a turn."""
        while self.history.standing().live:
            active = {
                str(row[0]) for row in self.history.rows("SELECT id FROM broker_lease WHERE state = 'active'")
            }
            going = [launch for launch in self.launches if launch.leases & active]
            list(pool.map(self.client.release, going))
            self.history.settle(CALM_S)

    def run(self) -> list[Check]:
        """Storm, calm, home, and the account of it."""
        self.history.remember_pods()
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                self.storm(pool)
                took = self.calm()
                self.send_home(pool)
            except BaseException:
                self.client.giving_up.set()
                raise
        self.running.run("tests.chaos.rate")
        self.evidence = Evidence(self.launches, self.client.answers, self.history)
        return [
            *(check(self.evidence) for check in CHECKS),
            recovery.api(self.kills, self.client.answers),
            recovery.work(self.kills, self.history),
            recovery.home(self.kills, self.history),
            recovery.calm(took),
        ]

    def verdict(self) -> str:
        """Sum it up in one line."""
        seen = self.evidence
        return (
            f"chaos: {len(self.launches)} launches, {len(self.kills)} kills, {seen.lost} lost,"
            f" {seen.doubled} doubled, {seen.overcharged} overcharged"
        )


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.burst")
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="what is launched, released and killed when")
    parser.add_argument("--quick", action="store_true", help="kill each kind once, in quick succession")
    return parser.parse_args()


def main() -> int:
    """Run one burst and print its account."""
    chosen = options()
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the product ends with us
    began = time.monotonic()
    with product(nodes=2 if chosen.launches > 60 else 1) as running:
        print(f"seed {seed}; the product is ready after {time.monotonic() - began:.1f} s", flush=True)
        plan, gap_s = (EACH_ONCE, 2.0) if chosen.quick else (FULL, 4.0)
        burst = Burst(running, chosen.launches, plan, gap_s, random.Random(seed))
        checks = burst.run()
        burst.history.close()
    for check in checks:
        print(check)
    print(f"took {time.monotonic() - began:.0f} s")
    print(burst.verdict())
    return 0 if all(check.holds for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
