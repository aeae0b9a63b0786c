"""What must be done to the cards of a lease that was placed just now, before its slices are there."""

from collections.abc import Sequence

from broker.domain.placement.warmth import Cutting, cutting
from broker.services.catalogue import shape
from broker.services.placement import feed
from broker.services.placement.cards import warm_named
from ports import database

# Beside its own places: what was left cut there before it came.
BESIDE = f"""
SELECT g.id, g.gpu_model_id,
       (SELECT string_agg(isolation || ':' || profile || '@' || start, ' ') FROM broker_occupied o
         WHERE o.gpu_id = g.id AND NOT EXISTS (
           SELECT FROM unnest(%(gpus)s::text[], %(starts)s::int[]) AS own (gpu_id, start)
            WHERE own.gpu_id = g.id AND own.start = o.start)),
       {feed.ENDED}
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE g.id = ANY(%(gpus)s)
"""
Place = tuple[str, int]  # card, first unit


def how_cut(places: Sequence[Place], profile: str, isolation: str) -> list[Cutting]:
    """Return by place what must be done for a slice that is held there and that nobody has made yet."""
    with database.prepared() as cursor:
        cursor.execute(BESIDE, {"gpus": [gpu for gpu, _ in places], "starts": [start for _, start in places]})
        told = {gpu: (model, lies or "", ended or "") for gpu, model, lies, ended in cursor.fetchall()}
    found = []
    for gpu, start in places:
        model, lies, ended = told[gpu]
        wanted = shape(model, profile, isolation)
        found.append(cutting(warm_named(model, lies, ended), wanted, wanted.placed_at(start)))
    return found
