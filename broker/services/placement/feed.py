"""What changed about the cards since one last looked, and how they are now, told by PostgreSQL's own snapshots.

Each row tells which transaction wrote it. New to a reader is what was written by transactions that were still open when
it last looked, or that began later. How a card is now is read after that: a change that comes in between is told
again the next time, and reading a card twice does no harm.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import structlog
from django.db import connection

from broker.domain.geometry import EMPTY
from broker.models import LayoutPolicy
from broker.provisioners.kubernetes.drivers.choosing import DRIVERS, leaves_cut, sold_uncut
from broker.services.placement.cards import Card, cut_of, publishes_of, state_named, warm_named
from ports import database

FAR = 5000  # so many changes behind, reading everything is quicker
log = structlog.get_logger(__name__)

# What a restored copy brought from another server's numbers lies in the future here, and says nothing.
_UPTO = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_OWN = "pg_current_xact_id_if_assigned()::text::bigint"
_LATER = "xid >= %(upto)s::bigint AND xid < " + _UPTO
_OPEN = f"xid = ANY(array_append(%(still_open)s::bigint[], {_OWN}))"


def _news(kind: str, column: str, table: str) -> str:
    return f"""
UNION ALL (SELECT '{kind}', {column}, false FROM {table} WHERE {_LATER} ORDER BY xid LIMIT {FAR})
UNION ALL (SELECT '{kind}', {column}, coalesce(xid = {_OWN}, false) FROM {table} WHERE {_OPEN})"""


NOW = f"""
SELECT 'now' AS kind, concat_ws(' ', pg_current_snapshot(), {_OWN}) AS what, false AS own
UNION ALL
SELECT 'books', concat_ws(' ', (SELECT oid FROM pg_database WHERE datname = current_database()),
                          pg_postmaster_start_time()), false
"""
NEWS = (
    NOW
    + _news("gpu", "gpu_id", "broker_placechange")
    + _news("gpu", "id", "broker_gpu")
    + _news("node", "id", "broker_node")
    + _news("cluster", "id", "broker_cluster")
)
# Read through the view, which tells of a place neither whose it is nor which lease has it.
_LIES = "string_agg(isolation || ':' || profile || '@' || start, ' ' ORDER BY start)"
# So many that ended last: what lies behind them is taken for gone, so that a long history costs nothing.
LOOKED_BACK = 32
# A node that was away, and a card that was ill, may have been restarted: nothing from before is counted on.
ENDED = f"""
CASE WHEN g.layout_policy = '{LayoutPolicy.DYNAMIC}' AND c.driver <> ALL('{{{",".join(DRIVERS)}}}') THEN
  (SELECT string_agg(isolation || ':' || profile || '@' || start, ' ' ORDER BY released_at DESC, held_at DESC)
     FROM (SELECT * FROM broker_vacated v
            WHERE v.gpu_id = g.id AND v.released_at >= greatest(n.state_since, g.health_since)
            ORDER BY v.released_at DESC, v.held_at DESC LIMIT {LOOKED_BACK}) last) END
"""
_CARDS = """
SELECT g.id, n.id, n.name, c.id, c.name, g.index, c.shares_soft_cards, g.gpu_model_id, c.region,
       g.health = 'healthy' AND n.state = 'ready' AND g.closed_since IS NULL
         AND c.silent_since IS NULL AND c.frozen = '',
       c.recuts AND g.fixed_layout -> 0 ->> 'asks' IS NULL, g.layout_policy, g.fixed_layout::text,
       c.driver, g.fabric, g.numa, g.published::text,
       {lies}, {ended}
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
  {more}
 ORDER BY c.name, n.name, g.index
"""
ALL = _CARDS.format(
    ended=ENDED,
    lies="held.lies",
    more=f"LEFT JOIN (SELECT gpu_id, {_LIES} AS lies FROM broker_occupied GROUP BY gpu_id) held ON held.gpu_id = g.id",
)
SOME = _CARDS.format(
    ended=ENDED,
    lies=f"(SELECT {_LIES} FROM broker_occupied WHERE gpu_id = g.id)",
    more="WHERE g.id = ANY(%s)",
)
KINDS = "gpu", "node", "cluster"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far one has looked: which database, the first transaction yet to come, and those still open."""

    books: str
    upto: int
    still_open: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class News:
    """What to look at again, by id; `own` are those that this transaction changed and may yet undo."""

    mark: Mark
    touched: dict[str, set[str]]  # gpu, node, cluster
    own: dict[str, set[str]]
    too_many: bool


def now() -> Mark:
    """Return how far one looks now."""
    with database.prepared() as cursor:
        cursor.execute(NOW)
        return _mark(cursor.fetchall())


def since(mark: Mark) -> News:
    """Return what changed since then."""
    with database.prepared() as cursor:
        cursor.execute(NEWS, {"upto": mark.upto, "still_open": list(mark.still_open)})
        rows = cursor.fetchall()
    touched: dict[str, set[str]] = {kind: set() for kind in KINDS}
    own: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for kind, what, is_own in rows:
        if kind in KINDS:
            touched[kind].add(what)
        if is_own:
            own[kind].add(what)
    return News(_mark(rows), touched, own, too_many=len(rows) >= FAR)


def _mark(rows: Sequence[Sequence[str]]) -> Mark:
    told = {kind: what for kind, what, _ in rows if kind not in KINDS}
    snapshot, _, own = told["now"].partition(" ")
    _, upto, still_open = snapshot.split(":")
    opened = [int(each) for each in still_open.split(",") if each]
    return Mark(told["books"], int(upto), (*opened, *([int(own)] if own else [])))


def every_card() -> Iterator[Card]:
    """Read all cards with what lies on them."""
    with connection.cursor() as cursor:
        cursor.execute(ALL)
        yield from map(_card, cursor.fetchall())


def cards_with(ids: Iterable[str]) -> list[Card]:
    """Read some cards again; those that are no more are left out."""
    with database.prepared() as cursor:
        cursor.execute(SOME, [list(ids)])
        return [_card(row) for row in cursor.fetchall()]


def _card(row: Sequence[object]) -> Card:
    gpu, node, node_name, cluster_id, cluster, index, shares, model, region, *rest = row
    sellable, recuts, policy, cut, driver, fabric, numa, told, lies, ended = rest
    layout, state, warm = None, EMPTY, None
    publishes = publishes_of(str(told)) if told else None
    try:
        layout = cut_of(str(model), str(cut)) if policy == LayoutPolicy.FIXED else None
        state = state_named(str(model), str(lies)) if lies else EMPTY
        if layout is None and publishes is None and leaves_cut(str(driver)):
            warm = warm_named(str(model), str(lies or ""), str(ended or ""))
    except (ValueError, KeyError) as error:
        # What its books say of it cannot be: nobody is placed on it until somebody has looked.
        log.error("card cannot be read", gpu_id=gpu, reason=str(error))
        sellable = False
    return Card(
        str(gpu),
        str(node),
        str(node_name),
        str(cluster_id),
        str(cluster),
        int(str(index)),
        bool(shares),
        str(model),
        str(region),
        bool(sellable),
        bool(recuts),
        layout,
        sold_uncut(str(driver)),
        str(fabric),
        str(numa),
        state,
        str(lies).count("@") if lies else 0,
        publishes=publishes,
        warm=warm,
    )
