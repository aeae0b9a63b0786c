"""On requests that a production cluster recorded, the planner comes within five percent of the best there is."""

import csv
from collections import Counter
from pathlib import Path

import pytest

import broker
from broker.domain.cuts import WHOLE, Catalogue, Cut
from broker.domain.filling import Filling
from broker.domain.layouts import CardNow, NodeNow, plan
from broker.domain.trace import asked
from tests.broker.domain.exact import exactly
from tests.broker.domain.fleet import H100, plain

CATALOGUE = Catalogue(H100, plain(H100))
TRACE = Path(broker.__file__).parent / "traces" / "openb.csv"
STARTS = {"whole": WHOLE, "ones": Cut.of(["1g.10gb"] * 7), "mixed": Cut.of(["4g.40gb", "3g.40gb"])}


def requests() -> list[str]:
    """The profiles asked for, in the order of the trace; a gang asks for as many as it has members."""
    with TRACE.open() as file:
        rows = [
            asked(num_gpu=int(row["num_gpu"]), gpu_milli=int(row["gpu_milli"]), model=H100)
            for row in csv.DictReader(file)
        ]
    return [each.profile.name for each in rows for _ in range(each.count)]


def crowd(names: list[str], start: int, cards: int, load: float, *, sliced: bool) -> dict[str, int]:
    """Take requests from a place in the trace until they ask for so many cards' compute slices."""
    weight = {"card": 7} | {profile.name: profile.compute for profile in CATALOGUE.profiles}
    taken: Counter[str] = Counter()
    for name in names[start:] + names[:start]:
        if sliced and name == "card":
            continue
        if sum(weight[each] * count for each, count in taken.items()) >= cards * 7 * load:
            break
        taken[name] += 1
    return {name: 1000 * count for name, count in taken.items()}


@pytest.mark.parametrize("sliced", [False, True], ids=["as recorded", "slices alone"])
@pytest.mark.parametrize("start_as", sorted(STARTS))
def test_the_planner_serves_95_percent_of_what_could_be_served(start_as: str, sliced: bool) -> None:
    names, shares = requests(), []
    for number, start in enumerate(range(0, len(names), len(names) // 60)):
        cards, load = 1 + number % 8, (0.7, 1.0, 1.3)[number % 3]
        demand = crowd(names, start, cards, load, sliced=sliced)
        filling = Filling(CATALOGUE, demand)
        now = {index: STARTS[start_as] for index in range(cards)}
        for each in plan([NodeNow("n", tuple(CardNow(*card) for card in now.items()))], demand, CATALOGUE):
            now |= dict(each.cuts)
        shares.append(filling.worth(filling.supply(now.values())) / exactly(filling, cards))
    assert len(shares) >= 60
    assert min(shares) >= 0.95, f"the worst of {len(shares)} is {min(shares):.4f}"
