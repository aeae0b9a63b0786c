"""Slices as devices of NVIDIA's DRA driver: by claims that name card and place, or as extended resources."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.likeness import model_like
from broker.domain.published import narrowed
from broker.domain.states import Isolation
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import Unfit, Wants, profiles_of
from broker.provisioners.kubernetes.inventory import CardFound, Cut, NodeFound, linked
from broker.provisioners.kubernetes.objects import Claim, Device, Node, ResourceSlice
from broker.provisioners.kubernetes.spec import Ceilings, LeaseSpec, Manifest, SliceSpec

DRIVER = "gpu.nvidia.com"
ROOT = "resource.kubernetes.io/pcieRoot"  # cards of one root are below one processor
CARD_CLASS = "gpu.nvidia.com"  # NVIDIA's own, which also stands for nvidia.com/gpu
UNIT = re.compile(rf"(?:{re.escape(DRIVER)}/)?memorySlice(\d{{1,3}})", re.ASCII)
NO_UNIT = -1
PLAIN = re.compile(r"[A-Za-z0-9./+_-]{1,80}", re.ASCII)  # what may stand inside quotes of an expression


@dataclass(frozen=True, slots=True)
class DraDriver:
    """Asks the scheduler, which allocates devices from what nodes publish, counters and all."""

    models: tuple[GpuModelSpec, ...]
    extended: bool = False  # pods ask by plain limits, and the scheduler writes the claim
    name: str = "dra"
    schedulers: tuple[str, ...] = ()
    uncut: ClassVar[frozenset[Isolation]] = frozenset({Isolation.DEVICE, Isolation.HARDWARE})

    @property
    def by_claims(self) -> bool:
        return not self.extended

    def wants(self, lease: LeaseSpec, node: str) -> Wants:
        places = lease.slices_on(node)
        _check(lease.offering.isolation)
        if not self.extended:
            return Wants(claim=names.claim(lease.lease_id, lease.generation, lease.nodes.index(node)))
        whole = lease.offering.isolation is Isolation.DEVICE
        asked = Counter(f"{gfd.PREFIX}gpu" if whole else gfd.resource_of(each.profile) for each in places)
        return Wants(limits=dict(sorted(asked.items())))

    def claims(self, lease: LeaseSpec) -> list[Manifest]:
        if self.extended:
            return []
        return [_claim(lease, rank) for rank in range(len(lease.nodes))]

    def quota(self, most: Ceilings) -> dict[str, str]:
        sold = {class_of(name): most.slices for name in profiles_of(self.models)}
        counted = {**sold, CARD_CLASS: most.cards}
        lines = {f"{name}.deviceclass.resource.k8s.io/devices": str(n) for name, n in counted.items()}
        return {**lines, "count/resourceclaims.resource.k8s.io": str(most.pods)}

    def cluster_objects(self) -> list[Manifest]:
        return [_device_class(profile) for profile in profiles_of(self.models)]

    def inventory(
        self, nodes: Sequence[Node], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[NodeFound]:
        published: dict[str, list[Device]] = defaultdict(list)
        for each in slices:
            if each.spec.driver == DRIVER:
                published[each.spec.node_name] += each.spec.devices
        labels = {node.metadata.name: node.metadata.labels for node in nodes}
        return [
            linked(self._node(name, published[name], classes), gfd.fabric(labels[name]))
            for name in sorted(labels)
            if name in published
        ]

    def _node(self, name: str, devices: list[Device], classes: Collection[str] | None) -> NodeFound:
        cards, problems, slices = [], [], _by_card(devices)
        for index, device in enumerate(_whole_cards(devices)):
            product = text(device, "productName").removeprefix("NVIDIA ").replace(" ", "-")
            model = model_like(product, _mebibytes(device), self.models)
            if model is None:
                problems.append(
                    f"the card {device.name} is a {product}, no model we know: manage.py read_cards tells it"
                )
                continue
            uuid = text(device, "uuid")
            cuttable = uuid in slices
            if not cuttable and classes is not None and CARD_CLASS not in classes:
                problems.append(f"the card {device.name} cannot be asked for: no DeviceClass {CARD_CLASS}")
                continue
            cuts = () if cuttable else (Cut(0, model.grid, model.whole.name),)
            isolation = Isolation.HARDWARE if cuttable else Isolation.DEVICE
            told = narrowed(model, self._starts(model, slices[uuid], classes)) if cuttable else None
            # Where the scheduler picks the card, nobody can promise which processor it is below.
            below = "" if self.extended else text(device, ROOT)
            cards.append(CardFound(index, uuid, model.name, isolation, cuts, numa=below, published=told))
        return NodeFound(name, tuple(cards), tuple(problems))

    def _starts(
        self, model: GpuModelSpec, slices: list[Device], classes: Collection[str] | None
    ) -> dict[str, set[int]]:
        """Return at which units a claim for each profile of a card would find a device, and the card as a whole."""
        found: dict[str, set[int]] = defaultdict(set)
        by_name = {profile.name: profile for profile in model.sold_as(Isolation.HARDWARE)}
        for device in slices:
            profile = by_name.get(text(device, "profile"))
            if profile and (classes is None or class_of(profile.name) in classes):
                units = _units(device)
                found[profile.name] |= {
                    place.start
                    for place in profile.placements
                    # Where the scheduler picks the card, nobody asks for a place.
                    if (self.extended and not units) or {place.start, place.end - 1} <= units
                }
        if classes is None or CARD_CLASS in classes:
            found[model.whole.name] = {0}
        return found


def unpublished(slices: Sequence[ResourceSlice], models: Sequence[GpuModelSpec]) -> dict[str, list[str]]:
    """Name, by node, what cards of its models can have and its own, though cut for each lease, do not publish."""
    lacking: dict[str, set[str]] = defaultdict(set)
    published: dict[str, set[str]] = defaultdict(set)  # by card
    for device in (device for each in slices if each.spec.driver == DRIVER for device in each.spec.devices):
        published[text(device, "parentUUID")].add(text(device, "profile"))
    for each in slices:
        for device in _whole_cards(each.spec.devices) if each.spec.driver == DRIVER else ():
            product = text(device, "productName").removeprefix("NVIDIA ").replace(" ", "-")
            model = model_like(product, _mebibytes(device), models)
            if model and (cuts := published.get(text(device, "uuid"))):
                sold = {profile.name for profile in model.sold_as(Isolation.HARDWARE)}
                lacking[each.spec.node_name] |= sold - cuts
    return {node: sorted(profiles) for node, profiles in sorted(lacking.items()) if profiles}


def astray(lease: LeaseSpec, rank: int, claim: Claim, slices: Iterable[ResourceSlice]) -> str:
    """Name a device that the claim of a rank holds and that is none of its places; empty where there is none.

    Of a device that no node publishes nobody knows where it is: it is not named.
    """
    published = {
        (each.spec.node_name, device.name): device
        for each in slices
        if each.spec.driver == DRIVER
        for device in each.spec.devices
    }
    places = lease.slices_on(lease.nodes[rank])
    for each in claim.given:
        device = published.get((each.pool, each.device)) if each.driver == DRIVER else None
        if device and not any(_is_at(device, place, lease.offering.isolation) for place in places):
            return f"{each.device} of {each.pool}"
    return ""


def _is_at(device: Device, place: SliceSpec, isolation: Isolation) -> bool:
    """Tell whether a device is the one at a place, as the claim's own expression would."""
    if isolation is Isolation.DEVICE:
        return text(device, "uuid") == place.card_uuid
    holds = {name.removeprefix(f"{DRIVER}/") for name in device.capacity}
    units = {f"memorySlice{unit}" for unit in (place.start, place.start + place.size - 1)}
    return text(device, "parentUUID") == place.card_uuid and units <= holds


