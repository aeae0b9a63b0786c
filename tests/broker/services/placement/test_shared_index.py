"""The in-memory GPU index, compared with the database."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import pytest
from django.db import connections, transaction

from broker.domain.lifecycle.states import EndReason, Isolation
from broker.domain.placement.costs.engines import PlacementEngine
from broker.models import Cluster, Gpu, LayoutPolicy, Lease, Node
from broker.services.inventory.gpu_catalogue import profile_of
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import termination
from broker.services.placement import available_capacity, gpu_changes, shared_index
from broker.services.placement.shared_index import SharedIndex, using_engine
from broker.services.queue import lease_placement
from ports import clock, outbox
from tenants.services.rls import system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.simulation import (
    MODEL,
    NOW,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    soft_offering,
)

POOL = (MODEL, REGION)
KINDS = [(isolation, cluster) for isolation in (Isolation.HARDWARE, Isolation.SOFT) for cluster in ("", "north-1")]
THREES = [{"profile": "3g.40gb", "start": start, "size": 4} for start in (0, 4)]
QUARTERS = [{"profile": "quarter", "start": at, "size": 2, "isolation": "soft"} for at in (0, 2, 4, 6)]


def index_contents(keeper: SharedIndex) -> dict[object, object]:
    """Return the contents of an index: GPUs, clusters and sub-indexes."""
    with keeper.up_to_date() as found:
        values: dict[object, object] = {"gpus": dict(found.gpus), "clusters": found.clusters(POOL)}
        for kind in KINDS:
            index = found.index(POOL, *kind)
            values[kind] = {gpu: index.best.gpu_view(gpu) for gpu in index.gpus}
        return values


def is_current(keeper: SharedIndex) -> bool:
    """Tell whether an old index equals a new one."""
    return index_contents(keeper) == index_contents(SharedIndex())


def place(owner: TenantContext, profile: str = "1g.10gb") -> Lease:
    with tenant_scope(owner.tenant.pk):
        wanted = LeaseRequest(offering_id=offering(profile).pk, name="job", max_duration_s=3600)
        lease = request_lease(wanted, project=owner.project, actor=owner.actor, now=NOW)
    with tenant_scope(owner.tenant.pk):
        lease_placement.place_lease(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
    return lease


def release_one(owner: TenantContext, chance: Random) -> None:
    with tenant_scope(owner.tenant.pk):
        leases = list(Lease.objects.select_related("offering").filter(state="provisioning").order_by("pk"))
        if leases:
            lease = chance.choice(leases)
            termination.release_lease(lease, reason=EndReason.BY_TENANT, now=NOW)
            termination.finish_release(lease, now=NOW)


def some_gpu(chance: Random) -> str:
    return chance.choice(sorted(Gpu.objects.values_list("pk", flat=True)))


def change_something(owner: TenantContext, chance: Random) -> None:
    """Make a random change that affects placement."""
    gpu, node = some_gpu(chance), chance.choice(sorted(Node.objects.values_list("pk", flat=True)))
    toss = chance.random() < 0.5
    acts: list[Callable[[], object]] = [
        lambda: place(owner),
        lambda: place(owner, "3g.40gb"),
        lambda: place(owner, "whole-gpu"),
        lambda: release_one(owner, chance),
        lambda: Gpu.objects.filter(pk=gpu).update(health="unhealthy" if toss else "healthy"),
        lambda: Gpu.objects.filter(pk=gpu).update(out_of_service_since=NOW if toss else None),
        lambda: Gpu.objects.filter(pk=gpu).update(published={"1g.10gb": [2, 3]} if toss else None),
        lambda: Gpu.objects.filter(pk=gpu).update(driver="device_plugin" if toss else ""),
        lambda: Gpu.objects.filter(pk=gpu).update(numa="0" if toss else ""),
        lambda: Node.objects.filter(pk=node).update(state="cordoned" if toss else "ready"),
        lambda: Cluster.objects.filter(name="north-2").update(unreachable_since=NOW if toss else None),
        lambda: Cluster.objects.filter(name="north-2").update(region="eu-south" if toss else REGION),
        lambda: Cluster.objects.update(allow_shared_gpus=toss),
        lambda: Gpu.objects.filter(pk=gpu).update(
            layout_policy="fixed" if toss else "dynamic", fixed_layout=chance.choice([THREES, QUARTERS])
        ),
    ]
    chance.choice(acts)()


@contextmanager
def run_in_other_thread() -> Iterator[Callable[[Callable[[], object]], object]]:
    """Run functions one by one in a thread with its own connection."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda act: thread.submit(act).result(60)
        thread.submit(connections.close_all).result(60)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.deep
