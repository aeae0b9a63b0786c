"""Free CPU, memory and GPU capacity of a node."""

import pytest

from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest

HALF = ShareRequest(4000, 8000, 1, 500)
WHOLE = ShareRequest(8000, 16000, 1, WHOLE_MILLI)
PAIR = ShareRequest(8000, 16000, 2, WHOLE_MILLI)
NO_GPU = ShareRequest(2000, 4000, 0, 0)


def room(*, cpu: int = 32000, memory: int = 64000, gpus: int = 2) -> NodeCapacity:
    return NodeCapacity(cpu=cpu, memory=memory, gpus=gpus)


def free(of: NodeCapacity) -> tuple[int, int, list[int], int, int]:
    return of.cpu, of.memory, of.free_by_gpu, of.free_milli, of.unused_gpus


def test_taken_capacity_is_returned_completely() -> None:
    node = room()
    before = free(room())
    node.reserve(HALF, (1,))
    assert free(node) == (28000, 56000, [1000, 500], 1500, 1)
    node.reserve(HALF, (1,))
    node.reserve(WHOLE, (0,))
    assert free(node) == (16000, 32000, [0, 0], 0, 0)
    node.release(WHOLE, (0,))
    node.release(HALF, (1,))
    node.release(HALF, (1,))
    assert free(node) == before


def test_a_half_gpu_fits_beside_another_half_but_a_whole_gpu_does_not() -> None:
    node = room(gpus=1)
    node.reserve(HALF, (0,))
    assert node.fits(HALF)
    assert not node.fits(WHOLE)
    assert node.fits(NO_GPU)


@pytest.mark.parametrize("short", [{"cpu": 3999}, {"memory": 7999}, {"gpus": 0}])
def test_a_request_does_not_fit_without_enough_cpu_memory_or_gpus(short: dict[str, int]) -> None:
    assert not room(**short).fits(HALF)


def test_a_gang_needs_unused_gpus() -> None:
    node = room(gpus=3)
    node.reserve(HALF, (1,))
    assert node.fits(PAIR)
    assert node.find_unused_gpus(2) == (0, 2)
    node.reserve(PAIR, (0, 2))
    assert not node.fits(PAIR)
    assert node.find_unused_gpus(2) == ()


@pytest.mark.parametrize(
    ("gpus", "of"),
    [((0,), PAIR), ((0, 1), PAIR), ((1,), WHOLE), ((), WHOLE), ((0,), ShareRequest(99999, 1, 1, 500))],
)
def test_a_share_that_does_not_fit_is_refused_and_takes_nothing(gpus: tuple[int, ...], of: ShareRequest) -> None:
    node = room()
    node.reserve(HALF, (1,))
    before = free(node)
    with pytest.raises(ValueError, match="does not fit"):
        node.reserve(of, gpus)
    assert free(node) == before


def test_returning_a_share_that_is_not_held_is_refused() -> None:
    node = room()
    with pytest.raises(ValueError, match="is not held on GPUs"):
        node.release(HALF, (0,))
    assert free(node) == free(room())


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ((-1, 0, 1, 500), "negative amount"),
        ((0, 0, 1, 1001), "thousandths"),
        ((0, 0, 0, 500), "thousandths"),
        ((0, 0, 1, 0), "thousandths"),
        ((0, 0, 2, 500), "shares of several GPUs"),
    ],
)
def test_an_invalid_share_request_is_refused(wanted: tuple[int, int, int, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ShareRequest(*wanted)
