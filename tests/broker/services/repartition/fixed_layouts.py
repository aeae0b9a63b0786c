"""A pool of GPUs partitioned in advance, for tests of its repartitioning."""

from dataclasses import dataclass
from datetime import timedelta

from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Cluster, Gpu, Node, Repartition, RepartitionLogEntry, SimulatedNode
from broker.services.inventory.hardware import SimulatedRack
from broker.services.repartition import (
    layout_rows,
    repartition_decisions,
    repartition_planner,
    repartition_reconciler,
)
from tests.simulation import MODEL, OPERATOR, REGION, Simulation, create_fleet

ONES, THREES = GpuLayout.from_names(["1g.10gb"] * 7), GpuLayout.from_names(["3g.40gb"] * 2)


def create_fixed_nodes(nodes: int = 1, gpus_per_node: int = 2, cut: GpuLayout = ONES) -> list[Node]:
    """Set up nodes whose GPUs all have the same layout."""
    create_fleet(SimulatedRack("mig-1", REGION, MODEL, nodes=nodes, gpus_per_node=gpus_per_node))
    for gpu in Gpu.objects.all():
        layout_rows.store_gpu_layout(gpu, cut)
    Cluster.objects.update(auto_repartition=True)
    return list(Node.objects.select_related("cluster").order_by("name"))


def break_node(node: Node, *ills: str) -> None:
    """Make the next repartition attempts of a node fail in these ways."""
    SimulatedNode.objects.update_or_create(
        node=node.pk,
        defaults={"pending_faults": list(ills)},
        create_defaults={"pending_faults": list(ills), "cuts": layout_of(node)},
    )


def layout_of(node: Node) -> dict[str, dict[str, int]]:
    return {str(gpu.index): dict(now.counts) for gpu in node.gpus.all() if (now := layout_rows.current_layout(gpu))}


def propose_repartition(node: Node, sim: Simulation) -> Repartition:
    """Plan, and return what is proposed for a node."""
    repartition_planner.propose_repartitions(node.cluster_id, now=sim.now)
    return Repartition.objects.select_related("node__cluster").get(node=node, step=RepartitionStep.PLANNED)


def approve_repartition(node: Node, sim: Simulation) -> Repartition:
    change = propose_repartition(node, sim)
    repartition_decisions.approve_repartition(change, actor=OPERATOR, now=sim.now)
    return change


@dataclass
class Driver:
    """Reconciles one repartition every five seconds, as the scheduler does."""

    sim: Simulation
    change: Repartition

    def on(self, seconds: float = 5) -> RepartitionStep:
        self.sim.clock.at += timedelta(seconds=seconds)
        repartition_reconciler.reconcile_repartition(self.change.pk, now=self.sim.now)
        return self.step

    @property
    def step(self) -> RepartitionStep:
        self.change.refresh_from_db()
        return RepartitionStep(self.change.step)

    def until(self, *steps: RepartitionStep, minutes: float = 60) -> float:
        """Reconcile until one of these steps is reached; return the seconds."""
        began = self.sim.now
        while self.step not in steps:
            assert self.sim.now - began < timedelta(minutes=minutes), f"still {self.change.step}: {self.change.why}"
            self.on()
        return (self.sim.now - began).total_seconds()

    @property
    def path(self) -> str:
        rows = RepartitionLogEntry.objects.filter(change=self.change).order_by("seq")
        return " ".join(rows.values_list("step", flat=True))
