"""How a Kubernetes cluster joins: its credentials are sealed, its nodes and cards become inventory and stay true."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import F

from broker.models import Cluster, ClusterCredential, Gpu, Health, LayoutPolicy, Node
from broker.provisioners.kubernetes import kubeconfig as kubeconfigs
from broker.provisioners.kubernetes.inventory import CardFound, NodeFound
from broker.services import catalogue, inventory
from broker.services.contradicting import QUARANTINED, contradiction
from broker.services.recognising import GONE, has_own_uuid, recognised
from ports import seal
from tenants.services import audit
from tenants.services.actors import SYSTEM, Actor
from tenants.services.refusals import Invalid, Stale

LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
HOST = re.compile(
    rf"(?=.{{1,160}}\Z){LABEL}(?:\.{LABEL})+", re.ASCII
)  # room for a lease's own name before it
DOOR = re.compile(rf"ingress/{LABEL}|gateway/{LABEL}/{LABEL}", re.ASCII)
BASTION = re.compile(rf"(?=.{{1,190}}\Z){LABEL}(?:\.{LABEL})*(?::[1-9]\d{{0,4}})?", re.ASCII)
MOST_ENTRANCES, OF_PROJECTS = 4, "gt-"
FEW = 8  # cards: a machine may vanish unasked
AT_ONCE = 50  # nodes
NewCard = tuple[Gpu, CardFound]
Row = TypeVar("Row", Gpu, Node)


@transaction.atomic
def join(
    *,
    name: str,
    region: str,
    kubeconfig: Mapping[str, Any],
    driver: str,
    driver_options: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> Cluster:
    """Register a cluster by a parsed kubeconfig. Nothing is sold there before its inventory is taken."""
    catalogue.load_gpu_models()  # whoever joins first finds every model known, whoever joins later the newest
    cluster = Cluster.objects.create(
        name=name,
        region=region,
        provisioner="kubernetes",
        driver=driver,
        driver_options=dict(driver_options or {}),
        address=kubeconfigs.server(dict(kubeconfig)),
        shares_soft_cards=settings.SHARE_SOFT_CARDS,
        created_at=now,
    )
    _keep(cluster, kubeconfig, now)
    audit.record(
        "cluster.join",
        actor=actor,
        now=now,
        subject_id=cluster.pk,
        subject_label=name,
        address=cluster.address,
        driver=driver,
    )
    return cluster


@transaction.atomic
def renew(cluster: Cluster, kubeconfig: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    """Replace a cluster's credentials; whoever is connected finds the new ones when the old are refused."""
    address = kubeconfigs.server(dict(kubeconfig))
    Cluster.objects.filter(pk=cluster.pk).update(address=address, version=F("version") + 1)
    _keep(cluster, kubeconfig, now)
    audit.record(
        "cluster.renew",
        actor=actor,
        now=now,
        subject_id=cluster.pk,
        subject_label=cluster.name,
        address=address,
    )


@dataclass(frozen=True)
class WayIn:
    """How people come into a cluster; what is empty lets nobody in that way."""

    domain: str = ""  # below which each lease has a name
    door: str = ""  # what routes it there: ingress/<class>, or gateway/<namespace>/<name>
    bastion: str = ""  # the host that lets SSH through
    entrances: str = ""  # the namespaces in which that runs; empty: as far as the door and the bastion tell


@transaction.atomic
def let_in(cluster: Cluster, way: WayIn, *, version: int, actor: Actor, now: datetime) -> None:
    """Say how people come into a cluster; raises Invalid, or Stale unless `version` is its present one."""
    check_way(way)
    way = replace(way, entrances=" ".join(_named(way.entrances)))
    row = Cluster.objects.select_for_update(of=("self",)).get(pk=cluster.pk)
    if row.version != version:
        raise Stale(
            f"You saw version {version} of {row.name}, it is now {row.version}.",
            fix="Look at what changed, and set it again.",
        )
    before = WayIn(row.domain, row.door, row.bastion, row.entrances)
    Cluster.objects.filter(pk=row.pk).update(**asdict(way), version=version + 1)
    audit.record(
        "cluster.let_in",
        actor=actor,
        now=now,
        subject_id=row.pk,
        subject_label=row.name,
        before=asdict(before),
        after=asdict(way),
    )


