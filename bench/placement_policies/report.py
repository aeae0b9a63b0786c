"""Tables for people: means over the seeds with 95 percent intervals, and gaps."""

import sys
from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from statistics import mean, stdev

from bench.placement_policies.policies import ORACLE, PEERS

# Student's t at 97.5 percent, by the number of values less one; from 30 on the normal one is near enough.
T = (
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
    2.12,
    2.11,
    2.10,
    2.09,
)

Cell = Sequence[float]  # one value a seed
Rows = dict[str, dict[str, Cell]]  # by policy, then by mix


def within(values: Cell) -> float:
    """Return half the 95 percent interval of the mean."""
    if len(values) < 2:
        return 0.0
    return (T[len(values) - 2] if len(values) - 2 < len(T) else 2.0) * stdev(values) / sqrt(len(values))


def table(
    title: str, rows: Rows, columns: Iterable[str], *, gaps: bool = True, best: Callable[..., Cell] = max
) -> None:
    """Print a table with the gaps to the oracle and to the best published policy.

    Gaps are means over the mixes of the difference on each seed. The peer of a mix is whichever
    published policy does best on it, in the same run.
    """
    columns = list(columns)
    wide = max(13, *map(len, columns)) + 1
    head = [f"{column:>{wide}}" for column in columns] + [f"{name:>10}" for name in ("to oracle", "to peer") if gaps]
    print(f"\n{title}\n{'':13}{''.join(head)}", file=sys.stderr)
    for name, cells in rows.items():
        line = [f"{_cell(cells.get(column)):>{wide}}" for column in columns]
        if gaps:
            line += [
                _gap(cells, rows[ORACLE], columns),
                _gap(cells, best_peers(rows, columns, best), columns),
            ]
        print(f"{name:13}{''.join(line)}", file=sys.stderr)


def best_peers(rows: Rows, columns: Iterable[str], best: Callable[..., Cell]) -> dict[str, Cell]:
    """Return for each mix the values of the published policy that does best."""
    return {
        column: best((rows[peer][column] for peer in PEERS if column in rows.get(peer, {})), key=mean)
        for column in columns
    }


def _cell(values: Cell | None) -> str:
    return f"{mean(values):.2f} ±{within(values):4.2f}" if values else "–"


def _gap(cells: dict[str, Cell], other: dict[str, Cell], columns: Sequence[str]) -> str:
    gaps = [mean(cells[column]) - mean(other[column]) for column in columns if column in cells]
    return f"{mean(gaps):+10.2f}" if gaps else f"{'–':>10}"
