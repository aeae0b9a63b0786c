"""Experiments as jobs for two processes.

Each job draws its requests once and gives them to every policy.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bench.placement_policies import workloads
from bench.placement_policies.capacity_bounds import gpus_for, most_served
from bench.placement_policies.changed_mix import drift
from bench.placement_policies.gpu_profiles import WEIGHTS, WHOLE
from bench.placement_policies.inflate import fill
from bench.placement_policies.online import Served, serve
from bench.placement_policies.policies import MOVING, Make, policies
from bench.placement_policies.warm_slices import warmed
from bench.placement_policies.workloads import Arrival, Request

FILLED = workloads.spread(workloads.OPENB_NODES)
SERVED = workloads.spread({8: 32})
ARRIVALS = 16_000
FLUID = "fluid bound"
LOADS = (0.7, 0.9, 1.1)


@dataclass(frozen=True)
class Job:
    """One run of all policies: the experiment, the mix, the load and the seed."""

    what: str
    mix: str
    seed: int
    load: float = 0.0
    into: str = ""  # the mix of the second half, where there is another
    names: tuple[str, ...] = ()  # of the policies that run; empty: all of them

    @property
    def column(self) -> str:
        """Heading of its column in a table."""
        return f"{self.mix} > {self.into}" if self.into else self.mix


Results = dict[tuple[str, str], float]  # by policy and figure


def run(job: Job) -> tuple[Job, Results]:
    """Run one job, in a process of the pool."""
    if job.what == "drift":
        return job, {(name, "time"): value for name, value in drift(job.mix, job.into, job.seed).items()}
    if job.what == "warm":
        arrivals, demand = coming(job)
        return job, warmed(arrivals, SERVED, demand, job.seed)
    return job, inflate(job) if job.what == "inflate" else online(job)


def inflate(job: Job) -> Results:
    requests = workloads.inflating(job.mix, len(FILLED), job.seed)
    forecast, found = workloads.asked_for(requests), {}
    for name, make in policies(forecast, job.seed).items():
        if name in MOVING or name not in (job.names or (name,)):
            continue  # nothing ever leaves: there is little to move, and nobody publishes it
        filled = fill(make(FILLED), requests, len(FILLED))
        found[name, "full"] = 100 * filled.at_full
        found[name, "end"] = 100 * filled.at_end
        found[name, "refusal"] = 100 * filled.at_first_refusal
    found[FLUID, "full"] = 100 * most_served(workloads.asked_for(first_full(requests)), len(FILLED)) / (7 * len(FILLED))
    found[FLUID, "end"] = 100 * most_served(forecast, len(FILLED)) / (7 * len(FILLED))
    return found


def first_full(requests: list[Request]) -> list[Request]:
    """Return the shortest prefix that requests all compute slices there are."""
    wanted = 0
    for number, request in enumerate(requests):
        wanted += WEIGHTS[request.profile] * request.count
        if wanted >= 7 * len(FILLED):
            return requests[: number + 1]
    return requests


def coming(job: Job) -> tuple[list[Arrival], list[float]]:
    """Return the requests of a job and their average work by profile."""
    arrivals = workloads.coming(job.mix, ARRIVALS, job.seed, lambda work: gpus_for(work) / (job.load * len(SERVED)))
    return arrivals, workloads.work([each.request for each in arrivals], arrivals[-1].at)


def online(job: Job) -> Results:
    arrivals, demand = coming(job)
    makes = policies(demand, job.seed)
    found = served(job.names or makes, makes, arrivals, count_gpus=job.load < 0.8)
    total = sum(weight * each for weight, each in zip(WEIGHTS, demand, strict=True))
    found[FLUID, "time"] = 100 * most_served(demand, len(SERVED)) / total
    return found


def served(names: Iterable[str], makes: dict[str, Make], arrivals: list[Arrival], *, count_gpus: bool) -> Results:
    found: Results = {}
    for name in names:
        for figure, value in figures(serve(makes[name](SERVED), arrivals, count_gpus=count_gpus)).items():
            found[name, figure] = value
    return found


def figures(outcome: Served) -> dict[str, float]:
    return {
        "time": 100 * outcome.gpu_time,
        "whole": 100 * outcome.share_of(WHOLE),
        "worst": 100 * min(outcome.share_of(profile) for profile in range(len(WEIGHTS)) if outcome.offered[profile]),
        "leases": 100 * outcome.leases_accepted / outcome.leases,
        "gangs": 100 * outcome.gangs_accepted / outcome.gangs if outcome.gangs else 100.0,
        "moves": outcome.moves_per_thousand,
        "active": 100 * outcome.active / len(SERVED),
        "fewest": 100 * outcome.fewest / len(SERVED),
        "surplus": outcome.active / outcome.fewest if outcome.fewest else 1.0,
    }
