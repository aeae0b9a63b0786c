"""Charts that do not move, drawn on the server: spend per day, and spend against a budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from django.utils.html import escape

from config.drawings import number

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 738, 262, 48, 24, 236


@dataclass(frozen=True)
class Column:
    """One day: its label (empty leaves the axis free), an amount per series, or an expected amount."""

    label: str
    amounts: tuple[float, ...] = ()
    expected: float | None = None
    low: float = 0
    high: float = 0


def steps(top: float, lines: int = 4) -> list[float]:
    """Return round values from nought to at least `top`, three to five of them."""
    if top <= 0:
        return [0, 1]
    raw = top / lines
    size = 10 ** floor(log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    return [step * i for i in range(ceil(top / step) + 1)]


def stacked_bars(
    columns: Sequence[Column],
    classes: Sequence[str],
    write: Callable[[float], str],
    *,
    label: str,
    now_at: float | None = None,
    now_word: str = "now",
) -> str:
    """Draw stacked columns; expected days are pale with a whisker, `now_at` counts in columns."""
    tops = [sum(c.amounts) if c.expected is None else max(c.expected, c.high) for c in columns]
    scale = steps(max(tops, default=0))
    drawn = [
        _grid(value, BOTTOM - (BOTTOM - TOP) * value / scale[-1], write(value), WIDTH) for value in scale
    ]
    pitch = (WIDTH - LEFT) / max(len(columns), 1)
    width = pitch * 0.74

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / scale[-1]

    for i, column in enumerate(columns):
        x = LEFT + i * pitch + pitch * 0.13
        middle = number(x + width / 2)
        base = 0.0
        for amount, name in zip(column.amounts, classes, strict=False):
            if amount > 0:
                height = max(y(base) - y(base + amount) - 0.6, 0.4)
                drawn.append(
                    f'<rect class="{name}" x="{number(x)}" y="{number(y(base + amount))}" '
                    f'width="{number(width)}" height="{number(height)}"/>'
                )
            base += amount
        if column.expected is not None:
            drawn.append(
                f'<rect class="f1 fc" x="{number(x)}" y="{number(y(column.expected))}" width="{number(width)}" '
                f'height="{number(BOTTOM - y(column.expected))}"/>'
                f'<path class="wh" d="M{middle} {number(y(column.low))}V{number(y(column.high))}"/>'
            )
        if column.label:
            drawn.append(f'<text class="midt" x="{middle}" y="{BOTTOM + 18}">{escape(column.label)}</text>')
    if now_at is not None:
        x = LEFT + now_at * pitch
        drawn.append(f'<path class="today" d="M{number(x)} 6V{BOTTOM}"/>')
        end = ' class="end"' if x > WIDTH * 0.7 else ""
        shift = -6 if end else 6
        drawn.append(f'<text{end} x="{number(x + shift)}" y="14">{escape(now_word)}</text>')
    return _chart(WIDTH, HEIGHT, label, drawn)


@dataclass(frozen=True)
class Track:
    """A running total against a limit: points (share of the period, total), then the forecast from there."""

    done: tuple[tuple[float, float], ...]
    limit: float
    limit_word: str
    forecast: tuple[tuple[float, float, float, float], ...] = ()  # share, likely, low, high
    forecast_word: str = ""
    ticks: tuple[tuple[float, str], ...] = ()


def against_limit(track: Track, write: Callable[[float], str], *, label: str) -> str:
    """Draw the running total of a month, its forecast with an interval, and the limit as a named line."""
    width, right = 330, 324
    highest = max([track.limit, *(v for _, v in track.done), *(f[3] for f in track.forecast)], default=1)
    scale = steps(highest)

    def x(share: float) -> float:
        return LEFT + (right - LEFT) * share

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / scale[-1]

    def points(values: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{number(x(a))},{number(y(b))}" for a, b in values)

    drawn = [_grid(value, y(value), write(value), right) for value in scale]
    if track.forecast:
        start = track.done[-1:]
        band = [*start, *((a, high) for a, _, _, high in track.forecast)]
        band += [(a, low) for a, _, low, _ in reversed(track.forecast)]
        drawn.append(f'<polygon class="band" points="{points(band)}"/>')
        drawn.append(
            f'<polyline class="ln f" points="{points([*start, *((f[0], f[1]) for f in track.forecast)])}"/>'
        )
    drawn.append(f'<polyline class="ln" points="{points(track.done)}"/>')
    if track.limit:
        drawn.append(f'<path class="lim" d="M{LEFT} {number(y(track.limit))}H{right}"/>')
        drawn.append(
            f'<text class="strong" x="{LEFT + 4}" y="{number(y(track.limit) - 6)}">{escape(track.limit_word)}</text>'
        )
    if track.forecast and track.forecast_word:
        last = track.forecast[-1]
        drawn.append(
            f'<text class="strong end" x="{right}" y="{number(y(last[2]) + 18)}">{escape(track.forecast_word)}</text>'
        )
    for share, word in track.ticks:
        drawn.append(f'<text class="midt" x="{number(x(share))}" y="{BOTTOM + 18}">{escape(word)}</text>')
    return _chart(width, HEIGHT, label, drawn)


def _grid(value: float, y: float, word: str, right: float) -> str:
    return (
        f'<path class="gl" d="M{LEFT} {number(y)}H{number(right)}"/>'
        f'<text class="end" x="{LEFT - 8}" y="{number(y + 4)}">{escape(word)}</text>'
    )


def _chart(width: int, height: int, label: str, drawn: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(drawn)}</svg>"
    )
