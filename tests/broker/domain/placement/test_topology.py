"""Links between GPUs, and the closest free GPUs."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.placement.gangs.topology import GpuLink, GpuLinks, LinkMatrix, Topology, topology_of

EIGHT = tuple("abcdefgh")


def pairs_on_two_processors(a: int, b: int) -> GpuLink:
    if a // 2 == b // 2:
        return GpuLink.BRIDGE
    return GpuLink.NUMA if a // 4 == b // 4 else GpuLink.SYSTEM


def matrix(size: int, link: object) -> LinkMatrix:
    return tuple(tuple(link(a, b) for b in range(size)) for a in range(size))  # type: ignore[operator]


SWITCHED = Topology(EIGHT, matrix(8, lambda a, b: GpuLink.SWITCH))
BRIDGED = Topology(EIGHT, matrix(8, pairs_on_two_processors))


def test_gpus_behind_a_switch_are_equally_close() -> None:
    assert SWITCHED.closest_free_gpus("fdb", 2) == (GpuLink.SWITCH, ("b", "d"))
    assert SWITCHED.closest_free_gpus(EIGHT, 8) == (GpuLink.SWITCH, EIGHT)


@pytest.mark.parametrize(
    ("free", "count", "link", "chosen"),
    [
        ("abcdefgh", 2, GpuLink.BRIDGE, "ab"),
        ("bcde", 2, GpuLink.BRIDGE, "cd"),
        ("bceh", 2, GpuLink.NUMA, "bc"),
        ("acdefg", 4, GpuLink.SYSTEM, "acdg"),
        ("abcefgh", 4, GpuLink.NUMA, "efgh"),
        ("abcefgh", 3, GpuLink.NUMA, "abc"),
        ("ah", 2, GpuLink.SYSTEM, "ah"),
    ],
)
def test_bridged_gpus_are_preferred_to_one_numa_node_and_that_to_others(
    free: str, count: int, link: GpuLink, chosen: str
) -> None:
    assert BRIDGED.closest_free_gpus(free, count) == (link, tuple(chosen))


def test_a_single_gpu_is_chosen_without_splitting_a_bridged_pair() -> None:
    assert BRIDGED.closest_free_gpus("abc", 1) == (GpuLink.SWITCH, ("c",))
    assert BRIDGED.closest_free_gpus("cdefh", 1) == (GpuLink.SWITCH, ("h",))


def test_too_few_free_gpus_give_no_choice() -> None:
    assert BRIDGED.closest_free_gpus("ab", 3) is None


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    links = {pair: draw(st.sampled_from(GpuLink)) for pair in combinations(range(5), 2)}
    return Topology(EIGHT[:5], matrix(5, lambda a, b: links.get((a, b)) or links.get((b, a)) or GpuLink.SWITCH))


@given(topologies(), st.sets(st.sampled_from(EIGHT[:5]), min_size=1), st.integers(1, 5))
def test_the_chosen_gpus_have_the_shortest_possible_longest_link(
    topology: Topology, free: set[str], count: int
) -> None:
    found = topology.closest_free_gpus(free, count)
    assert (found is None) == (len(free) < count)
    if found:
        at = {gpu: n for n, gpu in enumerate(topology.gpus)}
        longest = [
            max((topology.links[at[a]][at[b]] for a, b in combinations(chosen, 2)), default=GpuLink.SWITCH)
            for chosen in combinations(sorted(free), count)
        ]
        assert set(found[1]) <= free
        assert found[0] == min(longest)


def test_an_invalid_or_asymmetric_link_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match="the links of 2 GPUs are 2 rows of 2"):
        Topology(("a", "b"), ((GpuLink.SWITCH,),))
    with pytest.raises(ValueError, match="the links of 2 GPUs are 2 rows of 2"):
        Topology(("a", "b"), ((GpuLink.SWITCH,), (GpuLink.SWITCH,)))
    with pytest.raises(ValueError, match="must be symmetric"):
        Topology(("a", "b"), ((GpuLink.SWITCH, GpuLink.NUMA), (GpuLink.SYSTEM, GpuLink.SWITCH)))


@pytest.mark.parametrize(("within", "most"), [(GpuLink.BRIDGE, 2), (GpuLink.NUMA, 3), (GpuLink.SYSTEM, 5)])
def test_the_largest_linked_group_of_gpus_is_counted(within: GpuLink, most: int) -> None:
    assert BRIDGED.largest_linked_count("abcgh", within) == most
    assert BRIDGED.largest_linked_count("", within) == 0


def test_gpu_links_follow_from_shared_bridge_fabric_and_processor() -> None:
    pairs = [GpuLinks(gpu, f"bridge {n // 2}", f"processor {n // 4}") for n, gpu in enumerate(EIGHT)]
    assert topology_of(pairs) == Topology(
        EIGHT,
        tuple(tuple(GpuLink.BRIDGE if a == b else pairs_on_two_processors(a, b) for b in range(8)) for a in range(8)),
    )
    switched = topology_of([GpuLinks(gpu, "fabric", "") for gpu in EIGHT])
    assert switched
    assert switched.closest_free_gpus("abc", 2) == (GpuLink.SWITCH, ("a", "b"))
    alone = topology_of([GpuLinks("a", "", "0"), GpuLinks("b", "", "")])
    assert alone
    assert alone.closest_free_gpus("ab", 2) == (GpuLink.SYSTEM, ("a", "b"))


def test_gpus_without_link_information_have_no_topology() -> None:
    assert topology_of([GpuLinks(gpu, "", "") for gpu in EIGHT]) is None
    assert topology_of([]) is None
