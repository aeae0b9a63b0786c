"""A simulated node's mig-manager: it obeys within a minute, dawdles for some, wedges for ever or fails, as asked.

While it works its slices are gone, as a real node's are; a node that wedged goes on only when it is told another name.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F

from broker.domain.cuts import WHOLE, Cut
from broker.domain.mig_configs import alias_of, name_of, slots_of
from broker.domain.repartition import NodeSeen
from broker.models import Gpu, SimulatedNode, SimulatedPod
from broker.models.layouts import cuts_from, layout_of
from broker.provisioners.hands import Machine
from ports.chance import Chance

NOTICE_S, CUT_S, FAIL_S, SPREAD = 2.0, 35.0, 20.0, 0.3
DAWDLE_S = (150.0, 480.0)
ILLS = ("dawdles", "wedges", "fails")


class SimulatedHands:
    """Keeps what its nodes are told in a table, so that several workers see one cluster."""

    def profiles(self, machines: Sequence[Machine]) -> dict[str, dict[str, int] | None]:
        return dict.fromkeys(
            machine.id for machine in machines
        )  # simulated cards can all that their model can

    def look(self, machine: Machine, *, now: datetime) -> NodeSeen:
        cards = list(Gpu.objects.filter(node_id=machine.id))
        if not cards:
            return NodeSeen(there=False)
        node = self._node(machine, cards)
        state = self._state(node, now)
        if state == "success" and node.told_at:
            self._finish(node)
        busy = state in ("pending", "failed")
        return NodeSeen(
            config=node.config,
            state=state,
            version=str(node.version),
            tainted=node.tainted,
            pods=SimulatedPod.objects.filter(nodes__contains=[machine.id]).count(),
            slots={} if busy else slots_of(cuts_from(node.cuts).values()),
        )

    def prepare(self, machine: Machine, cuts: Mapping[int, Cut], *, now: datetime) -> timedelta:
        node, name, layout = SimulatedNode.objects.get(node=machine.id), name_of(cuts), layout_of(cuts)
        known = {**node.known, name: layout, alias_of(name): layout}
        SimulatedNode.objects.filter(node=machine.id).update(known=known)
        return timedelta()

    def taint(self, machine: Machine, *, on: bool) -> None:
        self._node(machine, list(Gpu.objects.filter(node_id=machine.id)))
        nodes = SimulatedNode.objects.filter(node=machine.id, tainted=not on)
        nodes.update(tainted=on, version=F("version") + 1)

    def tell(self, machine: Machine, config: str, *, version: str, now: datetime) -> bool:
        node = SimulatedNode.objects.get(node=machine.id)
        changed = node.config != config  # a node only notices a name that is new to it
        told = SimulatedNode.objects.filter(node=machine.id, version=int(version)).update(
            config=config,
            version=node.version + 1,
            **({"told_at": now, "ill": (node.ills or [""])[0], "ills": node.ills[1:]} if changed else {}),
        )
        return bool(told)

    def _node(self, machine: Machine, cards: list[Gpu]) -> SimulatedNode:
        cuts = {card.index: _cut_of(card) for card in cards}
        return SimulatedNode.objects.get_or_create(node=machine.id, defaults={"cuts": layout_of(cuts)})[0]

    def _state(self, node: SimulatedNode, now: datetime) -> str:
        if node.told_at is None:
            return "success" if node.config else ""
        elapsed = now - node.told_at
        if elapsed < self._lasts(NOTICE_S):
            return ""
        if node.ill == "wedges":
            return "pending"
        chance = Chance(f"{node.node} {node.version} {node.told_at}")
        takes = chance.uniform(*DAWDLE_S) if node.ill == "dawdles" else chance.lognormal(CUT_S, SPREAD)
        if node.ill == "fails":
            return "pending" if elapsed < self._lasts(FAIL_S) else "failed"
        return "pending" if elapsed < self._lasts(takes) else "success"

    def _lasts(self, seconds: float) -> timedelta:
        return timedelta(seconds=seconds / settings.SIMULATED_SPEED)

    def _finish(self, node: SimulatedNode) -> None:
        node.cuts, node.told_at = node.known[node.config], None
        SimulatedNode.objects.filter(node=node.node, version=node.version).update(
            cuts=node.cuts, told_at=None
        )


def _cut_of(card: Gpu) -> Cut:
    return Cut.of(each["profile"] for each in card.fixed_layout) if card.fixed_layout else WHOLE
