"""Leases on a Kubernetes cluster. Every step may be repeated: names are for ever, creates are told what is there.

The anchor is made first and owns everything else, so that its end is the end of all. What we did not make is never
adopted, changed or deleted: our marks are looked for first, and deletes carry the uid of what was looked at.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from broker.provisioners.base import Kept, Observation, Order, Remains, Seen, Unanswered
from broker.provisioners.kubernetes import labels, refusals
from broker.provisioners.kubernetes.claims import claims_of, wrong
from broker.provisioners.kubernetes.cluster import Way, way_into
from broker.provisioners.kubernetes.drivers.base import Unfit
from broker.provisioners.kubernetes.finding import (
    CONTROLLERS,
    Found,
    all_of_ours,
    heartbeats,
    of_nodes,
    of_order,
    selector,
    why_no_pod,
)
from broker.provisioners.kubernetes.identity import must_be
from broker.provisioners.kubernetes.kinds import POD, Kind, Ref
from broker.provisioners.kubernetes.lasting import deadlines
from broker.provisioners.kubernetes.making import InTheWay, make_anchor, make_children, mend, put_up_walls
from broker.provisioners.kubernetes.memory import Remembered
from broker.provisioners.kubernetes.nodes import shutting_down, silent
from broker.provisioners.kubernetes.objects import Pod, Thing, read
from broker.provisioners.kubernetes.observing import (
    gone_since,
    is_held,
    is_over,
    may_have_run,
    observe,
    remains_of,
)
from broker.provisioners.kubernetes.render.lease import namespace_of, stamp
from broker.provisioners.kubernetes.spec import LeaseSpec
from broker.provisioners.kubernetes.specs import lease_spec
from broker.provisioners.kubernetes.transport import Api
from broker.provisioners.kubernetes.volumes import remove_claim
from ports import clock

log = structlog.get_logger(__name__)
QUIET = timedelta(
    seconds=4
)  # after so long without a pod its controller is asked why, and what is missing mended
WALLS_S = 600.0  # how long a project's walls are trusted to stand as we put them up
SURE_S = 15.0  # how long a cluster is taken for the one it was
SOON_S, QUOTA_S = 0.5, 30.0
# One answer that finds nothing may be mistaken. Where no agent can say so, it is believed at the second look.
SECOND_LOOK = timedelta(seconds=3)
FORGOTTEN = timedelta(minutes=10)
TOLD_S = 10.0  # where the agent tells of every change, this is how often to look all the same
LET_GO_S = 4.0  # of the time for one step: what is to be taken down must not wait for who does not answer
LEEWAY = timedelta(minutes=20)  # what is paid no longer is stopped by us; the dead man's switch may be later


class KubernetesProvisioner:
    """Keeps only what spares questions: what is there is asked of the cluster, what is wanted comes with the order."""

    def __init__(self, cluster_id: str, way: Way | None = None) -> None:
        self._cluster_id, self._way = cluster_id, way
        self._walls: dict[str, float] = {}  # projects whose walls stand, and since when
        self._sure_until = 0.0
        self._made: dict[str, str] = {}  # orders all of whose objects were made, and their anchor's uid
        self._gone: dict[str, datetime] = {}  # orders of which nothing was found, and since when

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        known = self._known(order, now)
        if known and (seen := self._well(known, self._spec(order), now)):
            return seen
        with self._asking(sure=known is not None) as api:
            try:
                spec = self._spec(order)
                if order.name not in self._made and self._make(api, order, spec) and known:
                    return Observation(Seen.PENDING, "being made", again_in_s=TOLD_S)
                found = of_order(api, spec)
                if found.anchor is None or found.anchor.metadata.uid != self._made[order.name]:
                    self._made.pop(order.name)  # somebody took it away: made anew at the next look
                    return Observation(Seen.PENDING, "being made", again_in_s=SOON_S)
                if found.ends:
                    return Observation(Seen.GONE, "it is shutting down", remains=_ended(found.pods))
                seen = self._seen(api, spec, found, now)
                return seen if seen.seen is Seen.PENDING else self._surely(api, seen)
            except (Unfit, InTheWay, refusals.Invalid, refusals.Forbidden) as error:
                return Observation(Seen.REFUSED, f"the cluster does not take it: {error}"[:300])
            except refusals.OverQuota as error:
                log.error("a cluster's quota is narrower than our books", order=order.name, said=str(error))
                text = "the project's quota in the cluster is used up"
                return Observation(Seen.PENDING, text, again_in_s=QUOTA_S)
            except refusals.Closing:
                self._walls.pop(order.project_id, None)
                text = "its project is just being removed from the cluster"
                pods = of_order(api, spec).pods  # it waits for those of them that we hold
                return Observation(Seen.PENDING, text, again_in_s=QUOTA_S, remains=_ended(pods))

    def observe(self, order: Order, *, now: datetime) -> Observation:
        known, spec = self._known(order, now), self._spec(order)
        # A watch may lag behind the pulse's: what it still shows of one that was found ended says nothing.
        seen = self._well(known, spec, now) if known and not order.doubted else None
        if known and seen and not self._is_unpaid(spec, known.found):
            return seen
        with self._asking(sure=known is not None) as api:
            found = of_order(api, spec)
            if found.anchor is None or found.ends:
                self._make_sure(api)
                return self._taken(api, spec, found, now)
            self._keep_paid(api, spec, found)
            return self._surely(api, self._seen(api, spec, found, now))

    def let_go(self, order: Order, remains: tuple[Remains, ...]) -> None:
        with self._asking() as api:
            _let_go(api, namespace_of(self._spec(order)), remains)

    def remove(self, order: Order, *, now: datetime) -> Observation:
        self._made.pop(order.name, None)
        known = self._known(order, now)
        with self._asking(sure=known is not None) as api:
            if known and known.well and known.found.anchor:
                with _letting_go(api, _held(known.found.pods)):
                    if not known.found.ends:
                        _delete(api, known.found.ref.kind, known.found.anchor)
                return replace(shutting_down(known.found.pods, now=now), again_in_s=TOLD_S)
            # That nothing is left frees its places: only the cluster itself may say so.
            found = of_order(api, self._spec(order))
            if found.is_gone:
                self._make_sure(api)
                if (
                    known and not known.found.is_gone
                ):  # its watch would have said so: one of the two is mistaken
                    return replace(shutting_down(known.found.pods, now=now), again_in_s=SOON_S)
                if known is None and (waits_s := self._doubts(order.name, now)):
                    return replace(shutting_down((), now=now), again_in_s=waits_s)
                return Observation(Seen.GONE)
            self._gone.pop(order.name, None)
            with _letting_go(api, _held(found.pods)):
                self._take_down(api, order.lease_id, order.generation, found)
            lost = self._lost(api, [pod.spec.node_name for pod in found.pods])
            return self._surely(api, lost) if lost else shutting_down(found.pods, now=now)

    def _doubts(self, name: str, now: datetime) -> float:
        """Return how long to wait for the second look at an order of which nothing was found; nought after it."""
        self._gone = {each: since for each, since in self._gone.items() if now - since < FORGOTTEN}
        waited = now - self._gone.setdefault(name, now)
        if waited < SECOND_LOOK:
            return (SECOND_LOOK - waited).total_seconds()
        del self._gone[name]
        return 0.0

    def names(self) -> list[str]:
        if (memory := self._way_in.memory) and (known := memory.names(now=clock.now())) is not None:
            return known
        with self._asking() as api:
            self._make_sure(api)
            return sorted(all_of_ours(api, self._way_in.installation))

    def remove_named(self, name: str, *, now: datetime) -> None:
        with self._asking() as api:
            there = all_of_ours(api, self._way_in.installation, order=name).get(name, [])
            pods = [thing.metadata for kind, thing in there if kind is POD]
            held = [
                (meta.namespace, Remains(meta.name, meta.uid))
                for meta in pods
                if labels.METERING in meta.finalizers
            ]
            with _letting_go(api, held):
                for kind, thing in there:
                    if kind is not POD:
                        _delete(api, kind, thing)
                for meta in pods:
                    lease_id, generation = meta.labels[labels.LEASE], meta.labels[labels.GENERATION]
                    self._take_down_orphans(api, meta.namespace, lease_id, generation)

    def remove_volume(self, volume: Kept, *, now: datetime) -> Observation:
        with self._asking() as api:
            if left := remove_claim(api, volume, installation=self._way_in.installation):
                return left
            self._make_sure(api)
            return Observation(Seen.GONE)

    @contextmanager
    def _asking(self, *, sure: bool = False) -> Iterator[Api]:
        """Open the API for one step; a refusal that says nothing about the lease is silence.

        `sure` is whoever knows by the agent that it is still the cluster that joined.
        """
        try:
            api = self._way_in.transport.within()
            if not sure and clock.monotonic() >= self._sure_until:
                self._make_sure(api)
            yield api
        except refusals.Denied as error:
            # Whatever we may not see may well be there: nothing ends because of it.
            log.error("a cluster denies us access", cluster=self._cluster_id, said=str(error))
            raise Unanswered(f"it denies the broker access: {error}", again_in_s=QUOTA_S) from error
        except refusals.Refusal as error:  # somebody else was at it between two calls: look anew
            raise Unanswered(f"it changed meanwhile: {error}", again_in_s=SOON_S) from error

    def _make_sure(self, api: Api) -> None:
        """Let only the cluster that joined, and no older state of it, say what runs and be told what to do."""
        joined, reached = self._way_in.uid(), self._way_in.reached()
        if joined:
            must_be(api, joined, reached)
        self._sure_until = clock.monotonic() + SURE_S

    def _surely(self, api: Api, seen: Observation) -> Observation:
        """Let only the cluster that joined, as it is now, say that something no longer runs.

        In an older state of it even nodes were last heard of long ago, so it is asked again after what it said.
        """
        if not _runs(seen):
            self._make_sure(api)
        return seen

    def _make(self, api: Api, order: Order, spec: LeaseSpec) -> bool:
        """Make all of an order that is not there yet; False where it is on its way out already."""
        driver = self._way_in.driver
        stand = self._walls.get(order.project_id)
        if stand is None or clock.monotonic() - stand > WALLS_S:
            put_up_walls(api, driver, spec.project, entrances=self._way_in.entrances())
            self._walls[order.project_id] = clock.monotonic()
        try:
            anchor = make_anchor(api, driver, spec)
            is_there = anchor.metadata.deletion_timestamp is None
            if is_there:
                make_children(api, driver, spec, anchor_uid=anchor.metadata.uid)
        except refusals.Missing:  # the namespace was deleted by hand: put up its walls next time
            self._walls.pop(order.project_id, None)
            raise
        self._made[order.name] = anchor.metadata.uid
        return is_there

    def _spec(self, order: Order) -> LeaseSpec:
        return lease_spec(order, self._way_in.installation)

    @property
    def _way_in(self) -> Way:
        if self._way is None:
            self._way = way_into(self._cluster_id)
        return self._way

    def _known(self, order: Order, now: datetime) -> Remembered | None:
        """Return what the agent wrote down of an order; None where the cluster itself must be asked."""
        memory = self._way_in.memory
        return memory.of_order(self._spec(order), now=now) if memory else None

    def _well(self, known: Remembered, spec: LeaseSpec, now: datetime) -> Observation | None:
        """Say how an order is from what is known of it, if it is well or on its way; else the cluster is asked."""
        found = known.found
        if found.anchor is None or found.ends or not known.well:
            return None
        made = found.anchor.metadata.creation_timestamp
        if len(found.pods) < len(spec.nodes) and made and now - made > QUIET:
            return None
        seen = observe(found.pods, ranks=len(spec.nodes), now=now)
        if not self._holds(known, spec, seen):
            return None
        if seen.seen is Seen.READY:
            return replace(seen, last_seen=known.at)
        if seen.seen is not Seen.PENDING:
            return None
        return replace(seen, last_seen=known.at if seen.runs else seen.last_seen, again_in_s=TOLD_S)

    def _holds(self, known: Remembered, spec: LeaseSpec, seen: Observation) -> bool:
        """Tell whether its claims hold what it was sold, as far as the agent follows claims."""
        if known.claims is None or not self._way_in.driver.by_claims:
            return True
        if any(claim.strange for claim in known.claims):
            return False
        return not _runs(seen) or sum(bool(claim.given) for claim in known.claims) >= len(spec.nodes)

    def _is_unpaid(self, spec: LeaseSpec, found: Found) -> bool:
        """Tell whether the dead man's switch would come too early, or far too late."""
        if found.anchor is None:
            return False
        said = found.anchor.metadata.annotations.get(labels.PAID_UNTIL, "")
        return not stamp(spec.paid_until) <= said <= stamp(spec.paid_until + LEEWAY)

    def _seen(self, api: Api, spec: LeaseSpec, found: Found, now: datetime) -> Observation:
        if lost := self._lost(api, spec.nodes):
            return lost
        seen = observe(found.pods, ranks=len(spec.nodes), now=now)
        made = found.anchor.metadata.creation_timestamp if found.anchor else None
        lacks_pod, lacks_claim = len(found.pods) < len(spec.nodes), False
        if self._way_in.driver.by_claims:
            claims = claims_of(api, spec)
            if why := wrong(api, spec, claims, runs=_runs(seen)):
                # What ended since gave its devices back, and that is no loss.
                again = observe(of_order(api, spec).pods, ranks=len(spec.nodes), now=now)
                return again if _runs(seen) and not _runs(again) else Observation(Seen.LOST, why)
            lacks_claim = None in claims
        if (lacks_pod or lacks_claim) and made and now - made > QUIET:
            mend(api, self._way_in.driver, spec, found)
            if lacks_pod and (why := why_no_pod(api, spec)):
                return _not_made(why)
        return seen

    def _taken(self, api: Api, spec: LeaseSpec, found: Found, now: datetime) -> Observation:
        """Say when it ended: what took it away did not tell us, but the pods that we hold do."""
        if found.pods and (lost := self._lost(api, spec.nodes)):
            return lost  # its node died first
        since = gone_since(found.anchor, found.pods)
        if since is None and any(pod.metadata.deletion_timestamp and not is_over(pod) for pod in found.pods):
            return shutting_down(found.pods, now=now)
        if since is None and any(may_have_run(pod) and not is_over(pod) for pod in found.pods):
            since = now  # its anchor alone went: what still runs is proof enough
        return Observation(Seen.GONE, "it is no longer in the cluster", last_seen=since)

    def _lost(self, api: Api, hosts: list[str] | tuple[str, ...]) -> Observation | None:
        named = {host for host in hosts if host}
        there = of_nodes(api, named)
        if silent(named, there, {}) is None:
            return None
        return silent(named, there, heartbeats(api, named))

    def _keep_paid(self, api: Api, spec: LeaseSpec, found: Found) -> None:
        """Write until when it is paid: what stops it should nobody of us be left to do so.

        The anchor comes last, for every look goes by it: who dies before that leaves all of it to the next.
        """
        if found.anchor and self._is_unpaid(spec, found):
            for ref, deadline in deadlines(spec, since=found.anchor.metadata.creation_timestamp):
                with suppress(refusals.Missing):  # one that is made anew is given as long
                    api.merge(ref, deadline, manager=labels.LEASES)
            meta = {
                "uid": found.anchor.metadata.uid,
                "annotations": {labels.PAID_UNTIL: stamp(spec.paid_until)},
            }
            api.merge(found.ref, {"metadata": meta}, manager=labels.LEASES)

    def _take_down(self, api: Api, lease_id: str, generation: int, found: Found) -> None:
        if found.anchor is not None:
            _delete(api, found.ref.kind, found.anchor)
        else:
            self._take_down_orphans(api, found.ref.namespace, lease_id, str(generation))

    def _take_down_orphans(self, api: Api, namespace: str, lease_id: str, generation: str) -> None:
        """Delete what is left of a lease whose anchor went without it; a pod goes with its controller."""
        for kind in (*CONTROLLERS, POD):
            marks = selector(lease_id, generation)
            items, _ = api.list_all(kind, namespace=namespace, labels=marks, metadata_only=True)
            for item in items:
                _delete(api, kind, read(item, Thing))


