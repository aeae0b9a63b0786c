"""What cutting a node anew needs of its cluster: to look, to keep pods away, and to tell it what to become."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from broker.domain.cuts import Cut
from broker.domain.repartition import NodeSeen


@dataclass(frozen=True, slots=True)
class Machine:
    """A node: our id, and the name and the cluster under which its cluster knows it."""

    id: str
    name: str
    cluster: str


class LayoutHands(Protocol):
    """Every call may be repeated, and raises Unanswered when nobody knows whether it happened."""

    def profiles(self, machines: Sequence[Machine]) -> dict[str, dict[str, int] | None]:
        """Return the most of each profile that a card may have, by the id of each node of one cluster that says it.

        None stands for all that its model can; a node that does not say is left out, and is to stay as it is cut.
        """

    def look(self, machine: Machine, *, now: datetime) -> NodeSeen:
        """Say how far it is."""

    def prepare(self, machine: Machine, cuts: Mapping[int, Cut], *, now: datetime) -> timedelta:
        """Let it learn a layout by both its names; return how long until it surely has."""

    def taint(self, machine: Machine, *, on: bool) -> None:
        """Keep new pods away from it, or let them come again."""

    def tell(self, machine: Machine, config: str, *, version: str, now: datetime) -> bool:
        """Tell it to become a layout that it has learned; False when it is no longer as it was seen."""
