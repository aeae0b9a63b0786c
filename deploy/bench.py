"""`make bench`: every benchmark of bench/, or those of one area, each on an empty database of its own.

A benchmark is a module bench/<area>.py or bench/<area>_<what>.py with a `main`; it prints one JSON line
per figure and ends with 0 only when every goal was met.
"""

import re
import sys

from deploy.embedded.complaint import Complaint
from deploy.embedded.folders import CHECKOUT
from deploy.embedded.product import PYTHON
from deploy.embedded.scratch import scratch
from deploy.embedded.supervisor import Stopped


def modules(area: str) -> list[str]:
    """Return the benchmarks of an area, or all of them."""
    found = [
        file.stem
        for file in sorted((CHECKOUT / "bench").glob("*.py"))
        if re.search(r"^if __name__ ==", file.read_text(), re.MULTILINE)
    ]
    return [name for name in found if not area or name == area or name.startswith(f"{area}_")]


def main(area: str = "", *size: str) -> int:
    """Run them one after the other: side by side they would measure each other. A size is the benchmark's own word."""
    names = modules(area)
    if not names:
        areas = sorted({name.partition("_")[0] for name in modules("")})
        print(f"bench ONLY={area}: no such benchmark; there are: {', '.join(areas)}", file=sys.stderr)
        return 2
    missed = []
    try:
        with scratch() as ready:
            for name in names:
                print(f"bench {name}", file=sys.stderr, flush=True)
                if ready.run(PYTHON, "-m", f"bench.{name}", *size):
                    missed.append(name)
    except Stopped:
        return 130
    except Complaint as complaint:
        print(f"\n{complaint}", file=sys.stderr)
        return 1
    if missed:
        print(f"goals missed in: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
