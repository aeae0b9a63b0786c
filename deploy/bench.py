"""Command `make bench`: run the benchmarks, each on an empty database of its own.

A benchmark is a module bench/<area>.py or bench/<area>_<what>.py with a `main`; it prints one JSON line
per figure and exits with 0 only when every goal was met.
"""

import re
import sys

from deploy.embedded.folders import CHECKOUT
from deploy.embedded.product_processes import PYTHON
from deploy.embedded.scratch import scratch
from deploy.embedded.startup_error import StartupError
from deploy.embedded.supervisor import StopRequested


def modules(area: str) -> list[str]:
    """Return the benchmarks of an area, or all of them."""
    found = [
        file.stem
        for file in sorted((CHECKOUT / "bench").glob("*.py"))
        if re.search(r"^if __name__ ==", file.read_text(), re.MULTILINE)
    ]
    return [name for name in found if not area or name == area or name.startswith(f"{area}_")]


def main(area: str = "", *size: str) -> int:
    """Run an area's benchmarks, or all, one after the other.

    Side by side they would measure each other. The meaning of a size depends on the benchmark.
    """
    names = modules(area)
    if not names:
        areas = sorted({name.partition("_")[0] for name in modules("")})
        print(f"bench ONLY={area}: unknown benchmark. Known: {', '.join(areas)}", file=sys.stderr)
        return 2
    missed = []
    try:
        with scratch() as ready:
            for name in names:
                print(f"bench {name}", file=sys.stderr, flush=True)
                if ready.run(PYTHON, "-m", f"bench.{name}", *size):
                    missed.append(name)
    except StopRequested:
        return 130
    except StartupError as complaint:
        print(f"\n{complaint}", file=sys.stderr)
        return 1
    if missed:
        print(f"goals missed in: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
