"""Benchmark of shared GPUs: allocated share of the openb cluster by policy.

Processors, memory and GPU shares run out together. It is the experiment of FGD (USENIX ATC 2023): nobody
leaves, 130 % of the capacity is requested, and what fits nowhere is refused. Every rule fills the same
ten draws; the table on standard error has the published results beside it.

`python -m bench.placement_shared 2` takes two draws, for a busy machine.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from statistics import mean, stdev

from bench.figures import Figures
from bench.shared_placement import trace
from bench.shared_placement.ceiling import ceiling
from bench.shared_placement.rules import BestFit, Gradient, Packing, PublishedGradient
from bench.shared_placement.run import Outcome, run
from broker.domain.placement.shares.fragmentation import FragmentationMeasure
from broker.domain.placement.shares.least_stranded import LeastStranded
from broker.domain.placement.shares.shared_nodes import ShareRule

SEEDS, PROCESSES = 10, 2
GOAL, LEAD_OVER_FGD = 95.8, 0.5
# Two-sided 95 % of Student's t by the number of draws less one.
T_95: tuple[float, ...] = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
OURS, FGD = "ours", "FGD, as published"
RULES: dict[str, Callable[[], ShareRule] | None] = {
    "random": None,
    "packing": Packing,
    "best fit": BestFit,
    "FGD, unrounded": lambda: Gradient(FragmentationMeasure(trace.request_counts())),
    FGD: lambda: PublishedGradient(FragmentationMeasure(trace.request_counts())),
    OURS: lambda: LeastStranded(trace.request_counts()),
}
PUBLISHED = {"random": 87.5, "packing": 92.0, "best fit": 93.1, FGD: 95.4}  # per cent at 130 %


def one(rule: str, seed: int) -> Outcome:
    return run(rule, seed, RULES[rule])


def interval(values: list[float]) -> float:
    """Return half the 95 % interval of their mean."""
    return float(T_95[len(values) - 2] * stdev(values) / len(values) ** 0.5)


def table(outcomes: list[Outcome]) -> dict[str, float]:
    """Print the result of every rule; return the allocated share of each."""
    print(f"{'rule':20}{'at 100 %':>10}{'at 130 %':>10}{'±':>6}{'published':>11}{'µs each':>9}", file=sys.stderr)
    found = {}
    for rule in RULES:
        its = [outcome for outcome in outcomes if outcome.rule == rule]
        found[rule] = mean(each.at_end for each in its)
        print(
            f"{rule:20}{mean(each.at_capacity for each in its):10.2f}{found[rule]:10.2f}"
            f"{interval([each.at_end for each in its]):6.2f}{PUBLISHED.get(rule, ''):>11}"
            f"{1e6 * sum(each.seconds for each in its) / sum(each.decisions for each in its):9.0f}",
            file=sys.stderr,
        )
    best = ceiling(trace.request_counts())
    print(f"{'(best cut of gpus while nobody is refused)':53}{best:.2f}", file=sys.stderr)
    return found


def main(seeds: int = SEEDS) -> None:
    runs = [(rule, seed) for seed in range(1, seeds + 1) for rule in RULES]
    with ProcessPoolExecutor(PROCESSES) as pool:
        sold = table(list(pool.map(one, *zip(*runs, strict=True))))
    figures = Figures("placement_shared")
    figures.report_min("shared_sold_at_130", sold[OURS], unit="%", at_least=GOAL)
    figures.report_min("shared_lead_over_fgd", sold[OURS] - sold[FGD], unit="points", at_least=LEAD_OVER_FGD)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
