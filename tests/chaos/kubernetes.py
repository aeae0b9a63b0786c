"""A long random life on a real control plane: `python -m tests.chaos.kubernetes 10000 [seed [seconds]]`.

Real: etcd, API server, controllers, scheduler, the product's services, provisioner and agent, PostgreSQL. Played: the
kubelets (kwok), HTTP faults (a proxy in front of the API server), the workers' deaths (an exception nobody catches),
and hours (our clock jumps, and the proxy tells the cluster's moments as so much later). What a life came to is printed
and kept in build/kubernetes_run.json.
"""

import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
if not apps.ready:
    django.setup()

from broker.models import Repartition
from tests.chaos import kubernetes_checks as checks
from tests.chaos import kubernetes_disasters as disasters
from tests.chaos import kubernetes_keeping as keeping
from tests.chaos.kubernetes_faults import STEPS, nobody_holds, nodes_have_power, plugin_reports_all
from tests.chaos.kubernetes_spans import UNEXPLAINED
from tests.chaos.kubernetes_world import World
from tests.controlplane.plane import ControlPlane

LOOK_EVERY, TELL_EVERY, SETTLE_S = 50, 500, 240.0
REPORT = Path("build", "kubernetes_run.json")
SETTLE_FASTER_S = 2.0  # of our time with each look, once only waiting is left
STEPS_A_LEASE = 100  # at most, of which none becomes active
PACE_S = 0.06  # a step takes at least so long: leases need time to live in


@dataclass
class Report:
    """Result of a run."""

    seed: int
    steps: int = 0
    took_s: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)  # of what was planned for calls: how many ran into it
    seconds_in: Counter[str] = field(default_factory=Counter)
    leases: Counter[str] = field(default_factory=Counter)
    never_ran: Counter[str] = field(default_factory=Counter)  # of those that nobody let go of: why
    refused_by_quota: int = 0
    workers_killed: int = 0
    agents_killed: int = 0
    leaked: list[str] = field(default_factory=list)
    double_allocations: int = 0
    run_twice: list[str] = field(default_factory=list)
    written_twice: list[str] = field(default_factory=list)
    quota_overshoots: int = 0
    seconds: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)  # by pods and not charged, by why; and charged while none held
    let_go_too_late_s: int = 0  # paid for what had ended by itself a moment before, which nobody had seen
    wrong_times: list[str] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    wedges_healed: int = 0
    became_active: int = 0
    active_unit_s: int = 0

    @property
    def has_lived(self) -> bool:
        """Return whether enough leases ran for a meaningful result."""
        return self.became_active * STEPS_A_LEASE >= self.steps

    @property
    def is_clean(self) -> bool:
        wrong = self.leaked or self.run_twice or self.written_twice or self.unfinished or self.unexpected
        counted = self.double_allocations or self.quota_overshoots or any(self.seconds.values())
        counted = counted or any(self.held.get(why) for why in UNEXPLAINED)
        return self.has_lived and not (wrong or self.wrong_times or counted)


def live(plane: ControlPlane, *, steps: int, seed: int, within_s: float = 1e9) -> Report:
    """Run the steps, repair and end everything, and count."""
    report, began = Report(seed), time.monotonic()
    witness = checks.Witness(plane.api)
    witness.start()
    with World(plane, seed) as world:
        kinds, weights = list(STEPS), list(STEPS.values())
        while report.steps < steps and time.monotonic() - began < within_s:
            (step,) = world.chance.choices(kinds, weights)
            report.done[step.__name__] += 1
            report.steps += 1
            since, world.proxy.playing = time.monotonic(), step.__name__
            step(world)
            world.turn()
            report.quota_overshoots += checks.overshoot(world)
            time.sleep(max(0.0, since + PACE_S - time.monotonic()))
            report.seconds_in[step.__name__] += round(time.monotonic() - since, 3)  # type: ignore[assignment]
            if report.steps % LOOK_EVERY == 0:
                disasters.check_foreign_objects(world)
                disasters.cut_while_held(world)
                keeping.look(world, witness.lives())
            if report.steps % TELL_EVERY == 0:
                longest = {name: round(s) for name, s in report.seconds_in.most_common(6)}
                print(f"{report.steps} steps, {time.monotonic() - began:.0f} s: {longest}", flush=True)
        report.unfinished = come_to_rest(world, witness)
        report.leaked = checks.leaked(world)
        report.double_allocations = checks.double_allocations()
        report.run_twice, report.written_twice = sorted(witness.twice), sorted(witness.written_twice)
        report.wrong_times = [*keeping.wrong_times(), *keeping.wrong_hours(world)]
        report.kept = keeping.counts()
        report.seconds, report.active_unit_s = checks.seconds(world, witness)
        report.held = checks.held(world, witness)
        report.let_go_too_late_s = checks.let_go_too_late(world, witness)
        report.became_active = len({each.pk for each in world.leases() if each.active_at})
        report.leases = Counter(f"{each.state} {each.end_reason}" for each in world.leases())
        report.never_ran = checks.why_they_never_ran()
        report.refused_by_quota, report.met = world.refused, world.proxy.met
        report.workers_killed, report.agents_killed = world.killed, world.agents_killed
        report.unexpected, report.wedges_healed = world.unexpected, disasters.wedges_healed()
    witness.over.set()
    report.took_s = round(time.monotonic() - began, 1)
    return report


def come_to_rest(world: World, witness: checks.Witness) -> list[str]:
    """Repair, end and delete everything; return what remains."""
    world.proxy.faults.clear()
    world.proxy.silent_until = 0.0
    world.fuse.calls = world.pen.calls = 0
    nodes_have_power(world)
    plugin_reports_all(world)
    disasters.neighbours_leave(world)
    is_looked_at, end = False, time.monotonic() + SETTLE_S
    while time.monotonic() < end:
        world.jumps.jump(timedelta(seconds=SETTLE_FASTER_S))
        disasters.operator_looks(world)
        nobody_holds(world)
        for lease in world.leases("queued", "provisioning", "active", "stopping", "stopped"):
            world.people.release_lease(lease)
        world.turn()
        under_way = Repartition.objects.under_way().exists()
        alive = [each for each in world.leases() if each.state != "released"]
        if not alive and not under_way:
            if not is_looked_at:  # what was kept is there to the last
                keeping.look(world, witness.lives())
                is_looked_at = True
            if keeping.delete_all(world) and not checks.leaked(world):
                return []
        time.sleep(0.1)
    cutting = [f"{each.node} {each.step} {each.why}" for each in Repartition.objects.under_way()]
    return (
        cutting
        + [
            f"{each.pk} {each.state} {each.conditions} {each.progress}"
            for each in world.leases()
            if each.state != "released"
        ]
        + keeping.unfinished()
    )


def main(steps: str = "10000", seed: str = "", within_s: str = "1e9") -> None:
    chosen = int(seed) if seed else int.from_bytes(os.urandom(4), "big")
    print(f"seed {chosen}: {steps} steps, load {os.getloadavg()[0]:.1f}", flush=True)
    with ControlPlane() as plane:
        report = live(plane, steps=int(steps), seed=chosen, within_s=float(within_s))
    said = json.dumps(report.__dict__ | {"load": round(os.getloadavg()[0], 1)}, indent=1)
    print(said, flush=True)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(said + "\n")
    sys.exit(0 if report.is_clean else 1)


if __name__ == "__main__":
    main(*sys.argv[1:4])
