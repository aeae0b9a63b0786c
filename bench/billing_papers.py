"""How long papers take to be laid out, and whether that grows faster than they do: `python -m bench.billing_papers`.

Each paper is another one, because typst remembers what it has laid out before.
"""

import os
from datetime import UTC, datetime
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.figures import Figures  # noqa: E402
from billing.services.papers.printing import printed  # noqa: E402
from tests.billing.papers.sheets import paper  # noqa: E402

REPEATS = 7
FEW, MANY = 200, 1000
AT = datetime(2026, 11, 1, tzinfo=UTC)


def took(lines: int, turn: int) -> float:
    """Time one paper of so many lines."""
    wanted = paper(f"Kestrel {lines} {turn}", lines=lines)
    begun = perf_counter()
    printed(wanted, at=AT)
    return perf_counter() - begun


def main() -> None:
    figures = Figures("billing")
    took(1, 0)  # fonts are read once per process
    times = {lines: median(took(lines, turn) for turn in range(REPEATS)) for lines in (FEW, MANY)}
    figures.ratio(f"PDF of {MANY} lines to one of {FEW}", times[MANY], baseline=times[FEW], at_most=6.5)
    figures.leave()


if __name__ == "__main__":
    main()
