"""Linear programs: small, dense, and solved in a moment by the simplex method."""

from collections.abc import Sequence

TINY = 1e-9


def maximum(
    worth: Sequence[float], rows: Sequence[Sequence[float]], most: Sequence[float]
) -> tuple[float, list[float], list[float]]:
    """Maximise worth·x where every row·x is at most its bound and no x is below nought.

    Bounds must not be below nought, so that nothing at all is a start. Returns the maximum, x, and what one more
    of each bound would be worth. Bland's rule, so that it ends.
    """
    wide, high = len(worth), len(rows)
    table = [[*map(float, row), float(bound)] for row, bound in zip(rows, most, strict=True)]
    goal = [*map(float, worth), 0.0]
    outside, inside = list(range(wide)), list(range(wide, wide + high))
    while True:
        enters = min((n for n in range(wide) if goal[n] > TINY), key=outside.__getitem__, default=None)
        if enters is None:
            break
        ratios = [(row[-1] / row[enters], inside[n], n) for n, row in enumerate(table) if row[enters] > TINY]
        if not ratios:
            raise ValueError("nothing bounds this program; give every variable a row that does")
        least = min(ratio for ratio, _, _ in ratios)
        leaves = min((name, n) for ratio, name, n in ratios if ratio <= least + TINY)[1]
        _pivot(table, goal, leaves, enters)
        outside[enters], inside[leaves] = inside[leaves], outside[enters]
    x, prices = [0.0] * wide, [0.0] * high
    for n, name in enumerate(inside):
        if name < wide:
            x[name] = table[n][-1]
    for n, name in enumerate(outside):
        if name >= wide:
            prices[name - wide] = max(0.0, -goal[n])
    return -goal[-1], x, prices


def _pivot(table: list[list[float]], goal: list[float], leaves: int, enters: int) -> None:
    row = table[leaves]
    by = 1 / row[enters]
    row[:] = [value * by for value in row]
    row[enters] = by
    for other in (*table, goal):
        if other is row or not (times := other[enters]):
            continue
        other[enters] = 0.0
        other[:] = [a - times * b for a, b in zip(other, row, strict=True)]