def test_the_index_follows_commits_and_ignores_rollbacks(own_database: OwnDatabase, seed: int) -> None:
    chance, keeper = Random(seed), SharedIndex()
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None), run_in_other_thread() as other_thread:
        create_fleet(
            SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2),
            SimulatedRack("north-2", REGION, MODEL, nodes=1),
        )
        owners = create_tenant("Kestrel"), create_tenant("Swift")
        for _ in range(25):
            match chance.randrange(4):
                case 0:
                    change_something(owners[0], chance)
                case 1:
                    other_thread(lambda: change_something(owners[1], chance))
                case 2:  # a transaction that may roll back, with concurrent readers
                    with transaction.atomic():
                        change_something(owners[0], chance)
                        assert is_current(keeper)
                        other_thread(lambda: index_contents(keeper))
                        assert is_current(keeper)
                        transaction.set_rollback(chance.random() < 0.5)
                case _:  # only a part of it is undone
                    with transaction.atomic():
                        with transaction.atomic():
                            change_something(owners[0], chance)
                            assert is_current(keeper)
                            transaction.set_rollback(True)
                        assert is_current(keeper)
            assert is_current(keeper)


def test_changes_of_other_transactions_appear_after_their_commit(own_database: OwnDatabase) -> None:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None), run_in_other_thread() as other_thread:
        create_gpus(2)
        kestrel, keeper = create_tenant(), SharedIndex()
        with transaction.atomic():
            taken = held_allocations(place(kestrel, "whole-gpu"))[0].gpu_id
            other_thread(lambda: Gpu.objects.exclude(pk=taken).update(health="unhealthy"))
            assert is_current(keeper)
            other_thread(lambda: index_contents(keeper))  # does not see the uncommitted allocation
        assert is_current(keeper)
        with system_scope(), keeper.up_to_date() as found:
            assert sum(gpu.placement_count for gpu in found.gpus.values()) == 1


@pytest.mark.parametrize("change", [{"published": {"1g.10gb": [2, 3]}}, {"driver": "device_plugin"}, {"numa": "0"}])
def test_what_a_gpu_offers_is_read_again_when_it_changes(own_database: OwnDatabase, change: dict[str, object]) -> None:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        create_gpus(2)
        keeper = SharedIndex()
        assert is_current(keeper)
        Gpu.objects.filter(index=0).update(**change)
        assert is_current(keeper)


def test_deleted_gpus_and_allocations_leave_the_index(sim: Simulation) -> None:
    create_gpus(3)
    keeper, kestrel = SharedIndex(), create_tenant()
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    assert is_current(keeper)
    with transaction.atomic():
        with tenant_scope(kestrel.tenant.pk):
            lease.allocations.all().delete()
        Gpu.objects.filter(index=2).delete()
        assert is_current(keeper)
        transaction.set_rollback(True)
    assert is_current(keeper)
    with keeper.up_to_date() as found:
        assert len(found.gpus) == 3


