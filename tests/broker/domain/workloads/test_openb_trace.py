"""Mapping of the openb trace to requests."""

from collections import Counter

import pytest

from broker.domain.workloads.openb_trace import map_trace_request
from tests.broker.domain.fleet import FOUR, H100, ONE, PRO_5000, THREE, TWO

# How many single-GPU requests of the openb trace ask for how many thousandths of a GPU.
OPENB = {
    50: 7, 110: 24, 140: 1, 160: 74, 220: 62, 230: 140, 270: 4, 290: 1, 320: 328, 330: 7, 350: 6, 370: 47,
    440: 2, 460: 128, 470: 750, 480: 19, 550: 72, 590: 75, 650: 253, 810: 1078, 1000: 3911,
}  # fmt: skip


def test_the_openb_trace_maps_to_the_published_counts() -> None:
    counts: Counter[str] = Counter()
    for milli, times in OPENB.items():
        counts[map_trace_request(num_gpu=1, gpu_milli=milli, model=H100).profile.name] += times
    assert counts == {ONE.name: 106, TWO.name: 207, THREE.name: 390, FOUR.name: 1044, "whole-gpu": 5242}


@pytest.mark.parametrize(
    ("milli", "name"),
    [
        (1, ONE.name), (163, ONE.name), (164, TWO.name), (306, TWO.name), (307, THREE.name),
        (449, THREE.name), (450, FOUR.name), (592, FOUR.name), (593, "whole-gpu"), (1000, "whole-gpu"),
    ],
)  # fmt: skip
def test_a_request_gets_the_smallest_slice_that_serves_it(milli: int, name: str) -> None:
    request = map_trace_request(num_gpu=1, gpu_milli=milli, model=H100)
    assert (request.profile.name, request.count) == (name, 1)


def test_a_request_for_several_gpus_is_a_gang_of_whole_gpus() -> None:
    gang = map_trace_request(num_gpu=8, gpu_milli=1000, model=H100)
    assert (gang.profile, gang.count) == (H100.whole, 8)


@pytest.mark.parametrize(("gpus", "milli"), [(0, 500), (1, 0), (1, 1001), (-1, 500)])
def test_a_trace_request_without_a_gpu_is_refused(gpus: int, milli: int) -> None:
    with pytest.raises(ValueError, match="is not a request for GPUs"):
        map_trace_request(num_gpu=gpus, gpu_milli=milli, model=H100)


def test_a_trace_request_for_a_model_without_mig_slices_is_refused() -> None:
    with pytest.raises(ValueError, match="has no slice of 1 compute slices"):
        map_trace_request(num_gpu=1, gpu_milli=100, model=PRO_5000)