def class_of(profile: str) -> str:
    """Return the DeviceClass of a MIG profile; one of ours, so that a quota can count it."""
    return f"mig-{profile.replace('+', '.')}.{labels.DOMAIN}"


def expression(isolation: Isolation, place: SliceSpec) -> str:
    """Return the CEL that only the device at this place of this card fulfils."""
    _check(isolation)
    _plain(place.card_uuid)
    device, holds = f"device.attributes['{DRIVER}']", f"device.capacity['{DRIVER}']"
    if isolation is Isolation.DEVICE:
        return f"{device}.uuid == '{place.card_uuid}'"
    units = sorted({place.start, place.start + place.size - 1})
    at = "".join(f" && 'memorySlice{unit}' in {holds}" for unit in units)
    return f"{device}.parentUUID == '{place.card_uuid}'{at}"


def _claim(lease: LeaseSpec, rank: int) -> Manifest:
    isolation = lease.offering.isolation
    whole = isolation is Isolation.DEVICE
    requests = [
        {
            "exactly": {
                "allocationMode": "ExactCount",
                "count": 1,
                "deviceClassName": CARD_CLASS if whole else class_of(place.profile),
                "selectors": [{"cel": {"expression": expression(isolation, place)}}],
            },
            "name": f"slice-{number}",
        }
        for number, place in enumerate(lease.slices_on(lease.nodes[rank]))
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": names.claim(lease.lease_id, lease.generation, rank)},
        "spec": {"devices": {"requests": requests}},
    }