def test_an_index_too_far_behind_reloads_all_gpus(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(4)
    keeper = SharedIndex()
    assert is_current(keeper)
    monkeypatch.setattr(gpu_changes, "MAX_CHANGES", 3)
    Gpu.objects.update(health="unhealthy")
    read = []
    every = gpu_changes.read_all_gpus
    monkeypatch.setattr(gpu_changes, "read_all_gpus", lambda: read.append(1) or every())
    index_contents(keeper)
    assert read
    assert is_current(keeper)


def test_a_failed_refresh_leaves_the_index_correct(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(2)
    keeper = SharedIndex()
    assert is_current(keeper)
    Gpu.objects.update(health="unhealthy")
    with monkeypatch.context() as broken:
        broken.setattr(gpu_changes, "read_gpus", lambda ids: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            index_contents(keeper)
    assert is_current(keeper)


def test_an_undetected_index_error_is_fixed_after_five_minutes(
    own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clock.frozen_at(NOW):
        create_gpus(2)
    keeper, passed = SharedIndex(), [0.0]
    monkeypatch.setattr(clock, "monotonic", lambda: passed[0])
    with keeper.up_to_date() as found:
        found.drop([some_gpu(Random(1))])  # as if the notification of a change was lost
    passed[0] = shared_index.RELOAD_AFTER_S - 1
    assert not is_current(keeper)
    passed[0] = shared_index.RELOAD_AFTER_S
    assert is_current(keeper)


def test_an_interrupted_trial_placement_leaves_the_index_unchanged(sim: Simulation) -> None:
    create_gpus(2)
    keeper = SharedIndex()
    assert is_current(keeper)

    def stopped_on_the_way() -> None:
        with keeper.up_to_date() as found:
            found.drop([some_gpu(Random(1))])
            raise TimeoutError

    with pytest.raises(TimeoutError):
        stopped_on_the_way()
    assert is_current(keeper)


def test_a_forked_process_gets_a_new_index() -> None:
    before = shared_index._shared_index
    shared_index._reset_after_fork()
    assert shared_index._shared_index is not before


def test_a_gpu_with_an_invalid_layout_is_not_sold(sim: Simulation) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    Gpu.objects.filter(index=0).update(
        layout_policy=LayoutPolicy.FIXED, fixed_layout=[{"profile": "3g.40gb", "start": 1, "size": 4}]
    )
    with tenant_scope(kestrel.tenant.pk):
        assert available_capacity.count_available([offering("whole-gpu")]) == {offering("whole-gpu").pk: 1}


def test_an_index_does_not_grow_with_health_changes(sim: Simulation) -> None:
    create_gpus(2)
    keeper = SharedIndex()
    for health in ("unhealthy", "healthy") * 5:
        Gpu.objects.update(health=health)
        assert is_current(keeper)
    with keeper.up_to_date() as found:
        best = found.index(POOL, Isolation.HARDWARE).best
    shelf, _ = best.groups_offering(profile_of(offering("whole-gpu")))[0]
    assert len(shelf.gpus) == 2


def test_using_engine_changes_placement_only_within_its_block(sim: Simulation) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    first, second = sorted(Gpu.objects.values_list("pk", flat=True))
    Gpu.objects.filter(pk=first).update(health="unhealthy")
    place(kestrel, "3g.40gb")
    Gpu.objects.update(health="healthy")
    assert [each.gpu_id for each in held_allocations(place(kestrel))] == [second]  # which is not empty any more
    usual = shared_index._shared_index
    with using_engine(PlacementEngine.FIRST_FIT):
        assert [each.gpu_id for each in held_allocations(place(kestrel))] == [first]
    assert shared_index._shared_index is usual


def test_a_locked_gpu_is_skipped_for_the_next_one(own_database: OwnDatabase) -> None:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None), run_in_other_thread() as other_thread:
        create_gpus(2)
        kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
        with transaction.atomic():
            first = place(kestrel, "1g.10gb")
            second = other_thread(lambda: place(swift, "1g.10gb"))
            assert isinstance(second, Lease)
        assert held_allocations(first)[0].gpu_id != held_allocations(second)[0].gpu_id


def test_a_share_is_placed_on_a_gpu_of_its_tenant_and_no_other(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    kestrel, swift, quarter = create_tenant("Kestrel"), create_tenant("Swift"), soft_offering()
    first, second = sim.create_lease(kestrel, quarter), sim.create_lease(swift, quarter)
    third = sim.create_lease(swift, quarter)
    assert held_allocations(third)[0].gpu_id == held_allocations(second)[0].gpu_id != held_allocations(first)[0].gpu_id
