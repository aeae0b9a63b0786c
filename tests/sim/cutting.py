"""Random runs on nodes that are repartitioned, with faults."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from broker.domain.repartition.gpu_layouts import GpuLayout, LayoutCatalogue
from broker.domain.repartition.mig_configs import slices_offered
from broker.domain.repartition.repartition_steps import (
    CANCELLABLE_STEPS,
    CLOSED_STEPS,
    FINAL_STEPS,
    ObservedLayout,
    RepartitionStep,
)
from broker.models import Allocation, Gpu, Lease, Repartition, SimulatedNode, SimulatedPod
from broker.models.repartitions import layouts_from_stored
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.node_partitioner import PartitionedNode
from broker.provisioners.simulated_partitioner import SimulatedPartitioner
from broker.services.inventory.gpu_catalogue import gpu_model_spec, plain_profiles
from broker.services.repartition import (
    layout_rows,
    repartition_decisions,
    repartition_planner,
    repartition_reconciler,
)
from ports.rng import Rng
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope
from tests.broker.services.repartition.fixed_layouts import create_fixed_nodes
from tests.sim.faults import Crash
from tests.simulation import MODEL, OPERATOR, Simulation, create_tenant, offering, reload_lease, run_task

PROFILES = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "whole-gpu")
OWN_WILL = {"none", "by_tenant", "expired"}  # a lease that ended otherwise was thrown out
HEALED_WITHIN = timedelta(minutes=12)


class WatchedHands(SimulatedPartitioner):
    """Breaks calls, and checks that a changing node is empty."""

    def __init__(self, world: "Cutting") -> None:
        self.world = world

    def look(self, machine: PartitionedNode, *, now: datetime) -> ObservedLayout:
        self._break(0.03)
        return super().observe(machine, now=now)

    def taint(self, machine: PartitionedNode, *, on: bool) -> None:
        super().taint(machine, on=on)
        self._break(0.03)

    def apply_config(self, machine: PartitionedNode, config: str, *, version: str, now: datetime) -> bool:
        with system_scope():
            held = Allocation.objects.filter(gpu__node=machine.id, released_at=None).count()
        pods = SimulatedPod.objects.filter(nodes__contains=[machine.id]).count()
        assert (held, pods) == (0, 0), f"{machine.name} is told to change under {held} leases and {pods} pods"
        found = super().apply_config(machine, config, version=version, now=now)
        self.world.did["told"] += found
        ill = SimulatedNode.objects.get(node=machine.id).fault
        self.world.suffered |= dict.fromkeys(Repartition.objects.under_way().filter(node=machine.id), ill)
        self._break(0.05)
        return found

    def _break(self, probability: float) -> None:
        if not self.world.calm and self.world.chance.below(probability):
            if self.world.chance.below(0.5):
                raise ClusterUnreachable("the network broke")
            raise Crash("the worker is dead")


class Cutting:
    """A random run with repartitioning, from one seed."""

    def __init__(self, seed: int, sim: Simulation) -> None:
        self.chance, self.sim, self.calm = Rng(seed), sim, False
        self.did: Counter[str] = Counter()
        self.suffered: dict[Repartition, str] = {}  # what each change's latest attempt suffers from
        self.nodes, self.owner = create_fixed_nodes(nodes=3, gpus_per_node=2), create_tenant("Kestrel")
        self.catalogue = LayoutCatalogue(gpu_model_spec(MODEL), plain_profiles(gpu_model_spec(MODEL)))
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
        except (Crash, ProblemError) as stopped:
            self.did[type(stopped).__name__] += 1

    def ask(self) -> None:
        if self.live() > 14:
            return self.time_passes()
        lasts = int(self.chance.uniform(60, 1500))
        self.sim.request_lease(self.owner, offering(self.pick(PROFILES)), max_duration_s=lasts)

    def live(self) -> int:
        with system_scope():
            return Lease.objects.live().count()

    def release(self) -> None:
        with system_scope():
            leases = list(Lease.objects.live().order_by("id"))
        if leases:
            self.sim.release_lease(self.pick(leases))

    def time_passes(self) -> None:
        self.until(self.chance.uniform(1, 60))

    def until(self, seconds: float) -> None:
        """Let time pass; lost messages are replaced by the sweep."""
        ends = self.sim.now + timedelta(seconds=seconds)
        while self.sim.now < ends:
            try:
                self.sim.run(min(10.0, max((ends - self.sim.now).total_seconds(), 0.001)))
                for hint in repartition_reconciler.due_repartitions(now=self.sim.now):
                    run_task(*hint, now=self.sim.now)
            except Crash:
                self.did["Crash"] += 1
        self.sim.sweep()

    def plan(self) -> None:
        repartition_planner.plan_and_approve(self.nodes[0].cluster_id, now=self.sim.now)

    def falls_ill(self) -> None:
        ill = [self.pick(("wedges", "wedges", "dawdles", "fails")) for _ in range(self.pick((1, 1, 1, 4)))]
        SimulatedNode.objects.filter(node=self.pick(self.nodes).pk).update(pending_faults=ill)

    def taint_vanishes(self) -> None:
        SimulatedNode.objects.filter(node=self.pick(self.nodes).pk).update(tainted=False)

    def operator_decides(self) -> None:
        """Retry a quarantined change, or cancel a waiting one."""
        for node in self.nodes:
            last = Repartition.objects.select_related("node__cluster").filter(node=node).order_by("-planned_at").first()
            if last and last.step == RepartitionStep.QUARANTINED:
                decide = (
                    repartition_decisions.roll_back_repartition
                    if self.chance.below(0.3)
                    else repartition_decisions.retry_repartition
                )
                decide(last, why="sim", actor=OPERATOR, now=self.sim.now)
            elif last and RepartitionStep(last.step) in CANCELLABLE_STEPS and self.chance.below(0.2):
                repartition_decisions.cancel_repartition(last, why="sim", actor=OPERATOR, now=self.sim.now)

    def check(self) -> None:
        """Assert the invariants."""
        with system_scope():
            ended = set(Lease.objects.values_list("end_reason", flat=True))
        assert ended <= OWN_WILL, f"somebody was thrown out: {ended - OWN_WILL}"
        last = {change.node_id: change for change in Repartition.objects.order_by("planned_at")}
        for node in self.nodes:
            its = list(Gpu.objects.filter(node=node))
            change = last.get(node.pk)
            closed = change is not None and RepartitionStep(change.step) in CLOSED_STEPS
            assert {gpu.out_of_service_since is not None for gpu in its} == {closed}, (
                f"{node}: {change and change.step}"
            )
            for gpu in its:
                now = layout_rows.current_layout(gpu)
                assert now is not None
                assert now in self.catalogue.layouts
            real = SimulatedNode.objects.filter(node=node.pk).first()
            if real and not closed:
                assert slices_offered(layouts_from_stored(real.cuts).values()) == slices_offered(
                    layout_rows.current_layout(c) or GpuLayout() for c in its
                )

    def rest(self) -> None:
        """Stop the faults, and wait until every change has ended."""
        self.calm = True
        SimulatedNode.objects.update(pending_faults=[])
        for _ in range(400):
            if not Repartition.objects.under_way().exists():
                break
            self.until(30)
        assert not Repartition.objects.under_way().exists()
        assert {RepartitionStep(step) for step in Repartition.objects.values_list("step", flat=True)} <= FINAL_STEPS | {
            RepartitionStep.PLANNED
        }

    def healed(self) -> list[timedelta]:
        """Count changes that hung and recovered without an operator."""
        taken = []
        for change in Repartition.objects.filter(step=RepartitionStep.DONE, attempts=2):
            if self.suffered[change]:
                continue
            moments = {step.step: step.at for step in change.steps.order_by("-seq")}
            taken.append(change.step_at - moments[RepartitionStep.REPARTITIONING.value])
        return taken


def lost(world: Cutting) -> list[str]:
    """Return leases that ended unexpectedly."""
    with system_scope():
        odd = Lease.objects.exclude(end_reason__in=OWN_WILL)
        return [f"{lease.pk}: {reload_lease(lease).end_reason}" for lease in odd]
