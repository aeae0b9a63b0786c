"""What is asked for: the openb trace in two mappings, three made mixes, and how requests come and go."""

import csv
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import NamedTuple

from bench.placing.cards import MODEL, NAMES, ONE, ROOM, THREE, TWO, WEIGHTS, WHOLE
from broker.domain.trace import asked

# Nodes of the openb cluster by how many cards they have: 6,212 in all.
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
    """So many slices of a profile, together on one node, for so long."""

    profile: int
    count: int
    lifetime: float


class Arrival(NamedTuple):
    """One request and when it comes."""

    at: float
    request: Request


@dataclass(frozen=True)
class Recorded:
    """A request of the trace in either mapping; nothing says how long one lasts that was never scheduled."""

    request: Request
    scheduled: bool


def openb(mapping: str) -> list[Recorded]:
    """Read the GPU requests of the trace."""
    with (ROOM / "traces" / "openb.csv").open() as file:
        rows = [
            {key: int(value) if value else None for key, value in row.items()} for row in csv.DictReader(file)
        ]
    found = []
    for row in rows:
        count, milli = row["num_gpu"] or 0, row["gpu_milli"] or 0
        lasts = min(max((row["deleted"] or 0) - (row["scheduled"] or 0), 1.0), 2 * DAY)
        profile = by_compute(count, milli) if mapping == "openb C7" else by_memory(count, milli)
        found.append(Recorded(Request(profile, count, lasts), row["scheduled"] is not None))
    return found


def by_compute(count: int, milli: int) -> int:
    """Return the profile that gives the compute share asked for, with two hundredths of slack."""
    profile = asked(num_gpu=count, gpu_milli=milli, model=MODEL).profile
    return NAMES.index(profile.name) if profile.name in NAMES else WHOLE


def by_memory(count: int, milli: int) -> int:
    """Return the profile that gives the share asked for in memory."""
    return (ONE, TWO, THREE, WHOLE)[bisect_left(M8, milli)] if count == 1 else WHOLE


def drawing(mix: str, chance: Random, *, scheduled_only: bool) -> Callable[[], Request]:
    """Return what draws one request of a mix after the other."""
    if mix in MADE:
        bounds = list(accumulate(MADE[mix]))

        def make() -> Request:
            profile = bisect_left(bounds, chance.random() * bounds[-1])
            return Request(min(profile, WHOLE), 1, chance.expovariate(1.0))

        return make
    recorded = [each.request for each in openb(mix) if each.scheduled or not scheduled_only]
    return lambda: recorded[int(chance.random() * len(recorded))]


def inflating(mix: str, cards: int, seed: int) -> list[Request]:
    """Return requests until they ask for 1.3 times what the cards have; none of them ever ends."""
    draw = drawing(mix, Random(f"inflate {mix} {seed}"), scheduled_only=False)
    asks, most, found = 0, 1.3 * 7 * cards, []
    while asks < most:
        found.append(draw())
        asks += WEIGHTS[found[-1].profile] * found[-1].count
    return found


def coming(mix: str, count: int, seed: int, busy_for: Callable[[list[float]], float]) -> list[Arrival]:
    """Return requests that come at random, so many in the time in which so many come on average.

    `busy_for` says how long the fleet has to do for so much work by profile at the load that is wanted.
    """
    chance = Random(f"online {mix} {seed}")
    draw = drawing(mix, chance, scheduled_only=True)
    requests = [draw() for _ in range(count)]
    return timed(requests, busy_for(work(requests, count)), chance)


def timed(requests: list[Request], apart: float, chance: Random, *, since: float = 0.0) -> list[Arrival]:
    """Let requests come at random moments, on average so far apart; of a Poisson process whose count is known."""
    moments = sorted(chance.random() for _ in requests)
    return [
        Arrival(since + at * apart * len(requests), each) for at, each in zip(moments, requests, strict=True)
    ]


def work(requests: Sequence[Request], over: float) -> list[float]:
    """Return by profile how many cards' seconds are asked for, divided by a time or a count."""
    found = [0.0] * len(NAMES)
    for request in requests:
        found[request.profile] += request.count * request.lifetime / over
    return found


def asked_for(requests: list[Request]) -> list[float]:
    """Return how many slices of each profile are asked for."""
    found = [0.0] * len(NAMES)
    for request in requests:
        found[request.profile] += request.count
    return found


def spread(nodes: dict[int, int]) -> list[int]:
    """Return for each card the number of its node."""
    return [
        node
        for node, size in enumerate(n for n, many in nodes.items() for _ in range(many))
        for _ in range(size)
    ]
