"""Output of a benchmark: one JSON line per figure on standard output."""

import json
import sys
from dataclasses import dataclass, field
from os import getloadavg


@dataclass
class Figures:
    """Collector of a benchmark's figures and of whether every goal was met."""

    bench: str
    missed: list[str] = field(default_factory=list)

    def report_max(self, figure: str, value: float, *, unit: str, at_most: float) -> None:
        """Print a figure with an upper bound as its goal."""
        self._print(figure, value, unit=unit, baseline=at_most, goal=f"value <= {at_most}", ok=value <= at_most)

    def report_min(self, figure: str, value: float, *, unit: str, at_least: float) -> None:
        """Print a figure with a lower bound as its goal."""
        self._print(figure, value, unit=unit, baseline=at_least, goal=f"value >= {at_least}", ok=value >= at_least)

    def report_rate(self, figure: str, value: float, *, baseline: float, at_least: float) -> None:
        """Print a rate per second and the baseline's; the goal is their ratio."""
        ok = value / baseline >= at_least
        self._print(figure, value, unit="1/s", baseline=baseline, goal=f"ratio >= {at_least}", ok=ok)

    def report_time(self, figure: str, value: float, *, baseline: float, at_most: float) -> None:
        """Print a duration and the baseline's of the same run; the goal is their ratio."""
        ok = value / baseline <= at_most
        self._print(figure, value, unit="s", baseline=baseline, goal=f"ratio <= {at_most}", ok=ok)

    def _print(self, figure: str, value: float, *, unit: str, baseline: float, goal: str, ok: bool) -> None:
        if not ok:
            self.missed.append(figure)
        line = {
            "bench": self.bench,
            "figure": figure,
            "value": round(value, 4),
            "unit": unit,
            "baseline": round(baseline, 4),
            "ratio": round(value / baseline, 3) if baseline else None,
            "goal": goal,
            "ok": ok,
            "load": round(getloadavg()[0], 1),  # of the machine: on a busy one a time says little
        }
        print(json.dumps(line), flush=True)

    def exit_with_status(self) -> None:
        """Exit with 0 only if every goal was met."""
        sys.exit(1 if self.missed else 0)