def _runs(seen: Observation) -> bool:
    return seen.seen is Seen.READY or seen.runs


def _held(pods: Iterable[Pod]) -> list[tuple[str, Remains]]:
    """Return what of some pods stays until we let it go, each with its namespace."""
    return [(pod.metadata.namespace, remains_of(pod)) for pod in pods if is_held(pod)]


def _ended(pods: Iterable[Pod]) -> tuple[Remains, ...]:
    """Return what of some pods is over and only waits to be let go."""
    return tuple(remains_of(pod) for pod in pods if is_held(pod) and is_over(pod))


@contextmanager
def _letting_go(api: Api, held: Iterable[tuple[str, Remains]]) -> Iterator[None]:
    """Let pods go, then take their lease down: what is held while it goes was made meanwhile, and is news.

    Whatever keeps us from letting go, nothing may run on unpaid: that is said once the lease is told to go.
    """
    failed: refusals.Refusal | Unanswered | None = None
    soon = api.until(LET_GO_S)
    for namespace, remains in held:
        try:
            _let_go(soon, namespace, [remains])
        except refusals.Refusal as error:
            failed = failed or error
        except Unanswered as error:
            failed = failed or error
            break  # the others would wait as long
    yield
    if failed:
        raise failed


def _let_go(api: Api, namespace: str, remains: Iterable[Remains]) -> None:
    for each in remains:
        api.let_go(Ref(POD, each.name, namespace), finalizer=labels.METERING, uid=each.uid)


def _delete(api: Api, kind: Kind, thing: Thing) -> None:
    """Delete one object with all that hangs on it, unless that is under way."""
    meta = thing.metadata
    if meta.deletion_timestamp is None or (kind is not POD and "foregroundDeletion" not in meta.finalizers):
        api.delete(Ref(kind, meta.name, meta.namespace), uid=meta.uid)


def _not_made(why: str) -> Observation:
    if "exceeded quota" in why:
        return Observation(Seen.PENDING, "the project's quota in the cluster is used up", again_in_s=QUOTA_S)
    if "forbidden" in why or "Invalid value" in why:
        return Observation(Seen.REFUSED, f"the cluster does not take its pod: {why}"[:300])
    return Observation(Seen.PENDING, f"the cluster could not make its pod yet: {why}"[:300])
