"""Fleet map as SVG: cluster, node (row), GPU (column), slice at its true start.

Large GPUs (up to 160) are links with a rectangle per slice. Dense ones share one line per state and
node, where height has meaning as well as colour; the node is the link, and fleet_map.js makes one of
each GPU: so a thousand GPUs stay below 100 kB.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.utils.html import escape
from django.utils.translation import gettext as _

from web.ui.svg import SliceSpan, format_coordinate, rect, text

MAX_LARGE_GPUS = 160
NAMED_EVERY_NTH = 4  # only every fourth dense row is named, or names would touch
NAME_WIDTH = 64  # width of the node names left of the first GPU
# dense GPUs: the y of a state's line; its width, in elevenths of the height, is in the style sheet
MIDDLE_Y = "5.5"
LINE_Y = {"idle": "8.5", "reserved": "2", "fragmented": "9.5"}


GPU = "GPU"


@dataclass(frozen=True)
class MapGpu:
    """One GPU: its link, its accessible name, its number of cells and their contents.

    A dense map has only `summary`, units sold of all: `3/8` or `0/8, unhealthy`; fleet_map.js makes the words
    of it.
    """

    url: str
    words: str
    spans: tuple[SliceSpan, ...]
    cells: int = 8
    current: bool = False
    ill: bool = False  # the GPU itself is unhealthy
    summary: str = ""
    index: int = 0


@dataclass(frozen=True)
class MapNode:
    """One node and its GPUs in order.

    A dense map links to the node, named by `words`.
    """

    name: str
    gpus: tuple[MapGpu, ...]
    url: str = ""
    words: str = ""
    device: str = GPU


@dataclass(frozen=True)
class MapCluster:
    """One cluster: its name, a note beside it, and its nodes."""

    name: str
    note: str
    rows: tuple[MapNode, ...]

    @property
    def widest(self) -> int:
        """Return the largest number of GPUs on a node."""
        return max((len(row.gpus) for row in self.rows), default=1)


def fleet_map(blocks: Sequence[MapCluster], label: str) -> str:
    """Draw the whole fleet, large or dense by the number of GPUs."""
    count = sum(len(row.gpus) for block in blocks for row in block.rows)
    return large_map(blocks, label) if count <= MAX_LARGE_GPUS else dense_map(blocks, label)


def large_map(blocks: Sequence[MapCluster], label: str) -> str:
    """Draw every GPU as a link of 82 × 22 with a rectangle per slice.

    The first GPU is the map's only tab stop.
    """
    drawn: list[str] = []
    top, stop = 12, True
    for block in blocks:
        drawn.append(text(block.name, 0, top, "cluster-name"))
        drawn.append(text(block.note, NAME_WIDTH + max(0, len(block.name) - 8) * 7, top))
        drawn += (
            text(_("GPU {i}").format(i=i), NAME_WIDTH + 41 + 87 * i, top + 20, "align-middle")
            for i in range(block.widest)
        )
        top += 27
        for row in block.rows:
            drawn.append(f"<g>{text(row.name, 0, top + 15)}")
            for i, gpu in enumerate(row.gpus):
                drawn.append(large_gpu(gpu, NAME_WIDTH + 87 * i, top, stop=stop))
                stop = False
            drawn.append("</g>")
            top += 30
        top += 17
    width = NAME_WIDTH + 87 * max((block.widest for block in blocks), default=1)
    return map_frame(width, max(top - 22, 40), label, drawn)


def large_gpu(gpu: MapGpu, x: float, y: float, *, stop: bool) -> str:
    """Draw one large GPU and the outline that shows on hover."""
    step = 83 / gpu.cells
    slices = (rect(s.kind, x + s.start * step, y, s.size * step - 1, 22, 1.5) for s in gpu.spans)
    return gpu_link(gpu, "".join(slices) + rect("gpu-outline", x - 2, y - 2, 86, 26, 3), stop=stop)


def dense_map(blocks: Sequence[MapCluster], label: str) -> str:
    """Draw a column per cluster, one line per state and node.

    GPUs are 26 × 11.
    """
    drawn: list[str] = []
    left, deepest = 0.0, 0.0
    for block in blocks:
        drawn.append(text(block.name, left, 12, "cluster-name"))
        drawn.append(text(block.note, left + 10 + 7 * len(block.name), 12))
        for place, row in enumerate(block.rows):
            where = f'transform="translate({format_coordinate(left + 30)} {34 + 15 * place})"'
            name = text(row.name, -30, 10) if place % NAMED_EVERY_NTH == 0 else ""
            drawn.append(f"<a {dense_node_attributes(row)} {where}>{name}{dense_node(row)}</a>")
        deepest = max(deepest, 34.0 + 15 * len(block.rows))
        left += 30 + 29 * block.widest + 22
    return map_frame(left - 18, deepest + 4, label, drawn)


def dense_node_attributes(row: MapNode) -> str:
    """Return a node's link and its GPUs' numbers and contents, for fleet_map.js."""
    gpus = ";".join(f"{gpu.index}:{gpu.summary}" for gpu in row.gpus)
    device = "" if row.device == GPU else f' data-device="{escape(row.device)}"'
    return f'href="{escape(row.url)}" aria-label="{escape(row.words or row.name)}" data-gpus="{escape(gpus)}"{device}'


def dense_node(row: MapNode) -> str:
    """Draw the GPUs of a node."""
    return dense_gpus(tuple((gpu.cells, gpu.spans, gpu.current, gpu.ill) for gpu in row.gpus))


# Maps are polled every few seconds, and few nodes change between two of them.
@lru_cache(maxsize=4096)
def dense_gpus(gpus: tuple[tuple[int, tuple[SliceSpan, ...], bool, bool], ...]) -> str:
    """Draw GPUs given as (cells, spans, current, ill).

    All free first, then a line for each state, then the outlines.
    """
    lines: dict[str, list[tuple[int, int]]] = {"free": [(0, 290 * len(gpus) - 30)] if gpus else []}
    for i, (cells, spans, _current, _ill) in enumerate(gpus):
        step = 260 / cells
        for span in spans:
            if span.kind != "free":
                end = (span.start + span.size) * step - (6 if span.size < cells else 0)
                lines.setdefault(span.kind, []).append((290 * i + round(span.start * step), 290 * i + round(end)))
    marks = (
        f'<rect class="gpu-outline {"selected" if current else "unhealthy"}"'
        f' x="{29 * i - 1}" y="-1" width="28" height="13"/>'
        for i, (_, _, current, ill) in enumerate(gpus)
        if current or ill
    )
    return "".join([*(dense_state_path(kind, runs) for kind, runs in lines.items()), *marks])


def dense_state_path(kind: str, spans: Sequence[tuple[int, int]]) -> str:
    """Draw all runs of one state on a node as one path.

    Spans are in tenths, each relative to the end of the previous one.
    """
    middle = LINE_Y.get(kind, MIDDLE_Y)
    moves, at = "", 0
    for start, end in spans:
        moves += f"m{format_coordinate((start - at) / 10)} 0" if moves else f"M{format_coordinate(start / 10)} {middle}"
        moves, at = f"{moves}h{format_coordinate((end - start) / 10)}", end
    return f'<path class="{escape(kind)}" d="{moves}"/>'


def gpu_link(gpu: MapGpu, drawn: str, *, stop: bool) -> str:
    """Wrap a GPU's drawing in its link; `stop` makes it the map's only tab stop."""
    current = ' aria-current="true"' if gpu.current else ""
    words = escape(gpu.words)
    ill = ' class="unhealthy"' if gpu.ill else ""
    where = f'href="{escape(gpu.url)}" tabindex="{0 if stop else -1}"'
    return f'<a {where}{ill}{current} aria-label="{words}"><title>{words}</title>{drawn}</a>'


def map_frame(width: float, height: float, label: str, drawn: Sequence[str]) -> str:
    """Frame the map as a group of links."""
    wide = format_coordinate(width + 3)
    size = f'width="{wide}" viewBox="-3 0 {wide} {format_coordinate(height)}"'
    words = f'role="group" aria-label="{escape(label)}"'
    return f'<svg class="fleet fleet-map" {size} {words}>{"".join(drawn)}</svg>'
