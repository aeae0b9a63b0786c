"""A pool whose cards are cut in advance, for tests of how that is changed."""

from dataclasses import dataclass
from datetime import timedelta

from broker.domain.cuts import Cut
from broker.domain.repartition import Step
from broker.models import Cluster, Gpu, LayoutChange, LayoutStep, Node, SimulatedNode
from broker.services.inventory import Rack
from broker.services.layouts import cards, deciding, planning, stepping
from tests.world import MODEL, OPERATOR, REGION, Life, fleet

ONES, THREES = Cut.of(["1g.10gb"] * 7), Cut.of(["3g.40gb"] * 2)


def fixed(nodes: int = 1, cards_per_node: int = 2, cut: Cut = ONES) -> list[Node]:
    """Set up nodes whose cards are all cut alike."""
    fleet(Rack("mig-1", REGION, MODEL, nodes=nodes, cards_per_node=cards_per_node))
    for card in Gpu.objects.all():
        cards.cut_as(card, cut)
    Cluster.objects.update(recuts=True)
    return list(Node.objects.select_related("cluster").order_by("name"))


def ail(node: Node, *ills: str) -> None:
    """Let a node's next attempts suffer from these."""
    SimulatedNode.objects.update_or_create(
        node=node.pk,
        defaults={"ills": list(ills)},
        create_defaults={"ills": list(ills), "cuts": cut_of(node)},
    )


def cut_of(node: Node) -> dict[str, dict[str, int]]:
    return {str(card.index): dict(now.counts) for card in node.gpus.all() if (now := cards.cut_now(card))}


def proposed(node: Node, life: Life) -> LayoutChange:
    """Plan, and return what is proposed for a node."""
    planning.propose(node.cluster_id, now=life.now)
    return LayoutChange.objects.select_related("node__cluster").get(node=node, step=Step.PLANNED)


def approved(node: Node, life: Life) -> LayoutChange:
    change = proposed(node, life)
    deciding.approve(change, actor=OPERATOR, now=life.now)
    return change


@dataclass
class Driver:
    """Carries one change on as the beat does, every five seconds."""

    life: Life
    change: LayoutChange

    def on(self, seconds: float = 5) -> Step:
        self.life.clock.at += timedelta(seconds=seconds)
        stepping.step(self.change.pk, now=self.life.now)
        return self.step

    @property
    def step(self) -> Step:
        self.change.refresh_from_db()
        return Step(self.change.step)

    def until(self, *steps: Step, minutes: float = 60) -> float:
        """Go on until it is in one of these steps; return the seconds that took."""
        began = self.life.now
        while self.step not in steps:
            assert self.life.now - began < timedelta(minutes=minutes), (
                f"still {self.change.step}: {self.change.why}"
            )
            self.on()
        return (self.life.now - began).total_seconds()

    @property
    def path(self) -> str:
        rows = LayoutStep.objects.filter(change=self.change).order_by("seq")
        return " ".join(rows.values_list("step", flat=True))
