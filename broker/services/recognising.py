"""Which cards of a report we know already: by their own UUID, since in a report their place is only a position."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import count

from broker.models import Allocation, Cluster, Gpu
from broker.provisioners.kubernetes.inventory import CardFound, NodeFound
from tenants.services.walls import as_sweep

GONE = "its node no longer reports it"
Place = tuple[str, str]  # a cluster's id, a node's name


@dataclass(frozen=True, slots=True)
class Known:
    """As much of a card's row as tells where it is with us."""

    pk: str
    place: Place
    index: int
    is_gone: bool


@dataclass(frozen=True, slots=True)
class Recognised:
    """A report in which each card is once, under the number that it has with us."""

    nodes: list[NodeFound]
    problems: list[str]
    moved: list[str]  # rows of cards that are in another machine now


def has_own_uuid(card: CardFound) -> bool:
    return card.uuid.startswith("GPU-")


def recognised(cluster: Cluster, found: list[NodeFound]) -> Recognised:
    """Number each card as we know it; what would be a second row of a card is left out, and said."""
    cards_of = ((node.name, card) for node in found for card in node.cards)
    reported = {(card.uuid, (cluster.pk, name)) for name, card in cards_of if has_own_uuid(card)}
    if not reported:
        return Recognised(found, [], [])
    known, numbers = _known({uuid for uuid, _ in reported}), _numbers(cluster, found)
    held = _held(row.pk for uuid, row in known.items() if (uuid, row.place) not in reported)
    nodes, problems, moved, told = list[NodeFound](), list[str](), list[str](), set[str]()
    for node in found:
        place, cards, here = (cluster.pk, node.name), list[CardFound](), dict[str, int]()
        for card in node.cards:
            row = known.get(card.uuid)
            why = ""
            if card.uuid in told:
                why = "it is reported twice"
            elif row and row.place == place:
                here[card.uuid] = row.index
            elif row and row.pk in held:
                why = f"leases still stand on it on {row.place[1]}"
            elif row and _is_there(row, cluster, (card.uuid, row.place) in reported):
                why = f"{row.place[1]} has it as well"
            elif row:
                moved.append(row.pk)
            if why:
                problems.append(f"{node.name}: the card {card.uuid} is not taken from there: {why}")
                continue
            told |= {card.uuid} if has_own_uuid(card) else set()
            cards.append(card)
        nodes.append(replace(node, cards=tuple(_numbered(cards, here, numbers[node.name]))))
    return Recognised(nodes, problems, moved)


def _is_there(row: Known, cluster: Cluster, reported: bool) -> bool:
    """Tell whether a card is still where we know it: of another cluster only our books can tell."""
    return reported if row.place[0] == cluster.pk else not row.is_gone


def _numbered(cards: Iterable[CardFound], here: Mapping[str, int], taken: Set[int]) -> Iterator[CardFound]:
    """Give what is known its own number; what is new takes its position's if that is free, as where it replaces one."""
    used = set(here.values())
    for card in cards:
        index = here.get(card.uuid, card.index)
        if card.uuid not in here and index in used:
            index = next(free for free in count() if free not in used and free not in taken)
        used.add(index)
        yield replace(card, index=index)


def _known(uuids: Iterable[str]) -> dict[str, Known]:
    columns = ("uuid", "id", "node__cluster", "node__name", "index", "health_reason")
    rows = Gpu.objects.filter(uuid__in=uuids).values_list(*columns)
    return {
        uuid: Known(pk, (cluster, node), index, why == GONE) for uuid, pk, cluster, node, index, why in rows
    }


def _numbers(cluster: Cluster, found: Iterable[NodeFound]) -> dict[str, set[int]]:
    """Return the numbers of all cards that we ever knew of each node."""
    numbers = defaultdict[str, set[int]](set)
    rows = Gpu.objects.filter(node__cluster=cluster, node__name__in=[node.name for node in found])
    for name, index in rows.values_list("node__name", "index"):
        numbers[name].add(index)
    return numbers


def _held(cards: Iterable[str]) -> set[str]:
    with as_sweep():
        held = Allocation.objects.filter(gpu__in=list(cards), released_at=None)
        return set(held.values_list("gpu", flat=True))
