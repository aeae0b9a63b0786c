"""Slices as extended resources of NVIDIA's device plugin: whole cards, MIG, and replicas by time-slicing or MPS."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.profiles import SHARES
from broker.domain.states import Isolation
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import Unfit, Wants, profiles_of
from broker.provisioners.kubernetes.drivers.cutting import cuts_of
from broker.provisioners.kubernetes.inventory import CardFound, Cut, NodeFound, linked
from broker.provisioners.kubernetes.objects import Node, ResourceSlice
from broker.provisioners.kubernetes.spec import Ceilings, LeaseSpec, Manifest, SliceSpec

CARD, SHARED = f"{gfd.PREFIX}gpu", f"{gfd.PREFIX}gpu.shared"
NO_MODEL = (
    "cards called {product} are no model we know; add it to the geometry file, with its MIG profiles if any"
)

SLICES_SHARED = (
    "slices of {profiles} have replicas, so two tenants would get one slice: take MIG out of the device plugin's"
    " sharing config"
)
UNKNOWN_SHARING = (
    "its labels say that cards are shared, but not into how many parts by time-slicing or MPS; restart"
    " gpu-feature-discovery there, and upgrade it if it stays so"
)
MORE_THAN_LABELLED = (
    "its device plugin gives more than its labels know of, so cards may be shared: more {more}; restart both"
    " gpu-feature-discovery and the device plugin there"
)


@dataclass(frozen=True, slots=True)
class DevicePluginDriver:
    """Asks the device plugin. It picks the silicon: slices of one profile on one node are alike."""

    models: tuple[GpuModelSpec, ...]
    name: str = "device_plugin"
    schedulers: tuple[str, ...] = ()
    uncut: ClassVar[frozenset[Isolation]] = frozenset()  # every card that it gives is cut, or whole

    @property
    def by_claims(self) -> bool:
        return False

    def wants(self, lease: LeaseSpec, node: str) -> Wants:
        asked = Counter(_asked(lease.offering.isolation, place) for place in lease.slices_on(node))
        if lease.offering.isolation in gfd.SHARED_AS.values() and asked.total() > 1:
            raise Unfit(
                f"{asked.total()} {lease.offering.profile} were asked for on {node}, but a device plugin gives a pod"
                " one replica: several are not several times the compute"
            )
        return Wants(limits=dict(sorted(asked.items())))

    def claims(self, lease: LeaseSpec) -> list[Manifest]:
        return []

    def quota(self, most: Ceilings) -> dict[str, str]:
        lines = {f"requests.{gfd.resource_of(name)}": str(most.slices) for name in profiles_of(self.models)}
        return {
            **lines,
            f"requests.{CARD}": str(most.cards),
            f"requests.{SHARED}": str(most.slices),
        }

    def cluster_objects(self) -> list[Manifest]:
        return []

    def inventory(
        self, nodes: Sequence[Node], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[NodeFound]:
        found = ((node, gfd.read(node.metadata.labels)) for node in nodes)
        return [
            linked(self._node(node, labels), gfd.fabric(node.metadata.labels))
            for node, labels in found
            if labels is not None
        ]

    def _node(self, node: Node, found: gfd.Discovered) -> NodeFound:
        name, model = node.metadata.name, gfd.model_of(found, self.models)
        if model is None:
            return NodeFound(name, (), (NO_MODEL.format(product=found.product),))
        if why := _doubt(node, found):
            return NodeFound(name, (), (why,))
        if found.slice_profile:
            return self._single(name, model, found, _amount(node, CARD))
        if found.sharing is not None:
            return _shared(node, model, found, found.sharing)
        counts, whole = gfd.profile_counts(node.status.allocatable), _amount(node, CARD)
        # Whose plugin gives no slice by a name of its own is not cut by us: it could not say what became of it.
        asks = "" if found.strategy == "mixed" else CARD
        cards = [_whole(name, index, model, asks) for index in range(whole)]
        return _with_slices(name, model, cards, counts, most=max(found.count - whole, 0))

    def _single(self, name: str, model: GpuModelSpec, found: gfd.Discovered, slices: int) -> NodeFound:
        profile = next((each for each in model.profiles if each.name == found.slice_profile), None)
        if profile is None:
            why = f"{model.name} has no profile {found.slice_profile}; add it to the geometry file"
            return NodeFound(name, (), (why,))
        cards = -(-slices // profile.max_instances)
        read = _with_slices(name, model, [], {profile.name: slices}, most=cards)
        return replace(read, cards=tuple(replace(card, asks=CARD) for card in read.cards))


def _asked(isolation: Isolation, place: SliceSpec) -> str:
    """Return the resource by which a place is asked for: as its node calls it where that is not the usual name."""
    if place.asks:
        return place.asks
    if isolation is Isolation.HARDWARE:
        return gfd.resource_of(place.profile)
    return CARD if isolation is Isolation.DEVICE else SHARED


def _doubt(node: Node, found: gfd.Discovered) -> str:
    """Say why nobody can tell what is shared on a node and what is not; empty where it is plain.

    Whoever asks for a replica of a slice gets one whose neighbour sees through no wall, yet the name says hardware.
    Labels and plugin are written by two programs, and after a change one of them is late: then nothing is sold.
    """
    given = gfd.profile_counts(node.status.allocatable)
    shared = {*found.shared_slices, *gfd.shared_profiles(node.status.allocatable)}
    if found.slice_profile and found.shared:
        shared.add(found.slice_profile)
    if shared:
        return SLICES_SHARED.format(profiles=", ".join(sorted(shared)))
    if found.shared and found.sharing is None:
        return UNKNOWN_SHARING
    more = [
        f"{profile} than {found.slices[profile]}"
        for profile in given
        if given[profile] > found.slices.get(profile, given[profile])
    ]
    whole, replicas = _amount(node, CARD), _amount(node, SHARED)
    if found.shared:
        most, got = found.count * found.replicas, max(whole, replicas)
        more += [f"replicas than {most}"] if got > most else []
    else:
        more += [f"cards than {found.count}"] if whole > found.count else []
        more += ["replicas than 0"] if replicas else []
    return MORE_THAN_LABELLED.format(more=", ".join(more)) if more else ""


def _shared(node: Node, model: GpuModelSpec, found: gfd.Discovered, sharing: Isolation) -> NodeFound:
    """Read a node whose cards have replicas: as many cards as its plugin gives replicas of, the last maybe in part."""
    name = node.metadata.name
    share = next((share for share, parts in SHARES.items() if parts == found.replicas), None)
    if share is None or model.grid % found.replicas:
        parts = " or ".join(str(parts) for parts in sorted(SHARES.values()))
        why = f"each card has {found.replicas} replicas, which divide no card we sell; configure {parts}"
        return NodeFound(name, (), (why,))
    renamed = _amount(
        node, SHARED
    )  # beside them cards that are whole may have the usual name: those are not sold
    size, left = model.grid // found.replicas, renamed or _amount(node, CARD)
    cuts = tuple(Cut(start, size, share) for start in range(0, model.grid, size))
    cards = [
        CardFound(
            index,
            _uuid(name, index),
            model.name,
            sharing,
            cuts[: left - first],
            asks="" if renamed else CARD,
        )
        for index, first in enumerate(range(0, left, found.replicas))
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


def _whole(node: str, index: int, model: GpuModelSpec, asks: str) -> CardFound:
    cut = (Cut(0, model.grid, model.whole.name),)
    return CardFound(index, _uuid(node, index), model.name, Isolation.DEVICE, cut, asks=asks)


def _uuid(node: str, index: int) -> str:
    return f"{node}/{index}"


def _amount(node: Node, resource: str) -> int:
    text = node.status.allocatable.get(resource, "0")
    return int(text) if text.isdigit() else 0
