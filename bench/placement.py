"""Benchmark of placement policies: ours, published ones and bounds, on the same requests.

Tables for people go to standard error: means over the seeds with their 95 percent intervals, the gap to
the oracle and to the best published policy. What they mean, and where ours stands, is in
docs/explanation/placement.md.

`python -m bench.placement small` takes two seeds each, for a busy machine; `paired` takes forty, and
prints the gap to the oracle on the same requests, since seeds differ more than rules do.
"""

import sys
from collections.abc import Iterable
from multiprocessing import get_context
from statistics import mean
from time import monotonic

from bench.figures import Figures
from bench.placement_policies import changed_mix, defragmentation_speed, exact, placement_latency, speed, warm_slices
from bench.placement_policies.experiments import FLUID, LOADS, Job, Results, run
from bench.placement_policies.policies import MOVING, ORACLE, OURS, PEERS, UNTOLD
from bench.placement_policies.product_rule import SOLD
from bench.placement_policies.report import Rows, table
from bench.placement_policies.workloads import MADE, MIXES

PROCESSES = 2
FILLING_SEEDS, ONLINE_SEEDS, MANY_SEEDS = 10, 4, 40
STILL = (*PEERS, UNTOLD, OURS, SOLD)
FILLED = {"openb C7": 97.1, "openb M8": 98.8, "uniform6": 97.4, "skew_small6": 94.3, "bimodal6": 98.9}
FLEETS = (1_000, 10_000, 100_000)
REPACKS, CONSOLIDATES = "bp+r", "bp+c"


class Found:
    """Results of all runs, by job, then by policy and figure."""

    def __init__(self, results: Iterable[tuple[Job, Results]]) -> None:
        self.of = dict(sorted(results, key=lambda result: repr(result[0])))

    def rows(self, names: Iterable[str], figure: str, *, what: str, load: float = 0.0) -> Rows:
        """Return one value per seed, by policy and mix."""
        rows: Rows = {}
        for name in names:
            rows[name] = {}
            for job, found in self.of.items():
                if (job.what, job.load) == (what, load) and (name, figure) in found:
                    rows[name][job.column] = [*rows[name].get(job.column, ()), found[name, figure]]
        return rows

    def mean(self, name: str, figure: str, *, what: str, mix: str, load: float = 0.0) -> float:
        return mean(self.rows((name,), figure, what=what, load=load)[name][mix])

    def ratio(self, name: str, other: str, figure: str, *, mix: str, load: float) -> float:
        """Return one policy's mean share of another's result, in percent."""
        rows = self.rows((name, other), figure, what="online", load=load)
        return 100 * mean(a / b for a, b in zip(rows[name][mix], rows[other][mix], strict=True))


def jobs(filling: int, online: int) -> list[Job]:
    """Return everything to be run, the longest first."""
    loaded = [
        Job("online", mix, seed, load)
        for load in sorted(LOADS, reverse=True)
        for mix in MIXES
        for seed in range(1, online + 1)
    ]
    flips = [Job("drift", mix, seed, into=into) for mix, into in changed_mix.FLIPS for seed in range(1, online + 1)]
    warm = [
        Job("warm", mix, seed, load) for load in warm_slices.LOADS for mix in MIXES for seed in range(1, online + 1)
    ]
    filled = [Job("inflate", mix, seed) for mix in MIXES for seed in range(1, filling + 1)]
    return [*loaded, *flips, *filled, *warm]


def filling(found: Found, figures: Figures) -> None:
    for figure, title in (("full", "when all is asked for"), ("end", "at 130 %")):
        rows = found.rows((*STILL, ORACLE, FLUID), figure, what="inflate")
        table(f"Filling, percent of the compute slices given out {title}", rows, MIXES)
    for mix, goal in FILLED.items():
        reached = found.mean(OURS, "full", what="inflate", mix=mix)
        figures.report_min(f"filled {mix}", reached, unit="%", at_least=goal)
        sold = found.mean(SOLD, "full", what="inflate", mix=mix)
        figures.report_min(f"filled {mix}, as sold", sold, unit="%", at_least=goal)
        if mix not in MADE:  # where nearly all is whole GPUs, the oracle itself is the most there is
            below = found.mean(ORACLE, "full", what="inflate", mix=mix) - reached
            figures.report_max(f"filled {mix}, below the oracle", below, unit="points", at_most=0.1)


