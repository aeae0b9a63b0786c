"""Placements that follow the devices of ResourceClaims.

A claim for a dynamic MIG device names profile and GPU, and the scheduler takes any free placement of that profile.
Once a claim's device is known, its allocation moves there. An allocation whose claim waits for a device makes room;
where the GPU has no place left for it, its lease is placed elsewhere.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
import structlog
from django.db import transaction

from broker.domain.geometry.profiles import Placement
from broker.domain.geometry.published_profiles import published_profiles
from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.domain.placement.settled_starts import BookedSlice, SettledStarts, settle_starts
from broker.models import Allocation, ClusterObject, Gpu, LayoutPolicy, PromisedSlot
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes.client.kinds import RESOURCE_CLAIM, RESOURCE_SLICE
from broker.provisioners.kubernetes.client.objects import Device, ResourceClaim, ResourceSlice
from broker.provisioners.kubernetes.drivers.dra_devices import (
    DRA_DRIVER_NAME,
    attribute_text,
    memory_slices,
    newest_pools,
    states_memory_slices,
)
from broker.services.inventory.gpu_catalogue import profile_named
from broker.services.leases.abandoned_placements import SLICE_TAKEN
from broker.services.placement.allocation_moves import (
    AllocationMove,
    move_allocations,
    placement_of,
    raise_lease_versions,
)
from broker.services.reconciler import lease_reconciler
from ports import outbox
from tenants.services.rls import system_scope

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices that a node publishes, and those that our claims were given there."""

    published: Mapping[str, Device]  # by name
    given: Mapping[str, Sequence[str]]  # names, by provision spec

    def are_known(self, spec: str) -> bool:
        """Return whether every device that a spec was given is published."""
        return all(name in self.published for name in self.given.get(spec, ()))

    def of_gpu(self, spec: str, gpu: Gpu) -> list[Device]:
        """Return the slices of a GPU that a spec was given, in order."""
        mine = [self.published[name] for name in self.given.get(spec, ()) if name in self.published]
        return sorted(
            (each for each in mine if attribute_text(each, "parentUUID") == gpu.uuid),
            key=lambda each: min(memory_slices(each), default=0),
        )


def settle_node(cluster_id: str, node_name: str, *, now: datetime) -> bool:
    """Move a node's allocations to their claims' devices; return False if some could not.

    Those are tried again later: they wait for devices to be published, for a place to become free, or for a lease
    that left to be proven gone.
    """
    here = Gpu.objects.filter(node__cluster=cluster_id, node__name=node_name, layout_policy=LayoutPolicy.DYNAMIC)
    gpus = list(here.select_related("node__cluster").order_by("pk"))
    held = _held_on(gpus)
    specs = {_spec_of(each) for each in held}
    if not specs:
        return True
    devices = _load_devices(cluster_id, node_name, specs)
    on_gpus = [(gpu, [each for each in held if each.gpu_id == gpu.pk]) for gpu in gpus]
    settled = [_settle_gpu(gpu, its, devices, now=now) for gpu, its in on_gpus if its]
    return all(settled) and all(devices.are_known(spec) for spec in specs)


def _settle_gpu(gpu: Gpu, held: Sequence[Allocation], devices: NodeDevices, *, now: datetime) -> bool:
    if _settle(gpu, held, devices) == SettledStarts({}):
        return True
    moves: list[AllocationMove] = []
    with transaction.atomic():
        Gpu.objects.select_for_update(of=("self",), no_key=True).get(pk=gpu.pk)
        held = _held_on([gpu])  # somebody else may have changed it until it was locked
        settled = _settle(gpu, held, devices, promised=_promised_units(gpu))
        if settled and not settled.displaced:
            moves = [_move_of(each, settled.starts[each.pk]) for each in held if each.pk in settled.starts]
            if not move_allocations(gpu.pk, moves):
                return False
            log.info("allocations follow their devices", gpu_id=gpu.pk, starts=settled.starts)
            outbox.enqueue("broker.run_queue", f"{gpu.gpu_model_id}|{gpu.node.cluster.region}", now=now)
    raise_lease_versions(moves)
    if settled is None:
        return False
    for each in held:
        if each.pk in settled.displaced:
            log.warning("the cluster gave a slice to another lease", gpu_id=gpu.pk, lease=each.lease_id)
            lease_reconciler.refuse_placement(each.lease_id, each.tenant_id, each.generation, why=SLICE_TAKEN, now=now)
    return not settled.displaced


