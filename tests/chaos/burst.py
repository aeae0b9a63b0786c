"""Launch in bursts while everything dies: `python -m tests.chaos.burst [--launches 200] [--seed N]`.

Nothing acknowledged may be lost, doubled, or charged for time it was not active. Exits 0 only when all holds.
"""

import argparse
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import recovery
from tests.chaos.checks import CHECKS, Check, Evidence
from tests.chaos.client import Client, Launch
from tests.chaos.fault_injector import FaultInjector, Kill
from tests.chaos.history import History
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
MIX = (("1g.10gb", 1), ("1g.10gb", 1), ("1g.10gb", 2), ("2g.20gb", 1), ("3g.40gb", 1), ("whole-gpu", 1))
DRILLS = ("worker with its children", "Valkey and its file", "PostgreSQL")
SHORT_S, LONG_S = 60, 3600
CALM_S = 120.0


@dataclass
class Burst:
    """One burst of launches over one product while its processes are killed."""

    running: Running
    count: int
    plan: Sequence[str]
    gap_s: float
    chance: random.Random
    say: Callable[[str], None] = print
    drills: Sequence[str] = ()
    kills: list[Kill] = field(default_factory=list)
    homes: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        world = self.running.world
        self.client = Client(self.running.port, str(world["token"]))
        self.history = History(self.running)
        self.fault_injector = FaultInjector(self.running, self.chance)
        self.launches = [self._intent(number) for number in range(self.count)]
        self.pending: list[Future[None]] = []

    def _intent(self, number: int) -> Launch:
        world, (profile, quantity) = self.running.world, self.chance.choice(MIX)
        body = {
            "name": f"burst-{number:03}",
            "project": world["project"],
            "offering": world["offerings"][profile],  # type: ignore[index]
            "quantity": quantity,
            # Early ones may be short: they end by themselves while the burst goes on.
            "max_duration_s": SHORT_S if number < self.count // 2 and self.chance.random() < 0.3 else LONG_S,
        }
        return Launch(number, f"key-{number}-{self.chance.randrange(10**9)}", body)

    def launch_during_faults(self, pool: ThreadPoolExecutor) -> None:
        """Launch and release in waves while processes are killed."""
        waves = self._waves()
        for wave, kind in zip(waves, self.plan, strict=False):
            self._strike(pool, wave, kind)
            time.sleep(self.gap_s * self.chance.uniform(0.7, 1.3))

    def drill(self, pool: ThreadPoolExecutor) -> None:
        """Kill once at a time, and measure the recovery time of each kill."""
        for wave, kind in zip(self._waves()[len(self.plan) :], self.drills, strict=True):
            ahead = len(wave) // 2
            self.pending += [pool.submit(self.client.launch, launch) for launch in wave[:ahead]]
            end = time.monotonic() + 15
            while self.history.standing().provisioning < min(ahead, 3) and time.monotonic() < end:
                time.sleep(0.05)
            self._strike(pool, wave[ahead:], kind)
            self.homes[kind] = self.calm()

    def _waves(self) -> list[list[Launch]]:
        count = len(self.plan) + len(self.drills)
        return [
            self.launches[number * self.count // count : (number + 1) * self.count // count] for number in range(count)
        ]

    def _strike(self, pool: ThreadPoolExecutor, wave: Sequence[Launch], kind: str) -> None:
        provisioning, landed = self.history.standing().provisioning, self.client.landed
        for launch in wave:
            self.pending.append(pool.submit(self.client.launch, launch))
            if self.chance.random() < 0.1:  # somebody impatient sends the same again at once
                self.pending.append(pool.submit(self.client.launch, launch))
        self._release_some(pool)
        self._wait_for_traffic(landed + self.chance.randrange(len(wave) // 3 + 1))
        kill = self.fault_injector.kill(kind, in_flight=self.client.in_flight, provisioning=provisioning)
        self.kills.append(kill)
        self.say(f"killed {kind}: {kill.in_flight} requests in flight, {provisioning} leases provisioning")

    def _wait_for_traffic(self, landed: int) -> None:
        """Wait until some requests have landed and others are on their way."""
        began = time.monotonic()
        while (waited := time.monotonic() - began) < 5:
            wanted = 3 if waited < 0.5 else 1
            if self.client.landed >= landed and self.client.in_flight >= wanted:
                return
            time.sleep(0.001)

    def _release_some(self, pool: ThreadPoolExecutor) -> None:
        """Release leases during the run, whatever their state."""
        meant = [one for one in self.launches if one.number % 4 == 0 and one.acknowledged and not one.released]
        for launch in self.chance.sample(meant, (len(meant) + 1) // 2):
            self.pending.append(pool.submit(self.client.release, launch))

    def calm(self) -> float:
        """Wait until all intents are answered and leases rest."""
        for future in self.pending:
            future.result()
        self.history.settle(CALM_S)
        took = time.time() - self.kills[-1].at
        stands = self.history.standing()
        self.say(f"calm: {stands.active} active, {stands.queued} queued behind a full fleet")
        return took

    def send_home(self, pool: ThreadPoolExecutor) -> None:
        """Release active leases in rounds, so that all are served."""
        while self.history.standing().live:
            active = {str(row[0]) for row in self.history.rows("SELECT id FROM broker_lease WHERE state = 'active'")}
            going = [launch for launch in self.launches if launch.leases & active]
            list(pool.map(self.client.release, going))
            self.history.settle(CALM_S)

    def run(self) -> list[Check]:
        """Launch during faults, wait, release all, and check the outcome."""
        self.history.remember_pods()
        polling = threading.Thread(target=self.client.poll)
        polling.start()
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                self.launch_during_faults(pool)
                took = self.calm()
                self.send_home(pool)
                self.drill(pool)
                self.send_home(pool)
            finally:
                self.client.giving_up.set()
                polling.join()
        self.client.close()
        self.running.run("tests.chaos.rate")
        self.evidence = Evidence(self.launches, self.client.answers, self.history)
        return [
            *(check(self.evidence) for check in CHECKS),
            recovery.api(self.kills, self.client.polls),
            recovery.work(self.kills, self.history),
            *(recovery.home(kind, took) for kind, took in {"the burst": took, **self.homes}.items()),
        ]

    def verdict(self) -> str:
        """Return the result in one line."""
        seen = self.evidence
        return (
            f"chaos: {len(self.launches)} launches, {len(self.kills)} kills, {seen.lost} lost,"
            f" {seen.doubled} doubled, {seen.overcharged} overcharged"
        )


def quick(running: Running, launches: int, chance: random.Random) -> Burst:
    """A small burst: each kind of kill once."""
    return Burst(running, launches, EACH_ONCE, 1.5, chance)


def full(running: Running, launches: int, chance: random.Random) -> Burst:
    """Every kind of kill three times over, then one at a time."""
    return Burst(running, launches, FULL, 4.0, chance, drills=DRILLS)


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.burst")
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="what is launched, released and killed when")
    parser.add_argument("--quick", action="store_true", help="kill each kind once, in quick succession")
    parser.add_argument("--logs", type=Path, help="where to keep the product's logs")
    return parser.parse_args()


def main() -> int:
    """Run one burst and print its account."""
    chosen = options()
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the product ends with us
    began = time.monotonic()
    with product(nodes=2 if chosen.launches > 60 else 1, keep_logs=chosen.logs) as running:
        print(f"seed {seed}; the product is ready after {time.monotonic() - began:.1f} s", flush=True)
        burst = (quick if chosen.quick else full)(running, chosen.launches, random.Random(seed))
        checks = burst.run()
        burst.history.close()
    for check in checks:
        print(check)
    print(f"took {time.monotonic() - began:.0f} s")
    print(burst.verdict())
    return 0 if all(check.holds for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