def loaded(found: Found, figures: Figures) -> None:
    names = (*STILL, *MOVING, ORACLE)
    for load in sorted(LOADS, reverse=True):
        rows = found.rows((*names, FLUID), "time", what="online", load=load)
        table(f"Load {load}, percent of the GPU-time asked for that is accepted", rows, MIXES)
    rows = found.rows(names, "whole", what="online", load=1.1)
    table("Load 1.1, percent of the GPU-time of whole GPUs that is accepted", rows, MIXES)
    rows = found.rows(names, "gangs", what="online", load=1.1)
    table("Load 1.1, percent of the gangs that are accepted", rows, MIXES[:2])
    for load in LOADS:
        rows = found.rows(MOVING, "moves", what="online", load=load)
        table(f"Load {load}, moves per 1,000 leases", rows, MIXES, gaps=False)
    rows = found.rows(names, "surplus", what="online", load=0.7)
    table("Load 0.7, active GPUs as a multiple of the exact minimum", rows, MIXES, best=min)
    without_moves(found, figures)
    with_moves(found, figures)


def without_moves(found: Found, figures: Figures) -> None:
    for mix in MADE:
        for name, how in ((OURS, ""), (SOLD, ", as sold")):
            time = found.mean(name, "time", what="online", mix=mix, load=1.1)
            figures.report_min(f"load 1.1 {mix}{how}", time, unit="%", at_least=86.5)
            surplus = found.mean(name, "surplus", what="online", mix=mix, load=0.7)
            figures.report_max(f"load 0.7 GPUs {mix}{how}", surplus, unit="x minimum", at_most=1.065)


def with_moves(found: Found, figures: Figures) -> None:
    for mix in MADE:
        for load, least, most in ((1.1, 88.6, 115), (0.9, 99.85, 5)):
            time = found.mean(REPACKS, "time", what="online", mix=mix, load=load)
            moves = found.mean(REPACKS, "moves", what="online", mix=mix, load=load)
            figures.report_min(f"load {load} {mix}, moving", time, unit="%", at_least=least)
            figures.report_max(f"load {load} {mix}, moves", moves, unit="per 1,000", at_most=most)
        share = found.ratio(REPACKS, ORACLE, "time", mix=mix, load=1.1)
        figures.report_min(f"load 1.1 {mix}, moving, of the oracle", share, unit="%", at_least=99)
        surplus = found.mean(CONSOLIDATES, "surplus", what="online", mix=mix, load=0.7)
        moves = found.mean(CONSOLIDATES, "moves", what="online", mix=mix, load=0.7)
        figures.report_max(f"load 0.7 GPUs {mix}, moving", surplus, unit="x minimum", at_most=1.03)
        figures.report_max(f"load 0.7 {mix}, moves", moves, unit="per 1,000", at_most=90)
    whole = found.mean(REPACKS, "whole", what="online", mix="skew_small6", load=1.1)
    figures.report_min("load 1.1 skew_small6, whole GPUs", whole, unit="%", at_least=70)
    gangs = found.mean(REPACKS, "gangs", what="online", mix="openb C7", load=1.1)
    figures.report_min("load 1.1 openb C7, gangs", gangs, unit="%", at_least=65)
    time = found.mean(REPACKS, "time", what="online", mix="openb C7", load=1.1)
    figures.report_min("load 1.1 openb C7, GPU-time", time, unit="%", at_least=87.5)
    share = found.ratio(REPACKS, ORACLE, "time", mix="openb C7", load=1.1)
    figures.report_min("load 1.1 openb C7, GPU-time, of the oracle", share, unit="%", at_least=99)


def flipped(found: Found, figures: Figures) -> None:
    names = (changed_mix.KNOWS, changed_mix.LEARNS, changed_mix.STALE, changed_mix.UNTOLD)
    rows, columns = found.rows(names, "time", what="drift"), [" > ".join(flip) for flip in changed_mix.FLIPS]
    table("The mix flips half-way, load 1.1, percent of the GPU-time accepted", rows, columns, gaps=False)
    for column in columns:
        for name, how in ((changed_mix.LEARNS, ""), (changed_mix.UNTOLD, ", never told")):  # as the product is
            lost = mean(rows[changed_mix.KNOWS][column]) - mean(rows[name][column])
            figures.report_max(f"lost when the mix flips, {column}{how}", lost, unit="points", at_most=0.5)


def still_cut(found: Found, figures: Figures) -> None:
    names = (OURS, warm_slices.LOOKS)
    for load in reversed(warm_slices.LOADS):
        for how, figure in (
            ("where they are still cut", "warm"),
            ("where others are destroyed first", "anew"),
        ):
            rows = found.rows(names, figure, what="warm", load=load)
            table(f"Load {load}, percent of the slices that are had {how}", rows, MIXES, gaps=False)
        lost = [
            a - b
            for mix in MIXES
            for a, b in zip(
                *(found.rows(names, "time", what="warm", load=load)[name][mix] for name in names), strict=True
            )
        ]
        figures.report_max(f"load {load}, GPU-time lost to warmth", mean(lost), unit="points", at_most=0.2)


def closed_form(figures: Figures) -> None:
    wrong = list(exact.differing())
    for counts, named, gpus in wrong[:5]:
        print(f"{counts}: {gpus} GPUs are needed, the closed form says {named}", file=sys.stderr)
    figures.report_max("closed form differs from a search of all multisets", len(wrong), unit="multisets", at_most=0)


