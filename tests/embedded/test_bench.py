"""Benchmarks print JSON lines, and `make bench` fails on missed goals."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from bench.figures import Figures
from deploy import bench

AREAS = ("house", "kubernetes", "launch", "placement", "billing", "face", "telemetry")
MET = {
    "report_max": ("value <= 200", {"at_most": 200, "unit": "ms"}, 200, 200.5),
    "report_min": ("value >= 8", {"at_least": 8, "unit": "1/s"}, 8, 7.5),
    "report_rate": ("ratio >= 0.5", {"baseline": 100, "at_least": 0.5}, 50, 49),
    "report_time": ("ratio <= 3.5", {"baseline": 2, "at_most": 3.5}, 7, 7.1),
}


@pytest.mark.parametrize("kind", MET)
def test_a_figure_is_printed_as_json_and_a_missed_goal_exits_with_1(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    goal, wanted, enough, too_little = MET[kind]
    for value, ends_with in ((enough, 0), (too_little, 1)):
        figures = Figures("house")
        getattr(figures, kind)("shown", value, **wanted)
        with pytest.raises(SystemExit) as ended:
            figures.exit_with_status()
        (line,) = capsys.readouterr().out.splitlines()
        said = json.loads(line)
        assert (said["bench"], said["figure"], said["value"], said["goal"]) == ("house", "shown", value, goal)
        assert (said["ok"], ended.value.code) == (ends_with == 0, ends_with)


@dataclass
class Machine:
    """Fake runner of benchmarks with given exit statuses."""

    misses: tuple[str, ...] = ()
    ran: list[str] = field(default_factory=list)

    def run(self, *command: str) -> int:
        _, _, *what = command
        self.ran.append(" ".join(what))
        return int(" ".join(what) in self.misses)


def ended(machine: Machine, area: str, monkeypatch: pytest.MonkeyPatch, *size: str) -> int:
    @contextmanager
    def scratch() -> Iterator[Machine]:
        yield machine

    monkeypatch.setattr(bench, "scratch", scratch)
    return bench.main(area, *size)


def test_all_benchmarks_run_although_one_misses_its_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    content, missed = Machine(), Machine(misses=("bench.billing",))
    assert ended(content, "", monkeypatch) == 0
    assert ended(missed, "", monkeypatch) == 1
    assert content.ran == missed.ran
    assert {name.removeprefix("bench.").partition("_")[0] for name in content.ran} == set(AREAS)


def test_one_area_of_benchmarks_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    assert ended(machine, "house", monkeypatch) == 0
    assert machine.ran == ["bench.house_api", "bench.house_replay"]


def test_a_size_is_passed_to_each_benchmark_of_the_area(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    assert ended(machine, "kubernetes", monkeypatch, "small") == 0
    assert machine.ran == ["bench.kubernetes small", "bench.kubernetes_agent small"]


def test_an_unknown_area_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main("hous") == 2
    assert capsys.readouterr().err.endswith(f"Known: {', '.join(sorted(AREAS))}\n")
