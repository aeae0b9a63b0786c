"""Static charts as SVG: spend per day, and a running total against its limit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from web.ui.svg import format_coordinate, format_points, rect, svg_image, text

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 738, 262, 48, 24, 236
NARROW = 330
WORD_WIDTH = 100  # room for the word at the forecast

AxisFormatter = Callable[[float], str]


@dataclass(frozen=True)
class ChartColumn:
    """One day: its label (empty omits it), an amount per series, or a forecast."""

    label: str = ""
    amounts: tuple[float, ...] = ()
    expected: float | None = None
    low: float = 0
    high: float = 0

    @property
    def top(self) -> float:
        """Return the column's height, its whisker included."""
        return sum(self.amounts) if self.expected is None else max(self.expected, self.high)


@dataclass(frozen=True)
class RunningTotal:
    """A running total against a limit, as (share of the period, total) points.

    Forecast points add (low, high).
    """

    done: tuple[tuple[float, float], ...]
    limit: float = 0
    limit_word: str = ""
    forecast: tuple[tuple[float, float, float, float], ...] = ()
    forecast_word: str = ""
    ticks: tuple[tuple[float, str], ...] = ()


def axis_values(top: float, lines: int = 4) -> list[float]:
    """Return three to five round axis values from zero to at least `top`."""
    if top <= 0:
        return [0, 1]
    raw = top / lines
    size = 10 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    return [step * i for i in range(ceil(top / step) + 1)]


class AxisScale:
    """Maps amounts to heights, and draws the grid."""

    def __init__(self, top: float) -> None:
        self.values = axis_values(top)

    def y(self, value: float) -> float:
        """Return the y coordinate of an amount."""
        return BOTTOM - (BOTTOM - TOP) * value / self.values[-1]

    def grid(self, right: float, write: AxisFormatter) -> list[str]:
        """Draw the grid lines with their amounts at the left."""
        return [
            f'<path class="grid-line" d="M{LEFT} {format_coordinate(self.y(value))}H{format_coordinate(right)}"/>'
            + text(write(value), LEFT - 8, self.y(value) + 4, "align-end")
            for value in self.values
        ]


def stacked_bars(
    columns: Sequence[ChartColumn],
    series: Sequence[str],
    write: AxisFormatter,
    *,
    label: str,
    now_at: float | None = None,
) -> str:
    """Draw stacked columns; forecast days are pale with a whisker.

    `now_at` counts in columns.
    """
    scale = AxisScale(max((column.top for column in columns), default=0))
    drawn = scale.grid(WIDTH, write)
    pitch = (WIDTH - LEFT) / max(len(columns), 1)
    for i, column in enumerate(columns):
        drawn += draw_column(column, series, scale, LEFT + i * pitch + pitch * 0.13, pitch * 0.74)
    if now_at is not None:
        x = LEFT + now_at * pitch
        late = x > WIDTH * 0.7
        drawn.append(f'<path class="now-line" d="M{format_coordinate(x)} 6V{BOTTOM}"/>')
        drawn.append(text("now", x - 6 if late else x + 6, 14, "align-end" if late else ""))
    return svg_image("chart", WIDTH, HEIGHT, label, *drawn)


def draw_column(column: ChartColumn, series: Sequence[str], scale: AxisScale, x: float, width: float) -> list[str]:
    """Draw one day: spend by series, or the forecast with its interval."""
    drawn, base, middle = [], 0.0, x + width / 2
    for amount, name in zip(column.amounts, series, strict=False):
        if amount > 0:
            top = scale.y(base + amount)
            drawn.append(rect(name, x, top, width, max(scale.y(base) - top - 0.6, 0.4)))
        base += amount
    if column.expected is not None:
        top = scale.y(column.expected)
        drawn.append(rect("series-1 forecast-bar", x, top, width, BOTTOM - top))
        low, high = format_coordinate(scale.y(column.low)), format_coordinate(scale.y(column.high))
        caps = f"M{format_coordinate(middle - 3)} {low}h6M{format_coordinate(middle - 3)} {high}h6"
        drawn.append(f'<path class="whisker" d="M{format_coordinate(middle)} {low}V{high}{caps}"/>')
    if column.label:
        drawn.append(text(column.label, middle, BOTTOM + 18, "align-middle"))
    return drawn