def _settle(gpu: Gpu, held: Sequence[Allocation], devices: NodeDevices, *, promised: int = 0) -> SettledStarts | None:
    cut = None if gpu.published is None else published_profiles(gpu.published)
    try:
        return settle_starts(_booked_slices(gpu, held, devices), cut, promised=promised)
    except (ValueError, KeyError) as error:  # an allocation that its model does not have: placement reports it too
        log.error("GPU cannot be read", gpu_id=gpu.pk, reason=str(error))
        return SettledStarts({})


def _promised_units(gpu: Gpu) -> int:
    promised = 0
    for slot in PromisedSlot.objects.filter(gpu=gpu):
        promised |= placement_of(slot.placement).mask
    return promised


def _booked_slices(gpu: Gpu, held: Sequence[Allocation], devices: NodeDevices) -> list[BookedSlice]:
    """Return the slices of a GPU; those of one lease get its devices in order."""
    by_spec = defaultdict[str, list[Allocation]](list)
    for each in held:
        by_spec[_spec_of(each)].append(each)
    starts: dict[str, int] = {}
    for spec, mine in by_spec.items():
        given = devices.of_gpu(spec, gpu)
        if len(given) == len(mine):  # else it got a device where it was not placed, which is reported as a fault
            in_order = sorted(mine, key=lambda each: each.placement.lower)
            starts |= {each.pk: _device_start(device, each) for each, device in zip(in_order, given, strict=True)}
    return [
        BookedSlice(
            each.pk,
            profile_named(gpu.gpu_model_id, each.profile, each.isolation),
            each.placement.lower,
            starts.get(each.pk),
            may_leave=_may_leave(each) and not devices.given.get(_spec_of(each)),
        )
        for each in held
    ]


def _device_start(device: Device, allocation: Allocation) -> int:
    """Return where a device begins.

    One that states its memory slices was selected by its claim; elsewhere it is a fault, and nothing to follow.
    """
    profile = profile_named(allocation.gpu.gpu_model_id, allocation.profile, allocation.isolation)
    start = min(memory_slices(device), default=-1)
    follows = attribute_text(device, "profile") == allocation.profile and not states_memory_slices(device)
    known = start in {place.start for place in profile.placements}
    return start if follows and known else int(allocation.placement.lower)


def _may_leave(allocation: Allocation) -> bool:
    """Return whether the lease of an allocation has not begun there."""
    lease = allocation.lease
    return (
        lease.state == LeaseState.PROVISIONING
        and lease.generation == allocation.generation
        and allocation.leaving_since is None
        and not allocation.is_relocation
    )


def _move_of(allocation: Allocation, start: int) -> AllocationMove:
    before = placement_of(allocation.placement)
    after = Placement(start, before.size)
    return AllocationMove(allocation.pk, allocation.tenant_id, allocation.lease_id, before, after)


def _spec_of(allocation: Allocation) -> str:
    return spec_name(allocation.lease_id, allocation.generation)


def _held_on(gpus: Sequence[Gpu]) -> list[Allocation]:
    """Return what is held on GPUs in slices, the oldest first."""
    with system_scope():
        held = Allocation.objects.filter(gpu__in=gpus, released_at=None, isolation=Isolation.HARDWARE)
        return list(held.select_related("lease", "gpu").order_by("held_at", "pk"))


def _load_devices(cluster_id: str, node_name: str, specs: set[str]) -> NodeDevices:
    """Load the devices of a node and of claims, as the agent stored them."""
    rows = ClusterObject.objects.filter(cluster=cluster_id)
    slices = rows.filter(kind=RESOURCE_SLICE.name, body__spec__nodeName=node_name).values_list("body", flat=True)
    pools = newest_pools(msgspec.convert(body, ResourceSlice) for body in slices)
    given = defaultdict[str, list[str]](list)
    claims = rows.filter(kind=RESOURCE_CLAIM.name, spec_name__in=sorted(specs))
    for spec, body in claims.values_list("spec_name", "body"):
        here = (each for each in msgspec.convert(body, ResourceClaim).devices if each.pool == node_name)
        given[spec] += [each.device for each in here if each.driver == DRA_DRIVER_NAME]
    return NodeDevices({each.name: each for pool in pools for each in pool.devices}, given)
