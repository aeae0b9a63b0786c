"""The fewest cards that cover a demand, were cards and slices divisible, and what one more slice would add."""

from collections.abc import Sequence

from broker.domain.placement.tables import EMPTY, Table

NOISE = 1e-9
Counts = tuple[int, ...]  # how many of each profile


def fullest_cuts(table: Table) -> tuple[Counts, ...]:
    """Return every count of slices that one card can hold together and to which none can be added."""
    nothing = (0,) * len(table.profiles)
    found: list[set[Counts]] = [{nothing} for _ in table.states]  # by state, what fits beside it
    for state in reversed(range(len(table.states))):
        for profile, moves in enumerate(table.moves):
            for move in moves[state]:
                found[state] |= {_one_more(counts, profile) for counts in found[move.after]}
    cuts = found[EMPTY]
    return tuple(
        sorted(cut for cut in cuts if all(_one_more(cut, p) not in cuts for p in range(len(table.profiles))))
    )


def _one_more(counts: Counts, profile: int) -> Counts:
    return (*counts[:profile], counts[profile] + 1, *counts[profile + 1 :])


def marginal_cards(cuts: Sequence[Counts], demand: Sequence[float]) -> list[float]:
    """Return by profile how many cards the covering takes more for each slice more that is asked for.

    These are the duals of: cover the demand with the fewest cards, each cut in one of these ways. They are
    found as the prices under which the demand is worth most while no card is worth more than one.
    """
    total = sum(demand) or 1.0
    return _maximise([part / total for part in demand], [[float(n) for n in cut] for cut in cuts])


def _maximise(gain: list[float], rows: list[list[float]]) -> list[float]:
    """Find y >= 0 with rows * y <= 1 of the greatest gain * y: the simplex method in its condensed tableau."""
    width = len(gain)
    tableau = [[*row, 1.0] for row in rows]
    aims = [*gain, 0.0]
    free = list(range(width))  # the variable of each column; those from `width` up are the rows' slacks
    basis = [width + n for n in range(len(rows))]
    while True:
        # The lowest number first, on both sides: that never runs in circles (Bland).
        column = min((n for n in range(width) if aims[n] > NOISE), key=free.__getitem__, default=None)
        if column is None:
            break
        ratios = [
            (row[-1] / row[column], basis[n], n) for n, row in enumerate(tableau) if row[column] > NOISE
        ]
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
