"""Linear programs: small and dense, solved by the simplex method."""

from collections.abc import Sequence

TINY = 1e-9


def maximum(worth: Sequence[float], rows: Sequence[Sequence[float]], most: Sequence[float]) -> float:
    """Return the maximum of worth·x with row·x ≤ its bound and x ≥ 0.

    Bounds must not be negative, so that x = 0 is feasible. Bland's rule guarantees termination.
    """
    wide = len(worth)
    table = [[*map(float, row), float(bound)] for row, bound in zip(rows, most, strict=True)]
    goal = [*map(float, worth), 0.0]
    outside, inside = list(range(wide)), list(range(wide, wide + len(rows)))
    while True:
        enters = min((n for n in range(wide) if goal[n] > TINY), key=outside.__getitem__, default=None)
        if enters is None:
            return -goal[-1]
        ratios = [(row[-1] / row[enters], inside[n], n) for n, row in enumerate(table) if row[enters] > TINY]
        if not ratios:
            raise ValueError("nothing bounds this program; give every variable a row that does")
        least = min(ratios)[0]
        leaves = min((name, n) for ratio, name, n in ratios if ratio <= least + TINY)[1]
        _swap([*table, goal], leaves, enters)
        outside[enters], inside[leaves] = inside[leaves], outside[enters]


def _swap(lines: list[list[float]], leaves: int, enters: int) -> None:
    row = lines[leaves]
    by = 1 / row[enters]
    row[:] = [value * by for value in row]
    row[enters] = by
    for line in lines:
        times = line[enters]
        if line is not row and times:
            line[enters] = 0.0
            line[:] = [a - times * b for a, b in zip(line, row, strict=True)]
