"""Placement of gangs: all members at once, linked where required."""

from dataclasses import replace

import pytest

from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, PlacedSlice
from broker.domain.geometry.profiles import Placement, Profile, share_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.gangs.gang_search import find_gang_slots
from broker.domain.placement.gangs.topology import GpuLink, Topology
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.slots import Slot
from tests.broker.domain.fleet import A30, H100, ONE, SEVEN, THREE, TWO
from tests.broker.domain.placement.slot_choices import choose_gang_slots

WHOLE = H100.whole
WAYS = {True: GpuLink.BRIDGE, False: GpuLink.NUMA}
PAIRS = tuple(tuple(WAYS[a // 2 == b // 2] for b in range(4)) for a in range(4))


def node(name: str, *held: tuple[int, Profile]) -> list[GpuView]:
    """Four GPUs, some of them with a slice."""
    on = dict(held)
    return [
        GpuView(
            f"{name}{n}",
            name,
            Geometry(frozenset({PlacedSlice(p.placements[0], p)})).state if p else EMPTY_GPU,
        )
        for n, p in ((n, on.get(n)) for n in range(4))
    ]


def paired(name: str) -> Topology:
    return Topology(tuple(f"{name}{n}" for n in range(4)), PAIRS)


def chosen(gpus: list[GpuView], count: int, **values: object) -> list[str] | None:
    gang = choose_gang_slots(gpus, WHOLE, H100, count=count, same_node=True, **values)  # type: ignore[arg-type]
    return None if gang is None else [seat.gpu for seat in gang]


def test_a_gang_of_whole_gpus_prefers_gpus_joined_by_a_bridge() -> None:
    gpus = node("a", (0, ONE))
    assert chosen(gpus, 2) == ["a1", "a2"]
    assert chosen(gpus, 2, topologies={"a": paired("a")}) == ["a2", "a3"]
    assert chosen(gpus, 3, topologies={"a": paired("a")}) == ["a1", "a2", "a3"]
    assert chosen(gpus, 4, topologies={"a": paired("a")}) is None


def test_nodes_are_ranked_by_empty_gpus_then_links_then_name() -> None:
    torn, whole, joined = node("a", (1, ONE), (2, ONE)), node("b"), node("c", (0, ONE), (1, ONE))
    known = {name: paired(name) for name in "abc"}
    assert chosen([*torn, *whole], 2, topologies=known) == ["a0", "a3"]
    assert chosen([*torn, *whole, *joined], 2, topologies=known) == ["c2", "c3"]


def test_a_gang_that_requires_a_bridge_is_not_placed_without_one() -> None:
    torn, unknown = node("a", (1, ONE), (2, ONE)), node("d")
    known = {"a": paired("a"), "b": paired("b")}
    assert chosen([*torn, *unknown], 2, topologies=known, within=GpuLink.BRIDGE) is None
    assert chosen([*torn, *node("b")], 2, topologies=known, within=GpuLink.BRIDGE) == ["b0", "b1"]
    assert chosen([*torn, *unknown], 2, topologies=known) == ["a0", "a3"]


def test_gpus_missing_from_the_topology_are_not_chosen_for_a_gang() -> None:
    known = {"a": Topology(("a0", "a1"), tuple(row[:2] for row in PAIRS[:2]))}
    assert chosen(node("a", (0, ONE)), 2, topologies=known) is None
    assert chosen(node("a"), 2, topologies=known) == ["a0", "a1"]


def test_a_topology_that_no_node_has_gets_no_slots() -> None:
    assert chosen(node("a"), 3, topologies={"a": paired("a")}, within=GpuLink.BRIDGE) is None
    assert chosen(node("a"), 2, within=GpuLink.SYSTEM) is None


def test_slices_and_gangs_over_nodes_cannot_require_links() -> None:
    with pytest.raises(ValueError, match=r"a slice of 1g\.10gb has none"):
        choose_gang_slots(node("a"), ONE, H100, count=2, same_node=True, within=GpuLink.NUMA)
    with pytest.raises(ValueError, match="links exist within a node only"):
        choose_gang_slots(node("a"), WHOLE, H100, count=2, same_node=False, within=GpuLink.NUMA)


def test_slices_of_a_gang_share_gpus_regardless_of_the_topology() -> None:
    gang = choose_gang_slots(node("a"), TWO, H100, count=4, same_node=True, topologies={"a": paired("a")})
    assert [(seat.gpu, seat.placement.start) for seat in gang or ()] == [
        ("a0", 0), ("a0", 2), ("a0", 4), ("a1", 0),
    ]  # fmt: skip


def test_a_gang_is_chosen_completely_or_not_at_all_without_changing_the_pool() -> None:
    runs = (Placement(0, 2), Placement(1, 2), Placement(2, 2))
    crossing = Profile("2g.odd", 2, 2, runs, 2, False, Isolation.HARDWARE)
    large = Profile("4g.odd", 4, 4, (Placement(3, 4),), 1, False, Isolation.HARDWARE)
    seats = {
        *(PlacedSlice(run, crossing) for run in runs),
        PlacedSlice(large.placements[0], large),
        PlacedSlice(Placement(0, 1), ONE),
    }
    gpu = GpuView("a", "node-0", EMPTY_GPU, Geometry(frozenset(seats)))
    pool = PoolIndex(H100, [gpu])
    assert pool.how_many_fit(crossing) == 2
    for same_node in (False, True):
        assert find_gang_slots(pool, crossing, count=2, same_node=same_node) is None
        assert pool.gpu_view("a") == gpu
    assert choose_gang_slots([gpu], crossing, H100, count=2, same_node=True) is None
    assert find_gang_slots(pool, ONE, count=1, same_node=False) == (pool.find_cheapest_slot(ONE),)
    assert pool.gpu_view("a") == gpu


def test_a_changed_pool_chooses_the_same_gang_as_a_new_pool() -> None:
    gpus = [*node("a", (0, ONE)), *node("b", (1, TWO), (2, THREE)), *node("c")]
    pool = PoolIndex(H100, gpus[:6])
    for gpu in gpus[6:]:
        pool.add(gpu)
    pool.add(replace(pool.remove("a3"), node="c"))
    gpus[3] = replace(gpus[3], node="c")
    for profile, count, same_node in ((WHOLE, 4, False), (WHOLE, 5, True), (TWO, 9, True), (THREE, 13, False)):
        gang = find_gang_slots(pool, profile, count=count, same_node=same_node)
        assert gang == choose_gang_slots(reversed(gpus), profile, H100, count=count, same_node=same_node)
        assert gang is not None
    assert [pool.gpu_view(gpu.gpu) for gpu in gpus] == gpus


def test_an_interrupted_gang_search_leaves_the_pool_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, hold = PoolIndex(H100, node("a")), PoolIndex.hold

    def once(self: PoolIndex, seat: Slot, profile: Profile) -> None:
        if seat.gpu != "a0":
            raise KeyboardInterrupt
        hold(self, seat, profile)

    monkeypatch.setattr(PoolIndex, "hold", once)
    with pytest.raises(KeyboardInterrupt):
        find_gang_slots(pool, WHOLE, count=2, same_node=False)
    assert [pool.gpu_view(gpu.gpu) for gpu in node("a")] == node("a")


def test_a_profile_of_another_model_is_refused() -> None:
    for same_node in (False, True):
        with pytest.raises(ValueError, match=r"A30-24GB has no hardware profile '7g\.80gb'"):
            choose_gang_slots([GpuView("a", "n")], SEVEN, A30, count=1, same_node=same_node)


def test_shares_of_a_gang_fill_one_gpu_before_another() -> None:
    _, quarter = share_profiles(grid=8, isolation=Isolation.SOFT)
    gang = choose_gang_slots(node("a", (0, ONE)), quarter, H100, count=5, same_node=True)
    assert [seat.gpu for seat in gang or ()] == ["a1"] * 4 + ["a2"]
