"""Checks after a long chaos run on a cluster."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

from django.db import connection
from urllib3.exceptions import HTTPError

from billing.services.rating import lease_rating
from billing.services.reports import conservation
from broker.models import Allocation, Lease, Transition
from broker.services.reconciler.observation_kinds import LOST_AFTER
from broker.services.reconciler.observation_outcomes import ACTIVE_CHECK_INTERVAL
from tenants.models import QuotaKind
from tenants.services.rls import system_scope
from tests.chaos.kubernetes_spans import PROOF_S, Book, Held, Life, Piece, account
from tests.chaos.kubernetes_world import UNITS, World
from tests.controlplane.api import Api, Object, Refused

LEFT = (
    "/api/v1/pods",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/services",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/jobs",
    "/apis/networking.k8s.io/v1/ingresses",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/resource.k8s.io/v1/resourceclaims",
)
KEPT = ("/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes")
TWICE = """
SELECT count(*) FROM broker_allocation a JOIN broker_allocation b
    ON a.gpu_id = b.gpu_id AND a.id < b.id AND a.placement && b.placement
 WHERE tstzrange(a.held_at, a.released_at) && tstzrange(b.held_at, b.released_at)
"""
TOLERATED_S = 1
# Who lets go at that very moment, or whose time is up then, pays up to it.
# The next look comes within UNSEEN_S, whatever hints were lost; what ended longer ago than that was to be known.
UNSEEN_S = (ACTIVE_CHECK_INTERVAL + LOST_AFTER).total_seconds()
BY_TENANT, TIME_IS_UP = ("released by the tenant", "stopped by the tenant"), "reached its end"


@dataclass(frozen=True)
class Running:
    """A pod that runs, and the claims that it mounts."""

    life: Life
    claims: frozenset[str]


class Witness(Thread):
    """Records when each lease had a running pod, by the cluster."""

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self.api, self.over = api, Event()
        self.since: dict[Life, datetime] = {}
        self.running: dict[str, Running] = {}  # pods that run now, by uid
        self.resting: dict[str, Running] = {}  # those that wait to be started again
        self.until: dict[Life, datetime] = {}  # when each was known last to run
        self.twice: set[str] = set()
        self.written_twice: set[str] = set()
        self.holding: dict[
            str, tuple[Life, str, datetime]
        ] = {}  # pods that hold a slice, by uid: where, and since when
        self.held: list[Held] = []  # and that did
        self.over_since: dict[str, datetime] = {}
        self.stories: defaultdict[str, list[str]] = defaultdict(list)  # by lease, for whoever must understand one

    def run(self) -> None:
        while not self.over.is_set():
            try:
                found = self.api.get("/api/v1/pods", labelSelector="gpubroker.dev/lease")
                self._forget_all_but(found["items"])
                for pod in found["items"]:
                    self._see(pod)
                version = found["metadata"]["resourceVersion"]
                for event in self.api.watch(
                    "/api/v1/pods", seconds=60, labelSelector="gpubroker.dev/lease", resourceVersion=version
                ):
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._see(event["object"])
                    elif event["type"] == "DELETED":
                        self._forget(event["object"]["metadata"]["uid"])
                        self._let_go(event["object"]["metadata"]["uid"])
            except (Refused, HTTPError, OSError, KeyError):
                self.over.wait(0.3)

    def _see(self, pod: Object) -> None:
        self._note(pod)
        self._follow_hold(pod)
        seen, uid = _running(pod), pod["metadata"]["uid"]
        states = [each.get("state", {}) for each in pod["status"].get("containerStatuses", [])]
        begun = [state["running"]["startedAt"] for state in states if state.get("running")]
        if not begun or pod["status"].get("phase") != "Running":
            ended = [state["terminated"]["finishedAt"] for state in states if state.get("terminated")]
            self._runs_no_longer(pod, datetime.fromisoformat(max(ended)) if ended else None)
            return
        self.resting.pop(uid, None)
        self.since.setdefault(seen.life, datetime.fromisoformat(min(begun)))
        for other in (each for each_uid, each in self.running.items() if each_uid != uid):
            if other.life[0] == seen.life[0]:
                self.twice.add(seen.life[0])
            self.written_twice |= other.claims & seen.claims
            if other.life[0] == seen.life[0] or other.claims & seen.claims:
                print(f"at {datetime.now(UTC)} {other} runs, and {seen}, {pod['metadata']}", flush=True)
        self.running[uid] = seen

    def _note(self, pod: Object) -> None:
        meta, status = pod["metadata"], pod["status"]
        states = [each.get("state") for each in status.get("containerStatuses", [])]
        going = meta.get("deletionTimestamp", "")
        said = f"{datetime.now(UTC):%H:%M:%S.%f} {meta['uid'][:8]} {status.get('phase')} {states} {going}"
        self.stories[meta["labels"]["gpubroker.dev/lease"]].append(said)

    def _runs_no_longer(self, pod: Object, ended: datetime | None) -> None:
        """Record that a pod does not run.

        A kubelet that heard no answer may say once more when it ended: the last word is the one that others read.
        """
        uid, life = pod["metadata"]["uid"], _running(pod).life
        if pod["status"].get("phase") == "Running" and not ended:
            if uid in self.running:
                self.resting[uid] = self.running.pop(uid)
            return
        self._forget(uid, ended)
        if ended:
            self.until[life] = max(ended, self.until.get(life, ended))

    def _forget(self, uid: str, ended: datetime | None = None) -> None:
        if gone := self.running.pop(uid, None) or self.resting.pop(uid, None):
            self.until[gone.life] = ended or datetime.now(UTC)

    def _follow_hold(self, pod: Object) -> None:
        """Record when a pod began and ended holding its slice."""
        uid, statuses = pod["metadata"]["uid"], pod["status"].get("containerStatuses", [])
        states = [each.get(which, {}) for each in statuses for which in ("state", "lastState")]
        known = [
            *(each.get("running", {}) for each in states),
            *(each.get("terminated", {}) for each in states),
        ]
        starts = [datetime.fromisoformat(each["startedAt"]) for each in known if each.get("startedAt")]
        ends = [datetime.fromisoformat(each["finishedAt"]) for each in known if each.get("finishedAt")]
        if starts and uid not in self.holding and (uid not in self.over_since or not _is_over(pod)):
            # One that an older state brought back was not there between: it holds from now on.
            since = datetime.now(UTC) if uid in self.over_since else min(starts)
            self.holding[uid] = _running(pod).life, pod.get("spec", {}).get("nodeName", ""), since
        if _is_over(pod):
            self._let_go(uid, max(ends, default=None))

    def _let_go(self, uid: str, at: datetime | None = None) -> None:
        if found := self.holding.pop(uid, None):
            life, node, since = found
            until = self.over_since[uid] = max(since, at or datetime.now(UTC))
            self.held.append(Held(life, node, Piece(since.timestamp(), until.timestamp())))

    def all_held(self) -> list[Held]:
        """Return the spans in which each pod held a slice."""
        now = datetime.now(UTC).timestamp()
        still = [Held(life, node, Piece(since.timestamp(), now)) for life, node, since in self.holding.values()]
        return [*self.held, *still]

    def _forget_all_but(self, pods: list[Object]) -> None:
        """Ignore absence from a list, which may be an old state."""
        there = {pod["metadata"]["uid"] for pod in pods}
        for uid in (self.running.keys() | self.resting.keys()) - there:
            self._forget(uid)
        for uid in self.holding.keys() - there:
            self._let_go(uid)

    def lives(self) -> set[Life]:
        """Return the leases with a running pod."""
        return {each.life for each in list(self.running.values())}

    def ran_until(self, life: Life) -> datetime:
        """Return when a lease stopped running, restarts included."""
        lives = self.lives() | {each.life for each in list(self.resting.values())}
        return datetime.now(UTC) if life in lives else self.until.get(life, datetime.now(UTC))


def _running(pod: Object) -> Running:
    meta, volumes = pod["metadata"], pod.get("spec", {}).get("volumes", [])
    claims = {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}
    life = meta["labels"]["gpubroker.dev/lease"], int(meta["labels"]["gpubroker.dev/generation"])
    return Running(life, frozenset(f"{meta.get('namespace')}/{claim}" for claim in claims))


def _is_over(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def overshoot(world: World) -> int:
    """Count tenants over quota, by their leases."""
    with system_scope():
        held = Counter[str]()
        for lease in Lease.objects.holding().select_related("offering"):
            held[lease.tenant_id] += lease.offering.milli_units * lease.quantity
    return sum(units > UNITS * 1000 for units in held.values())


def double_allocations() -> int:
    with system_scope(), connection.cursor() as cursor:
        cursor.execute(TWICE)
        return int(cursor.fetchone()[0])


def leaked(world: World) -> list[str]:
    """Return leftover objects in the cluster, and unreleased allocations."""
    there = [
        f"{path} {each['metadata']['namespace']}/{each['metadata']['name']}"
        for path in LEFT
        for each in world.plane.api.items(path, labelSelector="gpubroker.dev/lease")
    ]
    there += [f"{path} {each['metadata']['name']}" for path in KEPT for each in world.plane.api.items(path)]
    with system_scope():
        there += [f"place of {each.lease_id}" for each in Allocation.objects.filter(released_at=None)]
    return there + [f"units of {owner.tenant.name}" for owner in world.homes if owner.quota_used(QuotaKind.UNITS)]


def seconds(world: World, witness: Witness) -> tuple[dict[str, int], int]:
    """Compare charges with transitions, and those with pods."""
    lease_rating.rate_all_leases(now=world.sim.now)
    kept = conservation.check_conservation(first=world.began, last=world.sim.now)
    early = 0
    for step in _steps(after="active"):
        at, began = world.jumps.real(step.at), witness.since.get((step.lease_id, step.generation))
        if began is None or began - at > timedelta(seconds=TOLERATED_S):
            early += 1
            print(f"{step.lease_id} was active from {at} on, its pod ran from {began} on", flush=True)
    late = [(step, by) for step, by in _late(world, witness) if not _nobody_had_seen(step, by)]
    for step, by in late:
        print(f"{step.lease_id} was active until {step.at}, {by} after its pod: {step.cause}", flush=True)
        print(f"until {world.jumps.real(step.at)}, written {step.recorded_at}", flush=True)
        print(*witness.stories[step.lease_id], sep="\n", flush=True)
    wrong = {
        "charged_minus_active_s": kept.charged_minus_active,
        "active_without_place_s": kept.active_without_place,
        "gpu_seconds_unexplained": int(kept.unexplained),
        "leases_charged_before_their_pod_ran": early,
        "leases_charged_after_their_pod_ended": len(late),
    }
    return wrong, kept.active_unit_seconds


def held(world: World, witness: Witness) -> dict[str, int]:
    """Sum up unpaid held seconds, and charged seconds without a pod."""
    now = datetime.now(UTC).timestamp()
    return account(witness.all_held(), _books(world), world.silences(), now=now, stories=witness.stories)


def _books(world: World) -> dict[Life, Book]:
    """Return the recorded spans of leases in real time."""
    books: dict[Life, Book] = {}
    steps, now = _steps(), datetime.now(UTC).timestamp()
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if step.after not in ("provisioning", "active"):
            continue
        is_last = after is None or after.lease_id != step.lease_id
        until, written = now, now
        if after is not None and not is_last:
            until, written = world.jumps.real(after.at).timestamp(), after.recorded_at.timestamp()
            if after.cause.startswith(TIME_IS_UP):  # that was in our books from the beginning
                written = until
        since = world.jumps.real(step.at).timestamp() if step.after == "active" else until
        cause = "" if after is None or is_last else after.cause
        books[step.lease_id, step.generation] = Book(Piece(since, until), written, cause)
    return books


def why_they_never_ran() -> Counter[str]:
    """Count leases that never started, by reason."""
    ends = (step for step in _steps(after="releasing") if step.before in ("queued", "provisioning"))
    return Counter(step.cause[:80] for step in ends if not step.cause.startswith(BY_TENANT))


def let_go_too_late(world: World, witness: Witness) -> int:
    """Count charged seconds between an unseen end and the release."""
    late = [by for step, by in _late(world, witness) if _nobody_had_seen(step, by)]
    return round(sum(late, timedelta()).total_seconds())


def _nobody_had_seen(step: Transition, by: timedelta) -> bool:
    """Return whether a lease ended before its pod's end was visible."""
    within = UNSEEN_S if step.cause.startswith(BY_TENANT) else PROOF_S
    return step.cause.startswith((*BY_TENANT, TIME_IS_UP)) and by.total_seconds() <= within


def _steps(**which: str) -> list[Transition]:
    with system_scope():
        return list(Transition.objects.filter(**which).order_by("lease_id", "seq"))


def _late(world: World, witness: Witness) -> Iterator[tuple[Transition, timedelta]]:
    """Yield leases that ended later than their pod, beyond the tolerance."""
    for step in _steps(before="active"):
        at = world.jumps.real(step.at)
        ended = max(witness.ran_until((step.lease_id, step.generation)), world.jumps.latest(at))
        # One that was over before anybody saw it run was active for no second, later than it ran.
        charged = min(at - ended, step.at - (step.prev_at or step.at))
        if charged > timedelta(seconds=TOLERATED_S):
            yield step, charged
