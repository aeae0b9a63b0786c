"""Slices as devices of NVIDIA's DRA driver: by claims that name card and place, or as extended resources."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.states import Isolation
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import Unfit, Wants, profiles_of
from broker.provisioners.kubernetes.inventory import CardFound, Cut, NodeFound, linked
from broker.provisioners.kubernetes.objects import Device, Node, ResourceSlice
from broker.provisioners.kubernetes.spec import Ceilings, LeaseSpec, Manifest, SliceSpec

DRIVER = "gpu.nvidia.com"
ROOT = "resource.kubernetes.io/pcieRoot"  # cards of one root are below one processor
CARD_CLASS = "gpu.nvidia.com"  # NVIDIA's own, which also stands for nvidia.com/gpu
PLAIN = re.compile(r"[A-Za-z0-9./+_-]{1,80}", re.ASCII)  # what may stand inside quotes of an expression


@dataclass(frozen=True, slots=True)
class DraDriver:
    """Asks the scheduler, which allocates devices from what nodes publish, counters and all."""

    models: tuple[GpuModelSpec, ...]
    extended: bool = False  # pods ask by plain limits, and the scheduler writes the claim
    name: str = "dra"
    schedulers: tuple[str, ...] = ()
    uncut: ClassVar[frozenset[Isolation]] = frozenset({Isolation.DEVICE, Isolation.HARDWARE})

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

    def inventory(self, nodes: Sequence[Node], slices: Sequence[ResourceSlice]) -> list[NodeFound]:
        published: dict[str, list[Device]] = defaultdict(list)
        for each in slices:
            if each.spec.driver == DRIVER:
                published[each.spec.node_name] += each.spec.devices
        labels = {node.metadata.name: node.metadata.labels for node in nodes}
        return [
            linked(self._node(name, published[name]), gfd.fabric(labels[name]))
            for name in sorted(labels)
            if name in published
        ]

    def _node(self, name: str, devices: list[Device]) -> NodeFound:
        cards, problems = [], []
        for index, device in enumerate(_whole_cards(devices)):
            product = text(device, "productName").removeprefix("NVIDIA ").replace(" ", "-")
            model = gfd.model_like(product, _mebibytes(device), self.models)
            if model is None:
                problems.append(
                    f"the card {device.name} is a {product}, no model we know; add it to the file"
                )
                continue
            uuid = text(device, "uuid")
            cuttable = any(text(each, "parentUUID") == uuid for each in devices)
            cuts = () if cuttable else (Cut(0, model.grid, model.whole.name),)
            isolation = Isolation.HARDWARE if cuttable else Isolation.DEVICE
            # Where the scheduler picks the card, nobody can promise which processor it is below.
            below = "" if self.extended else text(device, ROOT)
            cards.append(CardFound(index, uuid, model.name, isolation, cuts, numa=below))
        return NodeFound(name, tuple(cards), tuple(problems))


def unpublished(slices: Sequence[ResourceSlice], models: Sequence[GpuModelSpec]) -> dict[str, list[str]]:
    """Name, by node, what is sold of its cards that are cut for each lease and that they do not publish."""
    lacking: dict[str, set[str]] = defaultdict(set)
    published: dict[str, set[str]] = defaultdict(set)  # by card
    for device in (device for each in slices if each.spec.driver == DRIVER for device in each.spec.devices):
        published[text(device, "parentUUID")].add(text(device, "profile"))
    for each in slices:
        for device in _whole_cards(each.spec.devices) if each.spec.driver == DRIVER else ():
            product = text(device, "productName").removeprefix("NVIDIA ").replace(" ", "-")
            model = gfd.model_like(product, _mebibytes(device), models)
            if model and (cuts := published.get(text(device, "uuid"))):
                sold = {profile.name for profile in model.sold_as(Isolation.HARDWARE)}
                lacking[each.spec.node_name] |= sold - cuts
    return {node: sorted(profiles) for node, profiles in sorted(lacking.items()) if profiles}


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
