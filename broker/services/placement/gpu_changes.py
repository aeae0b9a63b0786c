"""Changes to GPUs since a position, read by PostgreSQL snapshots.

Each row stores the transaction that wrote it. New to a reader is what was written by transactions that
were open at its last read, or that began later. The current state of a GPU is read after that: a change in
between is reported again the next time, and reading a GPU twice does no harm.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from broker.domain.geometry.gpu_state import EMPTY_GPU, PlacedSlice
from broker.models import LayoutPolicy
from broker.provisioners.kubernetes.drivers.driver_registry import dynamic_isolations, keeps_slices
from broker.services.placement.placement_gpus import (
    PlacementGpu,
    PromisedSlice,
    parse_layout,
    parse_promises,
    parse_published,
    parse_slices,
    parse_state,
    parse_warm_slices,
    state_with_promises,
)
from ports.postgres.sql_statements import fetch_rows, load_sql, query_rows

MAX_CHANGES = 5000  # with so many changes, reading everything is quicker
log = structlog.get_logger(__name__)

KINDS = "gpu", "node", "cluster"


class GpuRow(NamedTuple):
    """A row of `all_gpus.sql` and `some_gpus.sql`."""

    gpu: str
    node: str
    node_name: str
    cluster_id: str
    cluster: str
    number: int  # on its node
    shares_soft: bool
    model: str
    region: str
    sellable: bool
    auto_repartition: bool
    policy: str
    layout: str
    driver: str
    fabric: str
    numa: str
    published: str | None
    slices: str | None  # occupied ones, such as `hardware:1g.10gb@0 …`
    ended: str | None  # the same of ended placements, latest first
    promised: str | None  # the same of promised slots, each after the lease that gets it: `lse_…/hardware:…`


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """A read position: database, next transaction id, and transactions still open."""

    books: str
    upto: int
    still_open: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GpuChanges:
    """Ids that changed; `own` are changes of this transaction, which may be rolled back."""

    mark: ReadPosition
    touched: dict[str, set[str]]  # gpu, node, cluster
    uncommitted: dict[str, set[str]]
    too_many: bool


def current_position() -> ReadPosition:
    """Return the current read position."""
    return _parse_position(fetch_rows(load_sql("broker/placement/read_position"), None))


def changes_since(mark: ReadPosition) -> GpuChanges:
    """Return the changes since a position."""
    since = {"upto": mark.upto, "still_open": list(mark.still_open), "most": MAX_CHANGES}
    rows = fetch_rows(load_sql("broker/placement/changes_since"), since)
    touched: dict[str, set[str]] = {kind: set() for kind in KINDS}
    own: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for kind, what, is_own in rows:
        if kind in KINDS:
            touched[kind].add(what)
        if is_own:
            own[kind].add(what)
    return GpuChanges(_parse_position(rows), touched, own, too_many=len(rows) >= MAX_CHANGES)


def _parse_position(rows: Sequence[Sequence[str]]) -> ReadPosition:
    position = {kind: what for kind, what, _ in rows if kind not in KINDS}
    snapshot, _, own = position["now"].partition(" ")
    _, upto, still_open = snapshot.split(":")
    opened = [int(each) for each in still_open.split(",") if each]
    return ReadPosition(position["books"], int(upto), (*opened, *([int(own)] if own else [])))


def read_all_gpus() -> Iterator[PlacementGpu]:
    """Read all GPUs with their occupied slices."""
    for row in query_rows("broker/placement/all_gpus"):
        yield _to_placement_gpu(GpuRow(*row))


def read_gpus(ids: Iterable[str]) -> list[PlacementGpu]:
    """Read some GPUs again; those that no longer exist are left out."""
    rows = fetch_rows(load_sql("broker/placement/some_gpus"), {"gpus": list(ids)})
    return [_to_placement_gpu(GpuRow(*row)) for row in rows]


def _to_placement_gpu(row: GpuRow) -> PlacementGpu:
    layout, state, warm, sellable = None, EMPTY_GPU, None, row.sellable
    occupied: tuple[PlacedSlice, ...] = ()
    promised: tuple[PromisedSlice, ...] = ()
    publishes = parse_published(row.published) if row.published else None
    try:
        layout = parse_layout(row.model, row.layout) if row.policy == LayoutPolicy.FIXED else None
        state = parse_state(row.model, row.slices) if row.slices else EMPTY_GPU
        if row.promised:
            occupied = tuple(parse_slices(row.model, row.slices or ""))
            promised = parse_promises(row.model, row.promised)
            state = state_with_promises(occupied, promised)
        if layout is None and publishes is None and keeps_slices(row.driver):
            warm = parse_warm_slices(row.model, row.slices or "", row.ended or "")
    except (ValueError, KeyError) as error:
        # Its rows cannot be right: nothing is placed on it until an operator has checked.
        log.error("GPU cannot be read", gpu_id=row.gpu, reason=str(error))
        sellable = False
    return PlacementGpu(
        row.gpu,
        row.node,
        row.node_name,
        row.cluster_id,
        row.cluster,
        row.number,
        row.shares_soft,
        row.model,
        row.region,
        sellable,
        row.auto_repartition,
        layout,
        dynamic_isolations(row.driver),
        row.fabric,
        row.numa,
        state,
        row.slices.count("@") if row.slices else 0,
        publishes=publishes,
        warm=warm,
        occupied=occupied,
        promised=promised,
    )
