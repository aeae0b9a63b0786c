"""How a benchmark speaks: one JSON line a figure on standard output."""

import json
import sys
from dataclasses import dataclass, field


@dataclass
class Figures:
    """Collects what one benchmark found and remembers whether every goal was met."""

    bench: str
    missed: list[str] = field(default_factory=list)

    def ratio(self, figure: str, value: float, *, baseline: float, at_most: float) -> None:
        """Print a time against its baseline in the same run; the goal is a ratio."""
        ratio = value / baseline
        if ratio > at_most:
            self.missed.append(figure)
        line = {
            "bench": self.bench,
            "figure": figure,
            "value": round(value, 4),
            "unit": "s",
            "baseline": round(baseline, 4),
            "ratio": round(ratio, 3),
            "goal": f"ratio <= {at_most}",
            "ok": ratio <= at_most,
        }
        print(json.dumps(line), flush=True)

    def leave(self) -> None:
        """End the process: 0 only when every goal was met."""
        sys.exit(1 if self.missed else 0)
