"""Charts that do not move, drawn on the server: spend per day, and a running total against its limit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from config.drawing.svg import number, picture, points, rect, text

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 738, 262, 48, 24, 236
NARROW = 330

Write = Callable[[float], str]


@dataclass(frozen=True)
class Column:
    """One day: its label (empty leaves the axis free), an amount per series, or an expected amount."""

    label: str = ""
    amounts: tuple[float, ...] = ()
    expected: float | None = None
    low: float = 0
    high: float = 0

    @property
    def top(self) -> float:
        """Return how high the column reaches, its whisker included."""
        return sum(self.amounts) if self.expected is None else max(self.expected, self.high)


@dataclass(frozen=True)
class Track:
    """A running total against a limit: (share of the period, total); the forecast adds (low, high)."""

    done: tuple[tuple[float, float], ...]
    limit: float = 0
    limit_word: str = ""
    forecast: tuple[tuple[float, float, float, float], ...] = ()
    forecast_word: str = ""
    ticks: tuple[tuple[float, str], ...] = ()


def steps(top: float, lines: int = 4) -> list[float]:
    """Return round values from nought to at least `top`, three to five of them."""
    if top <= 0:
        return [0, 1]
    raw = top / lines
    size = 10 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    return [step * i for i in range(ceil(top / step) + 1)]


class Scale:
    """Turns amounts into heights, and draws the grid they stand on."""

    def __init__(self, top: float) -> None:
        self.values = steps(top)

    def y(self, value: float) -> float:
        """Return the height at which an amount stands."""
        return BOTTOM - (BOTTOM - TOP) * value / self.values[-1]

    def grid(self, right: float, write: Write) -> list[str]:
        """Draw the lines and write their amounts left of them."""
        return [
            f'<path class="gl" d="M{LEFT} {number(self.y(value))}H{number(right)}"/>'
            + text(write(value), LEFT - 8, self.y(value) + 4, "end")
            for value in self.values
        ]


def stacked_bars(
    columns: Sequence[Column], series: Sequence[str], write: Write, *, label: str, now_at: float | None = None
) -> str:
    """Draw stacked columns; expected days are pale with a whisker, `now_at` counts in columns."""
    scale = Scale(max((column.top for column in columns), default=0))
    drawn = scale.grid(WIDTH, write)
    pitch = (WIDTH - LEFT) / max(len(columns), 1)
    for i, column in enumerate(columns):
        drawn += one_column(column, series, scale, LEFT + i * pitch + pitch * 0.13, pitch * 0.74)
    if now_at is not None:
        x = LEFT + now_at * pitch
        late = x > WIDTH * 0.7
        drawn.append(f'<path class="today" d="M{number(x)} 6V{BOTTOM}"/>')
        drawn.append(text("now", x - 6 if late else x + 6, 14, "end" if late else ""))
    return picture("chart", WIDTH, HEIGHT, label, *drawn)


def one_column(column: Column, series: Sequence[str], scale: Scale, x: float, width: float) -> list[str]:
    """Draw one day: what was spent by series, or what is expected with its interval."""
    drawn, base, middle = [], 0.0, x + width / 2
    for amount, name in zip(column.amounts, series, strict=False):
        if amount > 0:
            top = scale.y(base + amount)
            drawn.append(rect(name, x, top, width, max(scale.y(base) - top - 0.6, 0.4)))
        base += amount
    if column.expected is not None:
        top = scale.y(column.expected)
        drawn.append(rect("f1 fc", x, top, width, BOTTOM - top))
        low, high = number(scale.y(column.low)), number(scale.y(column.high))
        caps = f"M{number(middle - 3)} {low}h6M{number(middle - 3)} {high}h6"
        drawn.append(f'<path class="wh" d="M{number(middle)} {low}V{high}{caps}"/>')
    if column.label:
        drawn.append(text(column.label, middle, BOTTOM + 18, "midt"))
    return drawn


def against_limit(track: Track, write: Write, *, label: str) -> str:
    """Draw the running total of a month, its forecast with an interval, and the limit as a named line."""
    right = NARROW - 6
    tops = [track.limit, *(value for _, value in track.done), *(row[3] for row in track.forecast)]
    scale = Scale(max(tops))

    def place(share: float, value: float) -> tuple[float, float]:
        return LEFT + (right - LEFT) * share, scale.y(value)

    drawn = scale.grid(right, write)
    done = [place(*pair) for pair in track.done]
    if track.forecast and done:
        likely = [place(share, value) for share, value, _, _ in track.forecast]
        lows = [place(share, low) for share, _, low, _ in track.forecast]
        highs = [place(share, high) for share, _, _, high in track.forecast]
        drawn.append(f'<polygon class="band" points="{points([done[-1], *highs, *reversed(lows)])}"/>')
        drawn.append(f'<polyline class="ln f" points="{points([done[-1], *likely])}"/>')
        below = max(y for x, y in [*lows, done[-1]] if x > right - 100 or x == lows[-1][0])
        drawn.append(text(track.forecast_word, right, min(below + 18, BOTTOM - 6), "strong end"))
    drawn.append(f'<polyline class="ln" points="{points(done)}"/>')
    if track.limit:
        y = scale.y(track.limit)
        drawn.append(f'<path class="lim" d="M{LEFT} {number(y)}H{right}"/>')
        drawn.append(text(track.limit_word, LEFT + 4, y - 6, "strong"))
    drawn += (text(word, place(share, 0)[0], BOTTOM + 18, "midt") for share, word in track.ticks)
    return picture("chart slim", NARROW, HEIGHT, label, *drawn)
