"""Slices as extended resources of NVIDIA's device plugin: whole cards, MIG, and replicas by time-slicing or MPS."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.profiles import SHARES
from broker.domain.states import Isolation
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import Unfit, Wants
from broker.provisioners.kubernetes.drivers.cutting import cuts_of
from broker.provisioners.kubernetes.inventory import CardFound, Cut, NodeFound
from broker.provisioners.kubernetes.objects import Node, ResourceSlice
from broker.provisioners.kubernetes.spec import Ceilings, LeaseSpec, Manifest, SliceSpec

CARD, SHARED = f"{gfd.PREFIX}gpu", f"{gfd.PREFIX}gpu.shared"
NO_MODEL = (
    "cards called {product} are no model we know; add it to the geometry file, with its MIG profiles if any"
)


@dataclass(frozen=True, slots=True)
class DevicePluginDriver:
    """Asks the device plugin. It picks the silicon: slices of one profile on one node are alike."""

    models: tuple[GpuModelSpec, ...]
    mig_strategy: str = "mixed"
    shared_as: str = SHARED  # what a replica is called: with `renameByDefault: false` it is CARD
    replicas: int = 4  # into which a shared card is divided
    name: str = "device_plugin"
    schedulers: tuple[str, ...] = ()

    def wants(self, lease: LeaseSpec, node: str) -> Wants:
        asked = Counter[str]()
        for place in lease.slices_on(node):
            resource, count = self._asked(lease.offering.isolation, place)
            asked[resource] += count
        return Wants(limits=dict(sorted(asked.items())))

    def claims(self, lease: LeaseSpec) -> list[Manifest]:
        return []

    def quota(self, most: Ceilings) -> dict[str, str]:
        names = [gfd.resource_of(name) for name in most.profiles if "g." in name]
        lines = {f"requests.{name}": str(most.slices) for name in names}
        return {
            **lines,
            f"requests.{CARD}": str(most.cards),
            f"requests.{SHARED}": str(most.slices),
        }

    def cluster_objects(self) -> list[Manifest]:
        return []

    def inventory(self, nodes: Sequence[Node], slices: Sequence[ResourceSlice]) -> list[NodeFound]:
        found = ((node, gfd.read(node.metadata.labels)) for node in nodes)
        return [self._node(node, labels) for node, labels in found if labels is not None]

    def _asked(self, isolation: Isolation, place: SliceSpec) -> tuple[str, int]:
        if isolation is Isolation.DEVICE:
            return CARD, 1
        if isolation is Isolation.HARDWARE:
            return (CARD if self.mig_strategy == "single" else gfd.resource_of(place.profile)), 1
        replicas, rest = divmod(place.size * self.replicas, place.grid)
        if rest or replicas != 1:
            raise Unfit(
                f"{place.profile} is {place.size} of {place.grid} units, but a replica is 1 of {self.replicas}:"
                " a device plugin gives a pod one replica, so sell the share that is exactly one"
            )
        return self.shared_as, 1

    def _node(self, node: Node, found: gfd.Discovered) -> NodeFound:
        name, model = node.metadata.name, gfd.model_of(found, self.models)
        if model is None:
            return NodeFound(name, (), (NO_MODEL.format(product=found.product),))
        if found.slice_profile:
            return self._single(name, model, found, _amount(node, CARD))
        if found.sharing is not None:
            return self._shared(name, model, found)
        counts, whole = gfd.profile_counts(node.status.allocatable), _amount(node, CARD)
        cards = [_whole(name, index, model) for index in range(whole)]
        return _with_slices(name, model, cards, counts, most=max(found.count - whole, 0))

    def _single(self, name: str, model: GpuModelSpec, found: gfd.Discovered, slices: int) -> NodeFound:
        profile = next((each for each in model.profiles if each.name == found.slice_profile), None)
        if profile is None:
            why = f"{model.name} has no profile {found.slice_profile}; add it to the geometry file"
            return NodeFound(name, (), (why,))
        cards = -(-slices // profile.max_instances)
        return _with_slices(name, model, [], {profile.name: slices}, most=cards)

    def _shared(self, name: str, model: GpuModelSpec, found: gfd.Discovered) -> NodeFound:
        share = next((share for share, parts in SHARES.items() if parts == found.replicas), None)
        if share is None or model.grid % found.replicas or found.sharing is None:
            parts = " or ".join(str(parts) for parts in sorted(SHARES.values()))
            why = f"each card has {found.replicas} replicas, which divide no card we sell; configure {parts}"
            return NodeFound(name, (), (why,))
        size = model.grid // found.replicas
        cuts = tuple(Cut(start, size, share) for start in range(0, model.grid, size))
        cards = [
            CardFound(index, _uuid(name, index), model.name, found.sharing, cuts)
            for index in range(found.count)
        ]
        return NodeFound(name, tuple(cards))


def _with_slices(
    name: str, model: GpuModelSpec, cards: list[CardFound], counts: dict[str, int], *, most: int
) -> NodeFound:
    """Add the cards that are cut to those that are not, with the fewest that can hold the slices."""
    unknown = sorted(set(counts) - {profile.name for profile in model.profiles})
    if unknown:
        why = f"{model.name} has no profile {', '.join(unknown)}; add it to the geometry file"
        return NodeFound(name, tuple(cards), (why,))
    if not counts:
        return NodeFound(name, tuple(cards))
    for cuts in _ways(model, counts, most):
        cut = [
            CardFound(index, _uuid(name, index), model.name, Isolation.HARDWARE, each)
            for index, each in enumerate(cuts, start=len(cards))
        ]
        return NodeFound(name, (*cards, *cut))
    had = ", ".join(f"{count} of {profile}" for profile, count in counts.items())
    why = f"{most} cut cards of {model.name} cannot hold {had}: some slices are missing or labels are old"
    return NodeFound(name, tuple(cards), (why,))


def _ways(model: GpuModelSpec, counts: dict[str, int], most: int) -> Iterator[tuple[tuple[Cut, ...], ...]]:
    """Try all the cards there are, as a node is mostly cut alike, then ever fewer."""
    for cards in range(most, 0, -1):
        cuts = cuts_of(model, counts, cards)
        if cuts is not None and all(cuts):
            yield cuts


def _whole(node: str, index: int, model: GpuModelSpec) -> CardFound:
    return CardFound(
        index, _uuid(node, index), model.name, Isolation.DEVICE, (Cut(0, model.grid, model.whole.name),)
    )


def _uuid(node: str, index: int) -> str:
    return f"{node}/{index}"


def _amount(node: Node, resource: str) -> int:
    text = node.status.allocatable.get(resource, "0")
    return int(text) if text.isdigit() else 0
