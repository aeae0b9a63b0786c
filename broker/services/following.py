"""The agent of one cluster: follows its pods, anchors and nodes, and keeps rows and inventory true to them."""

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import compress
from threading import Thread

import msgspec
import structlog
from django.db import connection
from django.db.models import TextField
from django.db.models.functions import Cast

from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu, Node, NodeState
from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import labels, objects, refusals
from broker.provisioners.kubernetes.cluster import Way, kubeconfig_of, way_into
from broker.provisioners.kubernetes.finding import order_of
from broker.provisioners.kubernetes.identity import changed, older
from broker.provisioners.kubernetes.inventory import NodeFound
from broker.provisioners.kubernetes.kinds import BY_NAME, CONFIG_MAP, NODE, POD, RESOURCE_CLAIM, Kind
from broker.provisioners.kubernetes.kinds import RESOURCE_SLICE as SLICES
from broker.provisioners.kubernetes.mending import Mender
from broker.provisioners.kubernetes.objects import T, read
from broker.provisioners.kubernetes.pulse import LATE_S, Pulse, pulse_ref, under_way_s
from broker.provisioners.kubernetes.reflector import Reflector
from broker.provisioners.kubernetes.sink import Found, Waiting
from broker.provisioners.kubernetes.transport import Api
from broker.services import fencing, freezing, joining, sightings
from broker.services.ceilings import Ceilings
from broker.services.claims import Claims
from broker.services.rounds import Round
from broker.services.sightings import Sighting
from ports import clock

log = structlog.get_logger(__name__)
ANCHORS = f"{labels.OURS},{labels.ROLE} in ({labels.ANCHOR_ROLE},{labels.PULSE_ROLE})"
Reads = type[
    objects.Pod | objects.Node | objects.Thing | objects.ResourceSlice | objects.Quota | objects.Claim
]
FOLLOWED: dict[Kind, tuple[str, Reads]] = {
    POD: (labels.OURS, objects.Pod),
    CONFIG_MAP: (ANCHORS, objects.Thing),
    NODE: ("", objects.Node),
}
CLASSES = BY_NAME["resource.k8s.io/v1", "DeviceClass"]
PUBLISHED: dict[Kind, tuple[str, Reads]] = {
    SLICES: ("", objects.ResourceSlice),
    CLASSES: ("", objects.Thing),
}  # for a driver that reads them
QUOTAS = BY_NAME["v1", "ResourceQuota"]
CLAIMED: dict[Kind, tuple[str, Reads]] = {RESOURCE_CLAIM: (labels.OURS, objects.Claim)}
CEILINGS: dict[Kind, tuple[str, Reads]] = {QUOTAS: (labels.OURS, objects.Quota)}
Place = tuple[str, str]  # a namespace, a name
INVENTORY_S, SOON_S, RETURN_S = 60.0, 1.0, 5.0
TAKE_AGAIN_S = 300.0  # an inventory in which nothing is new
LEADERS = 2  # the first key of our advisory locks: 1 is quota's


class Blind(Exception):
    """A watch is no more: better no agent, which is seen and started again, than one that sees half."""


