"""The fragmentation measure for shares of a node."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.placement.shares.fragmentation import FragmentationMeasure
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest

SHARES = st.sampled_from([100, 320, 470, 810, WHOLE_MILLI])
REQUESTS = st.builds(ShareRequest, st.integers(0, 12), st.just(1), st.just(1), SHARES) | st.builds(
    ShareRequest, st.integers(0, 12), st.just(1), st.sampled_from([2, 4]), st.just(WHOLE_MILLI)
)


def room(cpu: int, left: list[int]) -> NodeCapacity:
    node = NodeCapacity(cpu=cpu, memory=1, gpus=len(left))
    for gpu, rest in enumerate(left):
        if rest < WHOLE_MILLI:
            node.reserve(ShareRequest(0, 0, 1, WHOLE_MILLI - rest), (gpu,))
    return node


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(REQUESTS, st.integers(1, 9), min_size=1, max_size=6),
    st.integers(0, 12),
    st.lists(st.sampled_from([0, 100, 190, 470, 530, 999, WHOLE_MILLI]), max_size=5),
)
def test_fragmentation_is_the_unusable_capacity_per_gpu_and_request(
    popular: dict[ShareRequest, int], cpu: int, left: list[int]
) -> None:
    node, expected = room(cpu, left), 0.0
    for request, times in popular.items():
        whole = sum(rest == WHOLE_MILLI for rest in left)
        runs = request.cpu <= cpu and request.gpus <= (whole if request.gpus > 1 else len(left))
        lost = sum(rest for rest in left if rest < request.share or not runs)
        expected += times * lost / sum(popular.values())
    assert FragmentationMeasure(popular).fragmentation_of(node) == pytest.approx(expected)


def test_requests_without_a_gpu_do_not_count_as_fragmentation() -> None:
    popular = {ShareRequest(4, 1, 1, 500): 1.0, ShareRequest(9, 1, 0, 0): 99.0}
    assert FragmentationMeasure(popular).fragmentation_of(room(5, [WHOLE_MILLI, 400])) == pytest.approx(400)


def test_without_demand_there_is_no_fragmentation() -> None:
    assert FragmentationMeasure({}).fragmentation_of(room(5, [WHOLE_MILLI, 400])) == 0