def check_way(way: WayIn) -> None:
    """Raise Invalid where nobody could come in this way."""
    if way.domain and not HOST.fullmatch(way.domain):
        raise Invalid(
            "domain", f"{way.domain!r} is no name of a domain.", fix="Write it like leases.example.org."
        )
    if way.door and not DOOR.fullmatch(way.door):
        raise Invalid(
            "door",
            f"{way.door!r} names nothing that routes.",
            fix="Write ingress/<class>, or gateway/<namespace>/<name>.",
        )
    if bool(way.domain) != bool(way.door):
        missing = "door" if way.domain else "domain"
        raise Invalid(missing, "A domain and what routes it belong together.", fix="Give both, or neither.")
    if way.bastion and not BASTION.fullmatch(way.bastion):
        raise Invalid(
            "bastion", f"{way.bastion!r} is no host.", fix="Write it like ssh.example.org, or with :port."
        )
    named = _named(way.entrances)
    if len(named) > MOST_ENTRANCES:
        raise Invalid(
            "entrances", f"More than {MOST_ENTRANCES} namespaces.", fix="Name those that route people."
        )
    for each in named:
        if not re.fullmatch(LABEL, each, re.ASCII):
            raise Invalid(
                "entrances", f"{each!r} names no namespace.", fix="Write them like ingress-nginx ssh."
            )
        if each.startswith(OF_PROJECTS):
            raise Invalid(
                "entrances",
                f"{each} is a project's: its pods would reach everybody's.",
                fix="Name the namespace of what routes people.",
            )


def _named(entrances: str) -> list[str]:
    """Return the namespaces in a text, however they are set apart."""
    return sorted(set(entrances.replace(",", " ").split()))


def _keep(cluster: Cluster, kubeconfig: Mapping[str, Any], now: datetime) -> None:
    sealed = seal.seal(json.dumps(kubeconfig).encode())
    ClusterCredential.objects.update_or_create(
        cluster=cluster, defaults={"sealed": sealed, "updated_at": now}
    )


@transaction.atomic
def take_inventory(cluster: Cluster, found: Iterable[NodeFound], *, now: datetime) -> list[str]:
    """Bring nodes and cards in line with what a cluster reports; return what of it cannot be sold, and why.

    What is no longer reported is taken out of the pool and never deleted: leases may stand on it. A list from which
    much is missing at once is believed only when a person says so.
    """
    seen = recognised(cluster, list(found))
    if why := _unbelievable(cluster, seen.nodes):
        Cluster.objects.filter(pk=cluster.pk).exclude(halted=why).update(halted=why, version=F("version") + 1)
        return [why]
    Cluster.objects.filter(pk=cluster.pk).exclude(halted="").update(halted="", version=F("version") + 1)
    problems = [*seen.problems]
    _part_with(seen.moved, now)
    reported = {each.name: each for each in sorted(seen.nodes, key=lambda node: node.name)}
    for group in _groups(_nodes(cluster, reported, now)):
        new: list[NewCard] = []
        for node, cards in _with_cards(group):
            if node.name not in reported:
                _miss(cards, now)
                continue
            if any(card.closed_since for card in cards):
                continue  # it is being cut anew: until that is over its report of its cards is worth nothing
            told = reported[node.name]
            if why := contradiction(cards, told.cards):
                _quarantine(cards, now)
                problems.append(f"{node.name}: {why}")
                continue
            new += _take(node, cards, told.cards, now)
            problems += [f"{node.name}: {problem}" for problem in told.problems]
        Gpu.objects.bulk_create(_in_order([card for card, _ in new]))
        for card, found_card in new:
            _judge(card, found_card, now)
    return problems


def _unbelievable(cluster: Cluster, found: list[NodeFound]) -> str:
    """Say how much a list would take out of the pool at once; empty when that is little enough to be true."""
    cards = Gpu.objects.filter(node__cluster=cluster, health=Health.HEALTHY, closed_since=None)
    known = set(cards.values_list("node__name", "index"))
    # A node that says why its cards cannot be sold is missing nothing: sold on as they stood they might be shared now.
    explained = {node.name for node in found if node.problems}
    gone = known - {(node.name, card.index) for node in found for card in node.cards}
    gone = {place for place in gone if place[0] not in explained}
    believed = Cluster.objects.filter(pk=cluster.pk, believes=True).update(believes=False)
    if believed or len(gone) <= FEW or len(gone) * 2 <= len(known):
        return ""
    return f"It reports only {len(known) - len(gone)} of {len(known)} cards: mind whether that can be true."


@transaction.atomic
def believe(cluster: Cluster, *, why: str, actor: Actor, now: datetime) -> None:
    """Let the next inventory be taken as it is, however much is missing from it."""
    Cluster.objects.filter(pk=cluster.pk).update(believes=True, version=F("version") + 1)
    audit.record(
        "cluster.believe",
        actor=actor,
        now=now,
        subject_id=cluster.pk,
        subject_label=cluster.name,
        reason=why,
    )


