"""Simulated mig-manager of a node.

It applies a layout within a minute, or dawdles, wedges or fails on request. While it works the node's
slices are gone, as on a real node; a node that wedged continues only when another layout name is set.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F

from broker.domain.repartition.gpu_layouts import WHOLE_GPU_LAYOUT, GpuLayout
from broker.domain.repartition.mig_configs import layout_alias, layout_name, slices_offered
from broker.domain.repartition.repartition_steps import ObservedLayout
from broker.models import Gpu, SimulatedNode, SimulatedPod
from broker.models.repartitions import layouts_from_stored, stored_layout
from broker.provisioners.node_partitioner import PartitionedNode
from ports.rng import Rng

NOTICE_S, CUT_S, FAIL_S, SPREAD = 2.0, 35.0, 20.0, 0.3
DAWDLE_S = (150.0, 480.0)


class SimulatedPartitioner:
    """Simulates repartitioning in database rows, so that several workers share a cluster."""

    def profiles(self, machines: Sequence[PartitionedNode]) -> dict[str, dict[str, int] | None]:
        return dict.fromkeys(
            machine.id for machine in machines
        )  # simulated GPUs support everything their model supports

    def observe(self, machine: PartitionedNode, *, now: datetime) -> ObservedLayout:
        gpus = list(Gpu.objects.filter(node_id=machine.id))
        if not gpus:
            return ObservedLayout(exists=False)
        node = self._node(machine, gpus)
        state = self._state(node, now)
        if state == "success" and node.configured_at:
            self._finish(node)
        busy = state in ("pending", "failed")
        return ObservedLayout(
            config=node.config,
            state=state,
            version=str(node.version),
            tainted=node.tainted,
            pods=SimulatedPod.objects.filter(nodes__contains=[machine.id]).count(),
            slots={} if busy else slices_offered(layouts_from_stored(node.cuts).values()),
        )

    def prepare(self, machine: PartitionedNode, cuts: Mapping[int, GpuLayout], *, now: datetime) -> timedelta:
        node, name, layout = (SimulatedNode.objects.get(node=machine.id), layout_name(cuts), stored_layout(cuts))
        known = {**node.known, name: layout, layout_alias(name): layout}
        SimulatedNode.objects.filter(node=machine.id).update(known=known)
        return timedelta()

    def taint(self, machine: PartitionedNode, *, on: bool) -> None:
        self._node(machine, list(Gpu.objects.filter(node_id=machine.id)))
        nodes = SimulatedNode.objects.filter(node=machine.id, tainted=not on)
        nodes.update(tainted=on, version=F("version") + 1)

    def apply_config(self, machine: PartitionedNode, config: str, *, version: str, now: datetime) -> bool:
        node = SimulatedNode.objects.get(node=machine.id)
        changed = node.config != config  # a node only reacts to a changed name
        updated = SimulatedNode.objects.filter(node=machine.id, version=int(version)).update(
            config=config,
            version=node.version + 1,
            **(
                {
                    "configured_at": now,
                    "fault": (node.pending_faults or [""])[0],
                    "pending_faults": node.pending_faults[1:],
                }
                if changed
                else {}
            ),
        )
        return bool(updated)

    def _node(self, machine: PartitionedNode, gpus: list[Gpu]) -> SimulatedNode:
        cuts = {gpu.index: _current_layout(gpu) for gpu in gpus}
        return SimulatedNode.objects.get_or_create(node=machine.id, defaults={"cuts": stored_layout(cuts)})[0]

    def _state(self, node: SimulatedNode, now: datetime) -> str:
        if node.configured_at is None:
            return "success" if node.config else ""
        elapsed = now - node.configured_at
        if elapsed < self._lasts(NOTICE_S):
            return ""
        if node.fault == "wedges":
            return "pending"
        rng = Rng(f"{node.node} {node.version} {node.configured_at}")
        takes = rng.uniform(*DAWDLE_S) if node.fault == "dawdles" else rng.lognormal(CUT_S, SPREAD)
        if node.fault == "fails":
            return "pending" if elapsed < self._lasts(FAIL_S) else "failed"
        return "pending" if elapsed < self._lasts(takes) else "success"

    def _lasts(self, seconds: float) -> timedelta:
        return timedelta(seconds=seconds / settings.SIMULATED_SPEED)

    def _finish(self, node: SimulatedNode) -> None:
        node.cuts, node.configured_at = node.known[node.config], None
        SimulatedNode.objects.filter(node=node.node, version=node.version).update(cuts=node.cuts, configured_at=None)


def _current_layout(gpu: Gpu) -> GpuLayout:
    return GpuLayout.from_names(each["profile"] for each in gpu.fixed_layout) if gpu.fixed_layout else WHOLE_GPU_LAYOUT
