"""What a request that comes now could have: what fits, but for the cards that are kept for who has waited too long."""

from collections.abc import Iterable
from datetime import datetime

from broker.models import Offering
from broker.services import capacity
from broker.services.capacity import Seating, pool_of
from broker.services.leases.precedence import kept_in


def count(offerings: Iterable[Offering], *, now: datetime, cluster: str = "") -> dict[str, int]:
    """Return exactly how many of each offering would be placed now, each counted alone; see `capacity.availability`."""
    asked = list(offerings)
    kept = kept_in({pool_of(each) for each in asked}, now=now)
    return capacity.availability(asked, cluster=cluster, kept=kept)


def preview(
    offering: Offering,
    *,
    now: datetime,
    quantity: int = 1,
    same_node: bool = False,
    topology: str = "",
    cluster: str = "",
) -> Seating | None:
    """Say where a request would go now, if it need not wait; see `capacity.preview`."""
    return capacity.preview(
        offering,
        quantity=quantity,
        same_node=same_node,
        topology=topology,
        cluster=cluster,
        kept=kept_in({pool_of(offering)}, now=now),
    )
