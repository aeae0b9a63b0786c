"""Layout plans for recorded requests."""

import csv
from collections import Counter
from pathlib import Path

import pytest

import broker
from broker.domain.repartition.gpu_layouts import WHOLE_GPU_LAYOUT, GpuLayout, LayoutCatalogue
from broker.domain.repartition.layout_plans import CurrentGpu, CurrentNode, plan_node_layouts
from broker.domain.repartition.served_demand import ServedDemand
from broker.domain.workloads.openb_trace import map_trace_request
from tests.broker.domain.fleet import H100, plain
from tests.broker.domain.repartition.exhaustive_search import exactly

CATALOGUE = LayoutCatalogue(H100, plain(H100))
TRACE = Path(broker.__file__).parent / "sample_data" / "openb.csv"
STARTS = {
    "whole": WHOLE_GPU_LAYOUT,
    "ones": GpuLayout.from_names(["1g.10gb"] * 7),
    "mixed": GpuLayout.from_names(["4g.40gb", "3g.40gb"]),
}


def requests() -> list[str]:
    """The requested profiles in trace order, gangs expanded."""
    with TRACE.open() as file:
        rows = [
            map_trace_request(num_gpu=int(row["num_gpu"]), gpu_milli=int(row["gpu_milli"]), model=H100)
            for row in csv.DictReader(file)
        ]
    return [each.profile.name for each in rows for _ in range(each.count)]


def demand_from_trace(names: list[str], start: int, gpus: int, load: float, *, sliced: bool) -> dict[str, int]:
    """Take requests from the trace for so many GPUs' compute slices."""
    weight = {"whole-gpu": 7} | {profile.name: profile.compute for profile in CATALOGUE.profiles}
    taken: Counter[str] = Counter()
    for name in names[start:] + names[:start]:
        if sliced and name == "whole-gpu":
            continue
        if sum(weight[each] * count for each, count in taken.items()) >= gpus * 7 * load:
            break
        taken[name] += 1
    return {name: 1000 * count for name, count in taken.items()}


@pytest.mark.parametrize("sliced", [False, True], ids=["as recorded", "slices alone"])
@pytest.mark.parametrize("start_as", sorted(STARTS))
def test_the_planner_serves_95_percent_of_the_maximum(start_as: str, sliced: bool) -> None:
    names, shares = requests(), []
    for number, start in enumerate(range(0, len(names), len(names) // 60)):
        gpus, load = 1 + number % 8, (0.7, 1.0, 1.3)[number % 3]
        demand = demand_from_trace(names, start, gpus, load, sliced=sliced)
        filling = ServedDemand(CATALOGUE, demand)
        now = {index: STARTS[start_as] for index in range(gpus)}
        for each in plan_node_layouts(
            [CurrentNode("n", tuple(CurrentGpu(*gpu) for gpu in now.items()))], demand, CATALOGUE
        ):
            now |= dict(each.layouts)
        shares.append(filling.served_value(filling.total_slices(now.values())) / exactly(filling, gpus))
    assert len(shares) >= 60
    assert min(shares) >= 0.95, f"the worst of {len(shares)} is {min(shares):.4f}"
