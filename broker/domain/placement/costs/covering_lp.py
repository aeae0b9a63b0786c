"""Fewest GPUs that cover a demand, as a linear program, with its duals.

GPUs and slices are treated as divisible. The duals say what one more slice would add.
"""

from collections.abc import Sequence

from broker.domain.placement.costs.state_tables import EMPTY, StateTable

TOLERANCE = 1e-9
ProfileCounts = tuple[int, ...]  # number of slices of each profile


def maximal_layouts(table: StateTable) -> tuple[ProfileCounts, ...]:
    """Return every full layout of a GPU as counts by profile.

    A layout is full if no further slice fits.
    """
    nothing = (0,) * len(table.profiles)
    found: list[set[ProfileCounts]] = [{nothing} for _ in table.states]  # by state, the counts that fit beside it
    for state in reversed(range(len(table.states))):
        for profile, moves in enumerate(table.options):
            for move in moves[state]:
                found[state] |= {_one_more(counts, profile) for counts in found[move.next_state]}
    layouts = found[EMPTY]
    return tuple(
        sorted(
            layout for layout in layouts if all(_one_more(layout, p) not in layouts for p in range(len(table.profiles)))
        )
    )


def _one_more(counts: ProfileCounts, profile: int) -> ProfileCounts:
    return (*counts[:profile], counts[profile] + 1, *counts[profile + 1 :])


def marginal_gpus(layouts: Sequence[ProfileCounts], demand: Sequence[float]) -> list[float]:
    """Return, by profile, how many more GPUs one more slice takes.

    These are the duals of: cover the demand with the fewest GPUs, each with one of these layouts. They
    are found as the prices under which the demand is worth most while no GPU is worth more than one.
    """
    total = sum(demand) or 1.0
    return _solve_simplex([part / total for part in demand], [[float(n) for n in layout] for layout in layouts])


def _solve_simplex(gain: list[float], rows: list[list[float]]) -> list[float]:
    """Maximise gain * y for y >= 0 with rows * y <= 1.

    It is the simplex method in its condensed tableau.
    """
    width = len(gain)
    tableau = [[*row, 1.0] for row in rows]
    aims = [*gain, 0.0]
    free = list(range(width))  # the variable of each column; those from `width` up are the rows' slacks
    basis = [width + n for n in range(len(rows))]
    while True:
        # Lowest number first, for column and row: Bland's rule, which never cycles.
        column = min((n for n in range(width) if aims[n] > TOLERANCE), key=free.__getitem__, default=None)
        if column is None:
            break
        ratios = [(row[-1] / row[column], basis[n], n) for n, row in enumerate(tableau) if row[column] > TOLERANCE]
        at = min(ratios)[2]
        _pivot([*tableau, aims], at, column)
        free[column], basis[at] = basis[at], free[column]
    found = [0.0] * width
    for variable, row in zip(basis, tableau, strict=True):
        if variable < width:
            found[variable] = row[-1]
    return found


def _pivot(lines: list[list[float]], at: int, column: int) -> None:
    """Swap the variable of a row with that of a column."""
    pivot = lines[at]
    by = pivot[column]
    pivot[:] = [value / by for value in pivot]
    pivot[column] = 1 / by
    for n, line in enumerate(lines):
        if n != at and (times := line[column]):
            line[:] = [value - times * other for value, other in zip(line, pivot, strict=True)]
            line[column] = -times / by