def running_total_chart(track: RunningTotal, write: AxisFormatter, *, label: str) -> str:
    """Draw a month's running total, its forecast interval, and the limit as a named line."""
    right = NARROW - 6
    tops = [track.limit, *(value for _, value in track.done), *(row[3] for row in track.forecast)]
    scale = AxisScale(max(tops))

    def place(share: float, value: float) -> tuple[float, float]:
        return LEFT + (right - LEFT) * share, scale.y(value)

    drawn = scale.grid(right, write)
    done = [place(*pair) for pair in track.done]
    if track.forecast and done:
        likely = [place(share, value) for share, value, _, _ in track.forecast]
        lows = [place(share, low) for share, _, low, _ in track.forecast]
        highs = [place(share, high) for share, _, _, high in track.forecast]
        drawn.append(f'<polygon class="forecast-range" points="{format_points([done[-1], *highs, *reversed(lows)])}"/>')
        drawn.append(
            f'<polyline class="chart-line chart-line-forecast" points="{format_points([done[-1], *likely])}"/>'
        )
        # The word stands above its interval, or below everything where the limit's line is there.
        word_y = min(y for _, y in highs) - 8
        if word_y < 14 or (track.limit and abs(scale.y(track.limit) - word_y) < 22):
            lowest = max(y for x, y in [*lows, *done] if x > right - WORD_WIDTH or x == lows[-1][0])
            word_y = min(lowest + 18, BOTTOM - 6)
        drawn.append(text(track.forecast_word, right, word_y, "emphasis align-end"))
    drawn.append(f'<polyline class="chart-line" points="{format_points(done)}"/>')
    if track.limit:
        y = scale.y(track.limit)
        drawn.append(f'<path class="limit" d="M{LEFT} {format_coordinate(y)}H{right}"/>')
        drawn.append(text(track.limit_word, LEFT + 4, y - 6, "emphasis"))
    drawn += (text(word, place(share, 0)[0], BOTTOM + 18, "align-middle") for share, word in track.ticks)
    return svg_image("chart chart-narrow", NARROW, HEIGHT, label, *drawn)


def step_chart(
    values: Sequence[float],
    write: AxisFormatter,
    *,
    label: str,
    ticks: Sequence[tuple[float, str]] = (),
    limit: float = 0,
    limit_word: str = "",
) -> str:
    """Draw averages of equal steps as a filled line, and a limit."""
    scale = AxisScale(max([limit, *values], default=0))
    drawn = scale.grid(WIDTH, write)
    pitch = (WIDTH - LEFT) / max(len(values), 1)
    line = [(LEFT + pitch * (i + side), scale.y(value)) for i, value in enumerate(values) for side in (0, 1)]
    if line:
        foot = [(line[-1][0], float(BOTTOM)), (line[0][0], float(BOTTOM))]
        drawn.append(f'<polygon class="forecast-range" points="{format_points([*line, *foot])}"/>')
        drawn.append(f'<polyline class="chart-line" points="{format_points(line)}"/>')
    if limit:
        y = scale.y(limit)
        drawn.append(f'<path class="limit" d="M{LEFT} {format_coordinate(y)}H{WIDTH}"/>')
        drawn.append(text(limit_word, LEFT + 4, y - 6, "emphasis"))
    drawn += (text(word, LEFT + (WIDTH - LEFT) * share, BOTTOM + 18, "align-middle") for share, word in ticks)
    return svg_image("chart", WIDTH, HEIGHT, label, *drawn)