def _nodes(cluster: Cluster, reported: Iterable[str], now: datetime) -> list[Node]:
    """Return all nodes of a cluster, those among them that are new to us."""
    there = list(Node.objects.filter(cluster=cluster).order_by("name"))
    new = sorted(set(reported) - {node.name for node in there})
    made = [Node(cluster=cluster, name=name, state_since=now) for name in new]
    return there + Node.objects.bulk_create(_in_order(made))


def _in_order(rows: list[Row]) -> list[Row]:
    """Give rows of one moment their ids in their own order: among equal cards the one with the first id is taken."""
    for row, pk in zip(rows, sorted(row.pk for row in rows), strict=True):
        row.pk = pk
    return rows


def _groups(nodes: list[Node]) -> Iterator[list[Node]]:
    """Yield some nodes at a time: few queries, and never thousands of cards in memory."""
    for first in range(0, len(nodes), AT_ONCE):
        yield nodes[first : first + AT_ONCE]


def _with_cards(nodes: list[Node]) -> list[tuple[Node, list[Gpu]]]:
    """Return some nodes with the cards that we know of each."""
    cards: dict[str, list[Gpu]] = {node.pk: [] for node in nodes}
    for card in Gpu.objects.filter(node__in=nodes).order_by("index"):
        cards[card.node_id].append(card)
    return [(node, cards[node.pk]) for node in nodes]


def _take(node: Node, known: list[Gpu], reported: Iterable[CardFound], now: datetime) -> list[NewCard]:
    """Bring the cards of a node in line with its report; return those that are new, yet to be written."""
    cards, new = {card.index: card for card in known}, []
    for found in reported:
        wanted = _wanted(node, found)
        card = cards.pop(found.index, None)
        if card is None:
            new.append((Gpu(node=node, index=found.index, health_since=now, **wanted), found))
            continue
        if changes := {name: value for name, value in wanted.items() if getattr(card, name) != value}:
            Gpu.objects.filter(pk=card.pk).update(**changes, version=F("version") + 1)
        _judge(card, found, now)
    _miss(cards.values(), now)
    return new


def _wanted(node: Node, found: CardFound) -> dict[str, Any]:
    """Return what a card's row says of it beside its health."""
    same = {"isolation": str(found.isolation), **({"asks": found.asks} if found.asks else {})}
    cuts = [{"profile": cut.profile, "start": cut.start, "size": cut.size, **same} for cut in found.cuts]
    return {
        "gpu_model_id": catalogue.spec_of(found.model).name,
        # Where nobody tells a card's own, the node's id makes one: two clusters may call their nodes alike.
        "uuid": found.uuid if has_own_uuid(found) else f"{node.pk}/{found.index}",
        "layout_policy": LayoutPolicy.FIXED if cuts else LayoutPolicy.DYNAMIC,
        "fixed_layout": cuts,
        "published": found.published.starts() if found.published else None,
        "fabric": _plain(found.fabric),
        "numa": _plain(found.numa),
    }


def _plain(name: str) -> str:
    """Return a name that only has to be equal or not; one that is none of any node is as good as not told."""
    return name if re.fullmatch(r"[A-Za-z0-9:._-]{1,64}", name, re.ASCII) else ""


def _judge(card: Gpu, found: CardFound, now: datetime) -> None:
    """Take a card that its node calls broken out of the pool, and one that had gone missing back into it."""
    if not found.healthy:
        inventory.set_health(card, Health.UNHEALTHY, reason="its node says so", actor=SYSTEM, now=now)
    elif card.health_reason in (GONE, QUARANTINED):
        inventory.set_health(card, Health.HEALTHY, reason="", actor=SYSTEM, now=now)


def _quarantine(cards: Iterable[Gpu], now: datetime) -> None:
    for card in cards:
        if card.health == Health.HEALTHY:
            inventory.set_health(card, Health.UNHEALTHY, reason=QUARANTINED, actor=SYSTEM, now=now)


def _part_with(moved: Iterable[str], now: datetime) -> None:
    """Keep the rows of cards that are in another machine now for what was on them, under a name of their own."""
    for card in Gpu.objects.filter(pk__in=moved).select_related("node__cluster"):
        Gpu.objects.filter(pk=card.pk).update(uuid=f"{card.pk} was {card.uuid}")
        _miss([card], now)


def _miss(cards: Iterable[Gpu], now: datetime) -> None:
    for card in cards:
        if card.health == Health.HEALTHY:
            inventory.set_health(card, Health.UNHEALTHY, reason=GONE, actor=SYSTEM, now=now)