class Agent:
    """What one process does for one cluster. Reflectors run in threads of their own; only this one writes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self._kubeconfig = cluster, kubeconfig_of(cluster.pk)
        # The reflectors' threads may connect anew at any time, and have no business in the database.
        self.way: Way = way_into(cluster.pk, lambda: self._kubeconfig)
        followed = FOLLOWED | CEILINGS | (PUBLISHED if self.way.driver.name == "dra" else {})
        followed |= CLAIMED if self.way.driver.by_claims else {}
        self._reads = {kind: reads for kind, (_, reads) in followed.items()}
        self.waiting = Waiting(self._reads)
        self.reflectors = [
            Reflector(self.way.transport, kind, self.waiting, labels=marks)
            for kind, (marks, _) in followed.items()
        ]
        self.pulse = Pulse(
            self.way.transport,
            pulse_ref(cluster.pk),
            self.way.installation,
            well=self._sees_all,
            strange=self._is_strange,
        )
        self.mender, self.round = Mender(self.way.transport), Round(cluster.pk, self.way)
        self.ceilings = Ceilings(cluster.pk, self.way, self.round)
        self.claims = Claims(cluster.pk, self.way)
        self._ways_in = self._how_people_come_in()
        self._pulse_name = pulse_ref(cluster.pk).name
        self._uid = self.way.uid()
        self._inventory_at = self._inventory_taken_at = self._return_at = 0.0
        self._taken, self._take_again_at = 0, 0.0  # the inventory as it was taken last
        self._unknown = followed.keys() & {NODE, SLICES}  # what inventory needs and we have not listed yet
        self._listing: dict[Kind, set[Place]] = {}  # what the pages of a list held so far
        self._written: dict[Kind, dict[Place, int]] = {kind: {} for kind in followed}  # a digest of each row
        self._watches: set[int] = set()
        self.frozen = False  # it is no longer the cluster we knew: whoever follows it begins anew
        self._over = False
        self._beaten = self.way.reached()  # the version of the latest pulse is later, always
        self._suspicion = ""  # why it must be, as another thread found

    def follow(self, going: Callable[[], bool], alive: Callable[[], None] = lambda: None) -> None:
        """Follow until told to stop, or until the cluster is frozen; after every turn say to be `alive`."""

        def reflecting() -> bool:
            return going() and not self.frozen and not self._over

        threads = self.start(reflecting)
        try:
            while reflecting():
                self.turn()
                alive()
                ended = any(not thread.is_alive() for thread in threads)
                if ended and reflecting():
                    raise Blind(
                        "a watch ended for a reason nobody foresaw; its own words are above."
                        " Start the agent again."
                    )
        finally:
            self._over = True  # whatever the reason: nobody would take in what threads still find

    def start(self, going: Callable[[], bool]) -> list[Thread]:
        """Let reflectors and pulse go on in threads of their own, which never touch the database."""
        following = [each.follow for each in self.reflectors] + [
            self.pulse.follow,
            self.mender.follow,
        ]
        threads = [Thread(target=each, args=(going,), daemon=True) for each in following]
        for thread in threads:
            thread.start()
        return threads

    def turn(self, patience_s: float = 1.0) -> None:
        """Take in what has come, and look after what is due."""
        self.absorb(self.waiting.batch(patience_s), now=clock.now())
        moment = clock.monotonic()
        if moment >= self._return_at:
            self._return_at = moment + RETURN_S
            self._kubeconfig, self._uid = kubeconfig_of(self.cluster.pk), self.way.uid()
            if self._suspicion:
                self._freeze(self._suspicion)
            self.frozen = self.frozen or freezing.is_frozen(self.cluster.pk) or self._is_forgotten()
            self._bring_back(clock.now())
            if self._ways_in != (told := self._how_people_come_in()):
                self._ways_in = told
                self.round.hurry()
        self._mend()
        if moment >= self._inventory_at:
            self._inventory_at = moment + INVENTORY_S
            self._take_inventory(clock.now())

    def _mend(self) -> None:
        """Hand over what has its turn to be put right, in a cluster that is the one we knew and that we see."""
        if (
            self.mender.is_idle
            and self.pulse.beats
            and self._sees_all()
            and not self._suspicion
            and not self.frozen
        ):
            self.mender.take(self.round.next(), every_s=self.round.every_s)

    def _how_people_come_in(self) -> tuple[str, ...] | None:
        ways = Cluster.objects.filter(pk=self.cluster.pk)
        return ways.values_list("domain", "door", "bastion", "entrances").first()

    def absorb(self, batch: Iterable[Found], *, now: datetime) -> None:
        """Write down what was found, in order; changes between two lists are written at once."""
        pending: list[Sighting] = []
        reached: dict[str, int] = {}
        for found in batch:
            if self.frozen:
                return
            if found.how in ("PAGED", "LISTED") and (why := older(found.version, self._reached(found.kind))):
                self._freeze(why)
                return
            if found.how == "BEGUN":
                self._listing[found.kind] = set()
                continue
            seen = [self._sighting(found.kind, item, how=found.how) for item in found.items]
            fresh = [each is not None and self._is_new(found.kind, each) for each in seen]
            pending += [each for each, is_fresh in zip(seen, fresh, strict=True) if each and is_fresh]
            if found.how == "PAGED":
                self._listing[found.kind] |= {(each.namespace, each.name) for each in seen if each}
            elif found.how == "LISTED":
                sightings.note(self.cluster, pending, now=now)
                pending = []
                there, known = self._listing.pop(found.kind), self._written[found.kind]
                self._written[found.kind] = {place: known[place] for place in there}
                if found.kind is QUOTAS:
                    self.ceilings.listed(there, now=now)
                sightings.forget_others(self.cluster, found.kind.name, there, version=found.version, now=now)
                self._unknown -= {found.kind}
                if found.kind in (NODE, SLICES, CLASSES):
                    self._take_inventory_soon()
            else:
                reached[found.kind.name] = found.version
            if found.kind is NODE and found.items:
                self._see_nodes(found, now)
            if found.kind in (SLICES, CLASSES) and found.items:
                self._take_inventory_soon()
            if found.kind is QUOTAS:
                for item in compress(found.items, fresh):
                    self.ceilings.see(read(item, objects.Quota), gone=found.how == "DELETED", now=now)
        sightings.note(self.cluster, pending, now=now, reached=reached)

    def _sighting(self, kind: Kind, item: objects.Raw, *, how: str) -> Sighting | None:
        """Turn what was found into a row; None for a pulse that waited so long that it proves little."""
        thing = read(item, self._reads[kind])
        meta, marks = thing.metadata, thing.metadata.labels
        age_s = 0.0
        if meta.name == self._pulse_name and isinstance(thing, objects.Thing):
            age_s = under_way_s(thing)
        if age_s > LATE_S:
            return None
        # The version is kept beside the body: what is the same but for its version need not be written.
        version, meta.resource_version = int(meta.resource_version), ""
        ours = labels.fit(
            marks, {labels.INSTALLATION: self.way.installation}
        )  # else a neighbour's, seen for its node
        order = order_of(thing) if ours else ""
        told = ours and (not isinstance(thing, objects.Claim) or self.claims.see(thing, order, how=how))
        return Sighting(
            kind=kind.name,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            version=version,
            lease_id=marks.get(labels.LEASE, "") if told else "",
            tenant_id=marks.get(labels.TENANT, "") if told else "",
            order_name=order,
            body=None if how == "DELETED" else objects.Raw(msgspec.json.encode(thing)),
            age_s=age_s,
        )

    def _is_new(self, kind: Kind, seen: Sighting) -> bool:
        """Tell whether a row must be written: many changes are of nothing that we read.

        Taken note of before it is written: should that fail, another agent begins, which knows of nothing.
        """
        known, place = self._written[kind], (seen.namespace, seen.name)
        if seen.body is None:
            known.pop(place, None)
            return True
        digest = hash(msgspec.json.encode(seen.body))
        return known.get(place) != digest and known.update({place: digest}) is None

    def _sees_all(self) -> bool:
        """Tell whether we are told of everything that leases hang on; what is for sale vouches for none."""
        return all(each.is_open for each in self.reflectors if each.kind in FOLLOWED)

    def _is_strange(self, api: Api, answer: objects.Thing | None) -> bool:
        """Tell whether a cluster is not what it was: asked before the first pulse, and of every answer to one."""
        if answer is None:
            why = changed(api, self._uid, 0)
        else:
            why = older(int(answer.metadata.resource_version), self._beaten)
            self._beaten = max(self._beaten, int(answer.metadata.resource_version))
        self._suspicion = self._suspicion or why
        return bool(why)

    def _reached(self, kind: Kind) -> int:
        watch = ClusterWatch.objects.filter(cluster=self.cluster, kind=kind.name).first()
        return watch.version if watch else 0

    def _is_forgotten(self) -> bool:
        """Tell whether rows of ours were thrown away: a cluster that froze and thawed since we looked last."""
        before = self._watches
        self._watches = set(ClusterWatch.objects.filter(cluster=self.cluster).values_list("pk", flat=True))
        return not before <= self._watches

    def _freeze(self, why: str) -> None:
        freezing.freeze(self.cluster.pk, why)
        self.frozen = True

    def _see_nodes(self, found: Found, now: datetime) -> None:
        nodes = [read(item, objects.Node) for item in found.items]
        names = [node.metadata.name for node in nodes]
        rows = Node.objects.filter(cluster=self.cluster, name__in=names)
        known = dict(rows.values_list("name", "state"))
        for node in nodes:
            hears = found.how != "DELETED" and _is_heard(node)
            state = known.get(node.metadata.name)
            if state is None or found.how in ("ADDED", "PAGED"):
                self._take_inventory_soon()
            if state is not None and hears == (state == NodeState.LOST):
                fencing.follow_node(self.cluster, node.metadata.name, hears=hears, now=now)

    def _bring_back(self, now: datetime) -> None:
        """Look again at lost nodes: what still ran there when they came back may be gone by now."""
        for name in Node.objects.filter(cluster=self.cluster, state=NodeState.LOST).values_list(
            "name", flat=True
        ):
            seen = ClusterObject.objects.filter(cluster=self.cluster, kind="Node", name=name).first()
            if seen and _is_heard(msgspec.convert(seen.body, objects.Node)):
                fencing.follow_node(self.cluster, name, hears=True, now=now)

    def _take_inventory_soon(self) -> None:
        """Have it taken, once, after whatever else is new within a moment of the last time."""
        self._inventory_at = min(self._inventory_at, self._inventory_taken_at + SOON_S)

    def _rows(self, kind: Kind, reads: type[T]) -> list[T]:
        """Return what we have written of a kind; read from text, since a dict of each would be several times that."""
        rows = ClusterObject.objects.filter(cluster=self.cluster, kind=kind.name).order_by("name")
        texts = rows.annotate(text=Cast("body", TextField())).values_list("text", flat=True)
        return [read(text.encode(), reads) for text in texts]

    def _classes(self) -> set[str] | None:
        """Name the cluster's DeviceClasses; None where nobody ever listed them: a role of ours that is old may not."""
        rows = ClusterObject.objects.filter(cluster=self.cluster, kind=CLASSES.name)
        known = ClusterWatch.objects.filter(cluster=self.cluster, kind=CLASSES.name).exists()
        return set(rows.values_list("name", flat=True)) if known else None

    def _take_inventory(self, now: datetime) -> None:
        """Bring what is sold in line with the nodes as the watch has shown them."""
        try:
            if self.pulse.beats == 0 and self._uid and (why := changed(self._api(), self._uid, 0)):
                self._freeze(why)
                return
        except (Unanswered, refusals.Refusal) as silence:
            log.warning("inventory not taken", cluster=self.cluster.name, why=str(silence))
            return
        if self._unknown:
            return  # when they are known, it is due at once
        self._inventory_taken_at = clock.monotonic()
        nodes, slices = self._rows(NODE, objects.Node), self._rows(SLICES, objects.ResourceSlice)
        found = self.way.driver.inventory(nodes, slices, self._classes())
        if self._is_taken(found):
            return
        for problem in joining.take_inventory(self.cluster, found, now=now):
            log.warning("not for sale", cluster=self.cluster.name, why=problem)

    def _is_taken(self, found: list[NodeFound]) -> bool:
        """Tell whether this very inventory was taken lately and nothing waits for the next: it looks at every card."""
        digest = hash(repr(found))
        moment = clock.monotonic()
        waits = (
            Cluster.objects.filter(pk=self.cluster.pk).exclude(halted="", believes=False).exists()
            or Gpu.objects.filter(node__cluster=self.cluster).exclude(closed_since=None).exists()
        )
        if digest == self._taken and moment < self._take_again_at and not waits:
            return True
        self._taken, self._take_again_at = digest, moment + TAKE_AGAIN_S
        return False

    def _api(self) -> Api:
        return self.way.transport.within()


def lead(cluster: Cluster) -> bool:
    """Try to become the one agent of a cluster, until this process or its connection ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [LEADERS, cluster.pk])
        return bool(cursor.fetchone()[0])


def _is_heard(node: objects.Node) -> bool:
    ready = node.condition("Ready")
    return ready is None or ready.status != "Unknown"
