"""Slices as virtual GPUs of HAMi. Rendered and held to golden files; not yet run against its scheduler."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.likeness import model_like
from broker.domain.states import Isolation
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import Unfit, Wants
from broker.provisioners.kubernetes.inventory import CardFound, NodeFound, linked
from broker.provisioners.kubernetes.objects import Node, ResourceSlice
from broker.provisioners.kubernetes.spec import Ceilings, LeaseSpec, Manifest, SliceSpec

SCHEDULER = "hami-scheduler"
REGISTER = "hami.io/node-nvidia-register"
MEBIBYTES = 1024
WHOLE = 100


class Registered(msgspec.Struct, frozen=True):
    """One card as HAMi's device plugin writes it on its node."""

    id: str
    type: str = ""
    devmem: int = 0  # MiB
    health: bool = True
    numa: int | None = None


@dataclass(frozen=True, slots=True)
class HamiDriver:
    """Asks HAMi's scheduler for so much memory and compute of the very cards that the broker chose."""

    models: tuple[GpuModelSpec, ...]
    name: str = "hami"
    schedulers: tuple[str, ...] = (SCHEDULER,)
    uncut: ClassVar[frozenset[Isolation]] = frozenset({Isolation.DEVICE, Isolation.HARDWARE, Isolation.SOFT})

    @property
    def by_claims(self) -> bool:
        return False

    def wants(self, lease: LeaseSpec, node: str) -> Wants:
        places = lease.slices_on(node)
        cards = sorted({place.card_uuid for place in places})
        if len(cards) != len(places):
            raise Unfit("HAMi gives a pod one part of a card; ask for one larger slice, or for more cards")
        limits = {f"{gfd.PREFIX}gpu": len(places), **_part(lease.offering.isolation, places[0])}
        mode = "mig" if lease.offering.isolation is Isolation.HARDWARE else "hami-core"
        annotations = {f"{gfd.PREFIX}use-gpuuuid": ",".join(cards), f"{gfd.PREFIX}vgpu-mode": mode}
        return Wants(limits=dict(sorted(limits.items())), annotations=annotations, scheduler=SCHEDULER)

    def claims(self, lease: LeaseSpec) -> list[Manifest]:
        return []

    def quota(self, most: Ceilings) -> dict[str, str]:
        return {f"requests.{gfd.PREFIX}gpu": str(most.slices)}

    def cluster_objects(self) -> list[Manifest]:
        return []

    def inventory(
        self, nodes: Sequence[Node], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[NodeFound]:
        return [self._node(node) for node in nodes if gfd.read(node.metadata.labels)]

    def _node(self, node: Node) -> NodeFound:
        found = registered(node)
        cards, problems = [], []
        for index, card in enumerate(found):
            product = card.type.removeprefix("NVIDIA-").removeprefix("NVIDIA ").replace(" ", "-")
            model = model_like(product, card.devmem, self.models)
            if model is None:
                problems.append(
                    f"the card {card.id} is a {product}, no model we know: manage.py read_cards tells it"
                )
                continue
            below = "" if card.numa is None else str(card.numa)
            cards.append(CardFound(index, card.id, model.name, Isolation.SOFT, (), card.health, numa=below))
        if not found:
            problems.append("HAMi has registered no card here: look at its device plugin on this node")
        read = NodeFound(node.metadata.name, tuple(cards), tuple(problems))
        return linked(read, gfd.fabric(node.metadata.labels))


def registered(node: Node) -> list[Registered]:
    """Read the cards a node says it has; none where the annotation is absent or not its usual JSON."""
    try:
        return msgspec.json.decode(node.metadata.annotations.get(REGISTER, "[]"), type=list[Registered])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return []


def _part(isolation: Isolation, place: SliceSpec) -> dict[str, int]:
    if isolation is Isolation.DEVICE:
        return {f"{gfd.PREFIX}gpumem-percentage": WHOLE, f"{gfd.PREFIX}gpucores": WHOLE}
    if isolation is Isolation.NONE:
        raise Unfit("HAMi caps the memory of every share; sell it as soft, not as none")
    memory = place.card_memory_gb * MEBIBYTES * place.size // place.grid
    return {f"{gfd.PREFIX}gpumem": memory, f"{gfd.PREFIX}gpucores": WHOLE * place.size // place.grid}
