"""A cluster and an outbox that fail at random."""

from collections.abc import Callable
from datetime import datetime

from broker.models import SimulatedPod
from broker.provisioners.base import ClusterUnreachable, Observation, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from ports.rng import Rng


class Crash(Exception):
    """Crash of a worker; its uncommitted changes are lost."""


class Faults:
    """The probability of each fault; zero in calm."""

    KINDS = ("crash_before", "crash_after", "silent_before", "silent_after", "interleave", "drop", "double")

    def __init__(self, chance: Rng) -> None:
        self.chance, self.calm, self.hit = chance, False, dict.fromkeys(self.KINDS, 0)
        # Pods whose worker was told that they are there, and that nobody has tried to take down since.
        self.known: set[str] = set()
        self.answered: set[str] = set()  # those of the present step: a worker that dies takes its knowledge along
        # Each run draws its own mixture: some faults only show where another one is absent.
        self.rate = {kind: chance.uniform(0, 0.12) if chance.below(0.7) else 0.0 for kind in self.KINDS}

    def strike(self, kind: str) -> bool:
        struck = not self.calm and self.chance.below(self.rate[kind])
        self.hit[kind] += struck
        return struck


class FaultyCluster(SimulatedProvisioner):
    """The simulated cluster behind a breaking network."""

    def __init__(self, faults: Faults, meanwhile: Callable[[str], None]) -> None:
        self.faults, self.meanwhile = faults, meanwhile

    def ensure(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        answer = self._through(order, lambda: super(FaultyCluster, self).ensure(order, now=now))
        self.faults.known.add(order.name)
        self.faults.answered.add(order.name)
        return answer

    def observe(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        return self._through(order, lambda: super(FaultyCluster, self).observe(order, now=now))

    def remove(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        self.faults.known.discard(order.name)
        return self._through(order, lambda: super(FaultyCluster, self).remove(order, now=now))

    def remove_named(self, name: str, *, now: datetime) -> None:
        self.faults.known.discard(name)
        super().remove_named(name, now=now)

    def _through(self, order: ProvisionSpec, call: Callable[[], Observation]) -> Observation:
        self._break("before")
        if self.faults.strike("interleave"):
            self.meanwhile(order.lease_id)
        answer = call()
        if self.faults.strike("interleave"):
            self.meanwhile(order.lease_id)
        self._break("after")
        return answer

    def _break(self, when: str) -> None:
        if self.faults.strike(f"crash_{when}"):
            raise Crash(when)
        if self.faults.strike(f"silent_{when}"):
            raise ClusterUnreachable(when)


def lose_a_pod(chance: Rng) -> None:
    """Delete one pod as if manually."""
    names = sorted(SimulatedPod.objects.values_list("name", flat=True))
    if names:
        SimulatedPod.objects.filter(name=names[int(chance.uniform(0, len(names)))]).delete()
