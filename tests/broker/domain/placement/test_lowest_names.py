"""The lowest name of a key in a changing set."""

from collections.abc import Iterator
from random import Random

import pytest

from broker.domain.placement.buckets import lowest_names
from broker.domain.placement.buckets.lowest_names import LowestNames


def test_the_lowest_name_of_a_key_is_found_after_any_changes() -> None:
    key = dict.fromkeys("dbca", 0)
    names = LowestNames(lambda wanted, name: key[name] == wanted)

    def of(wanted: int) -> list[str]:
        return [name for name in key if key[name] == wanted]

    def become(name: str, wanted: int) -> None:
        key[name] = wanted
        names.add(wanted, name, len(of(wanted)))

    chance = Random(1)
    for _ in range(300):
        become(chance.choice("abcd"), chance.randrange(3))
        for wanted in range(3):
            if of(wanted):
                assert names.lowest(wanted, lambda wanted=wanted: of(wanted)) == min(of(wanted))


def test_removed_names_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowest_names, "HEAP_SLACK", 3)
    requests = []

    def all_names() -> Iterator[str]:
        requests.append(1)
        yield "a"

    names = LowestNames(lambda key, name: name == "a")
    assert names.lowest(0, all_names) == "a"
    for n in range(20):
        names.add(0, f"b{n}", 1)
    assert names.lowest(0, all_names) == "a"
    assert len(requests) == 2
    assert sum(len(heap) for heap in names._heaps.values()) == 1