def fast(figures: Figures) -> None:
    for gpus in FLEETS:
        its = speed.speed_of(gpus)
        print(
            f"{gpus:>7,} GPUs, {its.live:,} leases, {its.full:.1f} % of the memory taken: "
            f"p50 {its.p50_us:.2f} µs, p99 {its.p99_us:.2f} µs, {its.pairs_per_s:,.0f} pairs/s; "
            f"a scan of all GPUs {its.scan_us:,.0f} µs",
            file=sys.stderr,
        )
    figures.report_max("decision p50 at 100,000 GPUs", its.p50_us, unit="µs", at_most=3)
    figures.report_max("decision p99 at 100,000 GPUs", its.p99_us, unit="µs", at_most=10)
    figures.report_min("place and release at 100,000 GPUs", its.pairs_per_s, unit="pairs/s", at_least=200_000)
    its_index = placement_latency.choosing(FLEETS[-1])
    print(
        f"{its_index.gpus:>7,} GPUs by their ids, as the product keeps them: p50 {its_index.p50_us:.1f} µs,"
        f" p99 {its_index.p99_us:.1f} µs; four whole GPUs on one node {its_index.whole_ms:.2f} ms, four slices"
        f" {its_index.same_node_ms:.1f} ms (the first time {its_index.first_ms:.0f} ms), anywhere"
        f" {its_index.anywhere_ms:.2f} ms; a GPU that leaves and comes back {its_index.changed_us:.1f} µs",
        file=sys.stderr,
    )
    figures.report_max("choice by ids p50 at 100,000 GPUs", its_index.p50_us, unit="µs", at_most=3)
    figures.report_max("choice by ids p99 at 100,000 GPUs", its_index.p99_us, unit="µs", at_most=10)
    figures.report_max("rebuild from 700,000 allocations", speed.rebuilding_s(700_000), unit="s", at_most=5)


def planned(figures: Figures) -> None:
    every = defragmentation_speed.all_planned()
    slowest, worst = max(every, key=lambda its: its.took_s), max(every, key=lambda its: its.above)
    print(
        f"{len(every)} plans for {defragmentation_speed.GPUS:,} GPUs each; the worst:"
        f" {worst.plan.gpus_before:,} in use, {worst.plan.gpus_after:,} after"
        f" {len(worst.plan.steps):,} moves, {worst.plan.min_gpus:,} at the least",
        file=sys.stderr,
    )
    figures.report_max("plan for 10,000 GPUs, the slowest", slowest.took_s, unit="s", at_most=1)
    figures.report_max("plan for 10,000 GPUs, most above the minimum", worst.above, unit="%", at_most=2)


def paired(seeds: int) -> None:
    """Print a rule's loss to the oracle on the same requests, over many seeds."""
    names = (OURS, SOLD, REPACKS, ORACLE)
    loads = [load for load in LOADS if load > 0.8]
    requests = [
        Job("online", mix, seed, load, names=names) for load in loads for mix in MIXES for seed in range(1, seeds + 1)
    ]
    requests += [Job("inflate", mix, seed, names=(OURS, SOLD, ORACLE)) for mix in MIXES for seed in range(1, seeds + 1)]
    with get_context("fork").Pool(PROCESSES) as pool:
        found = Found(pool.imap_unordered(run, requests))
    kinds = [("online", load, "time", f"Load {load}, GPU-time") for load in loads]
    for what, load, figure, title in [
        *kinds,
        ("online", 1.1, "gangs", "Load 1.1, gangs"),
        ("inflate", 0.0, "full", "Filling"),
    ]:
        rows = found.rows(names, figure, what=what, load=load)
        table(f"{title}, percent, {seeds} seeds", rows, MIXES, gaps=False)
        lost = {
            name: {mix: [a - b for a, b in zip(its[mix], rows[ORACLE][mix], strict=True)] for mix in its}
            for name, its in rows.items()
            if name != ORACLE
        }
        table(f"{title}, points from the oracle on the same requests", lost, MIXES, gaps=False)


def main() -> None:
    figures, began = Figures("placement"), monotonic()
    few = sys.argv[1:] == ["small"]
    if sys.argv[1:] == ["paired"]:
        paired(MANY_SEEDS)
        return
    fast(figures)  # first, while nothing else runs
    planned(figures)
    closed_form(figures)
    with get_context("fork").Pool(PROCESSES) as pool:
        found = Found(pool.imap_unordered(run, jobs(2, 2) if few else jobs(FILLING_SEEDS, ONLINE_SEEDS)))
    filling(found, figures)
    loaded(found, figures)
    flipped(found, figures)
    still_cut(found, figures)
    print(f"\n{monotonic() - began:.0f} s in all", file=sys.stderr)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
