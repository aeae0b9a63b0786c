"""The target slot of a relocation: check that it is still possible, and reserve it."""

from datetime import datetime, timedelta

from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.geometry.gpu_state import EMPTY_GPU, GpuState
from broker.domain.geometry.host_resources import exceeded_fields
from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Gpu, LayoutPolicy, Lease, Relocation
from broker.provisioners.kubernetes.drivers.driver_registry import dynamic_isolations
from broker.services.inventory.foreign_use import IN_USE
from broker.services.inventory.gpu_catalogue import profile_named, profile_of
from broker.services.inventory.node_supplies import NodeSupply
from broker.services.inventory.offering_resources import describe_amount, lease_resources, share_of_slice
from broker.services.leases.lifecycle import program_ends
from ports.postgres.sql_statements import query_rows

MIN_REMAINING = timedelta(minutes=5)  # a lease that ends sooner is not worth relocating


def relocation_obstacle(lease: Lease, move: Relocation, *, now: datetime) -> str:
    """Return why a lease cannot be relocated now; empty if it can.

    Runs inside its tenant's transaction.
    """
    if lease.state != LeaseState.ACTIVE:
        return f"it is {lease.state}"
    if not lease.relocatable:
        return "its tenant no longer allows it"
    if lease.reclaim_at:
        return "its spot capacity is being reclaimed"
    if lease.conditions:
        return "its current state is unknown"
    if (lease.ends_at and lease.ends_at < now + MIN_REMAINING) or program_ends.observed_program_end(lease):
        return "it ends soon"
    here = Allocation.objects.filter(lease=lease, generation=lease.generation, released_at=None)
    places = here.values_list("gpu_id", "placement__startswith")
    if list(places) != [(move.from_gpu_id, move.from_start)]:
        return "it is no longer on the slice in the plan"
    return _target_obstacle(lease, move)


def _target_obstacle(lease: Lease, move: Relocation) -> str:
    gpu = Gpu.objects.sellable().select_related("node__cluster").filter(pk=move.to_gpu_id).first()
    if gpu is None:
        return "the target GPU is out of service"
    if not _is_target_free(gpu, lease, move):
        return "the target slice is in use"
    return _missing_resources(gpu, lease, move)


def _missing_resources(gpu: Gpu, lease: Lease, move: Relocation) -> str:
    """Return what the target's node has too little of for what the lease was promised.

    A lease keeps what its offering brought when it was requested, and brings that along.
    """
    if Gpu.objects.filter(pk=move.from_gpu_id, node=gpu.node_id).exists():
        return ""  # it takes up there what it leaves there
    supply = NodeSupply(gpu.node.host_resources, Gpu.objects.without_cpu_blocks().filter(node=gpu.node_id).count())
    available, needed = share_of_slice(lease.offering, supply), lease_resources(lease)
    for name in exceeded_fields(needed, available):
        wanted, there = (describe_amount(name, getattr(each, name)) for each in (needed, available))
        return f"the lease has {wanted}, and the target's node has {there} for such a slice"
    return ""


def _is_target_free(gpu: Gpu, lease: Lease, move: Relocation) -> bool:
    profile = profile_of(lease.offering)
    if gpu.layout_policy == LayoutPolicy.FIXED:
        cut = [(each["profile"], each["start"]) for each in gpu.fixed_layout if not each.get(IN_USE)]
        can_be_had = (profile.name, move.to_start) in cut
    elif gpu.published is not None:
        can_be_had = move.to_start in gpu.published.get(profile.name, ())
    else:
        can_be_had = profile.isolation in dynamic_isolations(gpu.driver or gpu.node.cluster.driver)
    return can_be_had and _occupied_state(gpu).fits(profile, profile.placed_at(move.to_start))


def _occupied_state(gpu: Gpu) -> GpuState:
    """Return what is placed on a GPU, for all tenants."""
    state = EMPTY_GPU
    for _, name, isolation, start, _ in query_rows("broker/placement/occupied_slices", {"gpus": [gpu.pk]}):
        held = profile_named(gpu.gpu_model_id, name, isolation)
        state = state.with_held(held, held.placed_at(start))
    return state


def reserve_target(lease: Lease, move: Relocation, *, now: datetime) -> bool:
    """Reserve the target slot; return False when its GPU went out of service.

    PostgreSQL refuses a slot that is taken.
    """
    wanted = Gpu.objects.sellable().filter(pk=move.to_gpu_id)
    if not wanted.select_for_update(of=("self",), no_key=True).values_list("pk"):
        return False
    here = Allocation.objects.get(lease=lease, generation=lease.generation, released_at=None)
    Allocation.objects.create(
        tenant_id=lease.tenant_id,
        lease=lease,
        generation=lease.generation + 1,
        gpu_id=move.to_gpu_id,
        placement=NumericRange(move.to_start, move.to_start + move.size, "[)"),
        profile=here.profile,
        isolation=here.isolation,
        may_share=here.may_share,
        is_relocation=True,
        # Never overlaps the source while that is charged: the ledger may be ahead of our clock.
        held_at=max(now, lease.state_since),
    )
    return True
