"""Workloads: the openb trace in two mappings, three synthetic mixes, and arrivals."""

import csv
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import NamedTuple

from bench.placement_policies.gpu_profiles import MODEL, NAMES, ONE, ROOM, THREE, TWO, WEIGHTS, WHOLE
from broker.domain.workloads.openb_trace import map_trace_request

# Nodes of the openb cluster by how many GPUs they have: 6,212 in all.
OPENB_NODES = {8: 617, 2: 518, 4: 54, 1: 24}
M8 = (125, 250, 500)
DAY = 86_400.0
MADE = {
    "uniform6": (1, 1, 1, 1, 1, 1),
    "skew_small6": (0.30, 0.25, 0.20, 0.10, 0.10, 0.05),
    "bimodal6": (0.30, 0.15, 0.05, 0.05, 0.15, 0.30),
}
TRACED = ("openb C7", "openb M8")
MIXES = (*TRACED, *MADE)


class Request(NamedTuple):
    """Number of slices of a profile, together on one node, for a duration."""

    profile: int
    count: int
    lifetime: float


class Arrival(NamedTuple):
    """One request and its arrival time."""

    at: float
    request: Request


@dataclass(frozen=True)
class Recorded:
    """Request of the trace in either mapping; no duration if it was never scheduled."""

    request: Request
    scheduled: bool


def openb(mapping: str) -> list[Recorded]:
    """Read the GPU requests of the trace."""
    with (ROOM / "sample_data" / "openb.csv").open() as file:
        rows = [{key: int(value) if value else None for key, value in row.items()} for row in csv.DictReader(file)]
    found = []
    for row in rows:
        count, milli = row["num_gpu"] or 0, row["gpu_milli"] or 0
        lasts = min(max((row["deleted"] or 0) - (row["scheduled"] or 0), 1.0), 2 * DAY)
        profile = by_compute(count, milli) if mapping == "openb C7" else by_memory(count, milli)
        found.append(Recorded(Request(profile, count, lasts), row["scheduled"] is not None))
    return found


def by_compute(count: int, milli: int) -> int:
    """Return the profile of a compute share, with a tolerance of two hundredths."""
    profile = map_trace_request(num_gpu=count, gpu_milli=milli, model=MODEL).profile
    return NAMES.index(profile.name) if profile.name in NAMES else WHOLE


def by_memory(count: int, milli: int) -> int:
    """Return the profile of a memory share."""
    return (ONE, TWO, THREE, WHOLE)[bisect_left(M8, milli)] if count == 1 else WHOLE


def drawing(mix: str, rng: Random, *, scheduled_only: bool) -> Callable[[], Request]:
    """Return a function that draws requests of a mix."""
    if mix in MADE:
        bounds = list(accumulate(MADE[mix]))

        def make() -> Request:
            profile = bisect_left(bounds, rng.random() * bounds[-1])
            return Request(min(profile, WHOLE), 1, rng.expovariate(1.0))

        return make
    recorded = [each.request for each in openb(mix) if each.scheduled or not scheduled_only]
    return lambda: recorded[int(rng.random() * len(recorded))]


def inflating(mix: str, gpus: int, seed: int) -> list[Request]:
    """Return requests of 1.3 times the GPUs' capacity, none of which ends."""
    draw = drawing(mix, Random(f"inflate {mix} {seed}"), scheduled_only=False)
    asks, most, found = 0, 1.3 * 7 * gpus, []
    while asks < most:
        found.append(draw())
        asks += WEIGHTS[found[-1].profile] * found[-1].count
    return found


def coming(mix: str, count: int, seed: int, busy_for: Callable[[list[float]], float]) -> list[Arrival]:
    """Return random arrivals, as many as come on average in the given time.

    `busy_for` is how long the fleet is busy with so much work by profile at the wanted load.
    """
    rng = Random(f"online {mix} {seed}")
    draw = drawing(mix, rng, scheduled_only=True)
    requests = [draw() for _ in range(count)]
    return timed(requests, busy_for(work(requests, count)), rng)


def timed(requests: list[Request], apart: float, rng: Random, *, since: float = 0.0) -> list[Arrival]:
    """Assign random arrival times with a given mean distance.

    It is a Poisson process with a known count.
    """
    moments = sorted(rng.random() for _ in requests)
    return [Arrival(since + at * apart * len(requests), each) for at, each in zip(moments, requests, strict=True)]


def work(requests: Sequence[Request], over: float) -> list[float]:
    """Return by profile the requested GPU-seconds, divided by a time or a count."""
    found = [0.0] * len(NAMES)
    for request in requests:
        found[request.profile] += request.count * request.lifetime / over
    return found


def asked_for(requests: list[Request]) -> list[float]:
    """Return how many slices of each profile are requested."""
    found = [0.0] * len(NAMES)
    for request in requests:
        found[request.profile] += request.count
    return found


def spread(nodes: dict[int, int]) -> list[int]:
    """Return the node number of each GPU."""
    return [node for node, size in enumerate(n for n, many in nodes.items() for _ in range(many)) for _ in range(size)]
