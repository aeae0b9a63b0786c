"""Random lives on nodes that are cut anew all the time: leases come and go, nodes wedge, workers die, calls fail."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from broker.domain.cuts import Catalogue, Cut
from broker.domain.mig_configs import slots_of
from broker.domain.repartition import CANCELLABLE, CLOSED, OVER, NodeSeen, Step
from broker.models import Allocation, Gpu, LayoutChange, Lease, SimulatedNode, SimulatedPod
from broker.models.layouts import cuts_from
from broker.provisioners.base import Unanswered
from broker.provisioners.hands import Machine
from broker.provisioners.simulated_hands import SimulatedHands
from broker.services.catalogue import plain_profiles, spec_of
from broker.services.layouts import cards, deciding, planning, stepping
from ports.chance import Chance
from tenants.services.refusals import Refused
from tenants.services.walls import as_sweep
from tests.broker.services.layouts import fixed
from tests.sim.faults import Crash
from tests.world import MODEL, OPERATOR, Life, fresh, home, offering, work

PROFILES = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "card")
OWN_WILL = {"none", "by_tenant", "expired"}  # a lease that ended otherwise was thrown out
HEALED_WITHIN = timedelta(minutes=12)


class WatchedHands(SimulatedHands):
    """Breaks as networks do, and swears that nobody is on a node that is told to change."""

    def __init__(self, world: "Cutting") -> None:
        self.world = world

    def look(self, machine: Machine, *, now: datetime) -> NodeSeen:
        self._break(0.03)
        return super().look(machine, now=now)

    def taint(self, machine: Machine, *, on: bool) -> None:
        super().taint(machine, on=on)
        self._break(0.03)

    def tell(self, machine: Machine, config: str, *, version: str, now: datetime) -> bool:
        with as_sweep():
            held = Allocation.objects.filter(gpu__node=machine.id, released_at=None).count()
        pods = SimulatedPod.objects.filter(nodes__contains=[machine.id]).count()
        assert (held, pods) == (0, 0), f"{machine.name} is told to change under {held} leases and {pods} pods"
        told = super().tell(machine, config, version=version, now=now)
        self.world.did["told"] += told
        ill = SimulatedNode.objects.get(node=machine.id).ill
        self.world.suffered |= dict.fromkeys(LayoutChange.objects.under_way().filter(node=machine.id), ill)
        self._break(0.05)
        return told

    def _break(self, probability: float) -> None:
        if not self.world.calm and self.world.chance.below(probability):
            if self.world.chance.below(0.5):
                raise Unanswered("the network broke")
            raise Crash("the worker is dead")


class Cutting:
    """One world, one seed."""

    def __init__(self, seed: int, life: Life) -> None:
        self.chance, self.life, self.calm = Chance(seed), life, False
        self.did: Counter[str] = Counter()
        self.suffered: dict[LayoutChange, str] = {}  # what each change's latest attempt suffers from
        self.nodes, self.owner = fixed(nodes=3, cards_per_node=2), home("Kestrel")
        self.catalogue = Catalogue(spec_of(MODEL), plain_profiles(spec_of(MODEL)))
        acts: list[tuple[int, Callable[[], None]]] = [
            (20, self.ask),
            (6, self.release),
            (50, self.time_passes),
            (10, self.plan),
            (2, self.falls_ill),
            (1, self.taint_vanishes),
            (2, self.operator_decides),
        ]
        self.acts = [act for weight, act in acts for _ in range(weight)]

    def pick(self, things: Any) -> Any:
        return things[int(self.chance.uniform(0, len(things)))]

    def step(self) -> None:
        act = self.pick(self.acts)
        self.did[act.__name__] += 1
        try:
            act()
        except (Crash, Refused) as stopped:
            self.did[type(stopped).__name__] += 1

    def ask(self) -> None:
        if self.live() > 14:
            return self.time_passes()
        lasts = int(self.chance.uniform(60, 1500))
        self.life.ask(self.owner, offering(self.pick(PROFILES)), max_duration_s=lasts)

    def live(self) -> int:
        with as_sweep():
            return Lease.objects.live().count()

    def release(self) -> None:
        with as_sweep():
            leases = list(Lease.objects.live().order_by("id"))
        if leases:
            self.life.release(self.pick(leases))

    def time_passes(self) -> None:
        self.until(self.chance.uniform(1, 60))

    def until(self, seconds: float) -> None:
        """Let time pass; a hint whose worker dies is lost, and the beat's next one stands for it."""
        ends = self.life.now + timedelta(seconds=seconds)
        while self.life.now < ends:
            try:
                self.life.run(min(10.0, max((ends - self.life.now).total_seconds(), 0.001)))
                for hint in stepping.due(now=self.life.now):
                    work(*hint, now=self.life.now)
            except Crash:
                self.did["Crash"] += 1
        self.life.sweep()

    def plan(self) -> None:
        planning.carry_out(self.nodes[0].cluster_id, now=self.life.now)

    def falls_ill(self) -> None:
        ill = [self.pick(("wedges", "wedges", "dawdles", "fails")) for _ in range(self.pick((1, 1, 1, 4)))]
        SimulatedNode.objects.filter(node=self.pick(self.nodes).pk).update(ills=ill)

    def taint_vanishes(self) -> None:
        SimulatedNode.objects.filter(node=self.pick(self.nodes).pk).update(tainted=False)

    def operator_decides(self) -> None:
        """Try again what is quarantined, or call off what waits."""
        for node in self.nodes:
            last = (
                LayoutChange.objects.select_related("node__cluster")
                .filter(node=node)
                .order_by("-planned_at")
                .first()
            )
            if last and last.step == Step.QUARANTINED:
                decide = deciding.take_back if self.chance.below(0.3) else deciding.again
                decide(last, why="sim", actor=OPERATOR, now=self.life.now)
            elif last and Step(last.step) in CANCELLABLE and self.chance.below(0.2):
                deciding.cancel(last, why="sim", actor=OPERATOR, now=self.life.now)

    def check(self) -> None:
        """Assert what must be true at every moment."""
        with as_sweep():
            ended = set(Lease.objects.values_list("end_reason", flat=True))
        assert ended <= OWN_WILL, f"somebody was thrown out: {ended - OWN_WILL}"
        last = {change.node_id: change for change in LayoutChange.objects.order_by("planned_at")}
        for node in self.nodes:
            its = list(Gpu.objects.filter(node=node))
            change = last.get(node.pk)
            closed = change is not None and Step(change.step) in CLOSED
            assert {card.closed_since is not None for card in its} == {closed}, (
                f"{node}: {change and change.step}"
            )
            for card in its:
                now = cards.cut_now(card)
                assert now is not None
                assert now in self.catalogue.cuts
            real = SimulatedNode.objects.filter(node=node.pk).first()
            if real and not closed:
                assert slots_of(cuts_from(real.cuts).values()) == slots_of(
                    cards.cut_now(c) or Cut() for c in its
                )

    def rest(self) -> None:
        """Bring the calm: nothing breaks any more, and every change must come to its end."""
        self.calm = True
        SimulatedNode.objects.update(ills=[])
        for _ in range(400):
            if not LayoutChange.objects.under_way().exists():
                break
            self.until(30)
        assert not LayoutChange.objects.under_way().exists()
        assert {Step(step) for step in LayoutChange.objects.values_list("step", flat=True)} <= OVER | {
            Step.PLANNED
        }

    def healed(self) -> list[timedelta]:
        """How long each change took that wedged once, and obeyed when it was told again without a human."""
        taken = []
        for change in LayoutChange.objects.filter(step=Step.DONE, attempts=2):
            if self.suffered[change]:
                continue
            moments = {step.step: step.at for step in change.steps.order_by("-seq")}
            taken.append(change.step_at - moments[Step.CUTTING.value])
        return taken


def lost(world: Cutting) -> list[str]:
    """Name leases that ended though they were to go on: there must be none."""
    with as_sweep():
        odd = Lease.objects.exclude(end_reason__in=OWN_WILL)
        return [f"{lease.pk}: {fresh(lease).end_reason}" for lease in odd]