def _device_class(profile: str) -> Manifest:
    device = f"device.attributes['{DRIVER}']"
    chosen = (
        f"device.driver == '{DRIVER}' && {device}.type == 'mig' && {device}.profile == '{_plain(profile)}'"
    )
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"labels": {labels.MANAGED_BY: labels.US}, "name": class_of(profile)},
        "spec": {
            "extendedResourceName": gfd.resource_of(profile),
            "selectors": [{"cel": {"expression": chosen}}],
        },
    }


def _check(isolation: Isolation) -> None:
    if isolation not in DraDriver.uncut:
        raise Unfit(f"DRA hands out whole cards and MIG slices, not shares of isolation {isolation}")


def _plain(text: str) -> str:
    if not PLAIN.fullmatch(text):
        raise Unfit(f"{text!r} cannot be a card or a profile: it would break out of the expression")
    return text


def _whole_cards(devices: list[Device]) -> list[Device]:
    whole = (device for device in devices if text(device, "type") == "gpu")
    return sorted(whole, key=lambda device: device.name)


def _by_card(devices: list[Device]) -> dict[str, list[Device]]:
    """Return the slices that each card could become, by its uuid."""
    found: dict[str, list[Device]] = defaultdict(list)
    for device in devices:
        if of := text(device, "parentUUID"):
            found[of].append(device)
    return found


def _units(device: Device) -> set[int]:
    """Return the units of its card that a slice says it lies on."""
    return {_unit(name) for name in device.capacity} - {NO_UNIT}


@lru_cache(maxsize=1024)
def _unit(name: str) -> int:
    found = UNIT.fullmatch(name)
    return int(found[1]) if found else NO_UNIT


def text(device: Device, name: str) -> str:
    found = device.attributes.get(name) or device.attributes.get(f"{DRIVER}/{name}")
    return (found.string or "") if found else ""


def _mebibytes(device: Device) -> int:
    amount = device.capacity.get("memory") or device.capacity.get(f"{DRIVER}/memory")
    found = re.fullmatch(r"(\d+)(Mi|Gi|)", amount.value if amount else "")
    if found is None:
        return 0
    per_mebibyte = {"Mi": (1, 1), "Gi": (1024, 1), "": (1, 2**20)}[found[2]]
    return int(found[1]) * per_mebibyte[0] // per_mebibyte[1]
