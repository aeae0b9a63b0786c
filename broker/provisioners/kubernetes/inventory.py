"""What a cluster has to sell, as its labels and slices tell it: nodes, their cards, and what each is cut into."""

from dataclasses import dataclass, field, replace

from broker.domain.published import Published
from broker.domain.states import Isolation


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """One slice that stands on a card."""

    start: int
    size: int
    profile: str


@dataclass(frozen=True, slots=True)
class CardFound:
    """One card; where nobody tells its real UUID it is known by its node and number."""

    index: int
    uuid: str
    model: str  # the name of one of our GpuModels
    isolation: Isolation
    cuts: tuple[Cut, ...]  # empty: cut for each lease
    healthy: bool = True
    fabric: str = ""  # cards of a node that have the same reach each other by NVLink; empty: nobody tells
    numa: str = ""  # cards of a node that have the same lie below one processor; empty: nobody tells
    published: Published | None = (
        None  # of one that is cut for each lease, where that is less than its model can
    )
    asks: str = ""  # the resource by which a pod gets any of it, however cut; empty: each by its usual name


@dataclass(frozen=True, slots=True)
class NodeFound:
    """One machine with cards; `problems` say what of it cannot be sold and what to do about it."""

    name: str
    cards: tuple[CardFound, ...] = ()
    problems: tuple[str, ...] = field(default=())


def linked(node: NodeFound, fabric: str) -> NodeFound:
    """Return a node whose cards are all in one NVLink domain, unless nobody names one."""
    if not fabric:
        return node
    return replace(node, cards=tuple(replace(card, fabric=fabric) for card in node.cards))
