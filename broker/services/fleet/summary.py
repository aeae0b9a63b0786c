"""The fleet in a few figures, for every page's frame. Must run as staff."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from broker.domain.states import LeaseState
from broker.services.fleet.uses import CHARGED, SCALE, Card, cards_by_use

FIGURES = f"""
SELECT (SELECT count(*) FROM broker_cluster), (SELECT count(*) FROM broker_gpu), count(DISTINCT l.id),
       count(DISTINCT l.tenant_id),
       coalesce(sum((upper(a.placement) - lower(a.placement)) * {SCALE} / m.memory_grid), 0)::bigint
  FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id JOIN broker_gpu g ON g.id = a.gpu_id
  JOIN broker_gpumodel m ON m.name = g.gpu_model_id
 WHERE a.released_at IS NULL AND a.leaving_since IS NULL AND l.state = 'active'
"""


@dataclass(frozen=True, slots=True)
class Summary:
    """`sold` counts cards in parts of SCALE."""

    clusters: int
    cards: int
    active: int
    tenants: int
    sold: int

    @property
    def sold_permille(self) -> int:
        return share(self.sold, self.cards * SCALE)


def read() -> Summary:
    """Return how large the fleet is and how much of it is sold; one query."""
    with connection.cursor() as cursor:
        cursor.execute(FIGURES)
        return Summary(*cursor.fetchone())


def of(cards: Sequence[Card]) -> Summary:
    """Return the same of a whole fleet that is loaded already."""
    held = [s for card in cards for s in card.slices if s.state is LeaseState.ACTIVE]
    used = cards_by_use(cards)
    return Summary(
        clusters=len({card.cluster for card in cards}),
        cards=len(cards),
        active=len({s.lease for s in held}),
        tenants=len({s.tenant for s in held}),
        sold=sum(used[use] for use in CHARGED),
    )


def share(part: int, whole: int) -> int:
    """Return thousandths, rounded half up; nothing of nothing is nothing."""
    return (part * 2000 + whole) // (2 * whole) if whole else 0
