"""What must be true of a long life on a cluster, whatever went wrong: by the database and by the cluster itself."""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from threading import Event, Thread

from django.db import connection
from urllib3.exceptions import HTTPError

from billing.services import conservation, rating
from broker.models import Allocation, Lease, Transition
from tenants.models import QuotaKind
from tenants.services.walls import as_sweep
from tests.chaos.kubernetes_world import UNITS, World
from tests.controlplane.api import Api, Object, Refused

LEFT = (
    "/api/v1/pods",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/services",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/jobs",
)
TWICE = """
SELECT count(*) FROM broker_allocation a JOIN broker_allocation b
    ON a.gpu_id = b.gpu_id AND a.id < b.id AND a.placement && b.placement
 WHERE tstzrange(a.held_at, a.released_at) && tstzrange(b.held_at, b.released_at)
"""
TOLERATED_S = 1


class Witness(Thread):
    """Sees every pod of ours by the cluster's own word: from when to when each lease had one that ran."""

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self.api, self.over = api, Event()
        self.since: dict[str, datetime] = {}
        self.running: dict[str, set[str]] = defaultdict(set)  # lease: uids of pods that run now
        self.twice: set[str] = set()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                found = self.api.get("/api/v1/pods", labelSelector="gpubroker.dev/lease")
                self.running.clear()
                for pod in found["items"]:
                    self._see(pod)
                version = found["metadata"]["resourceVersion"]
                for event in self.api.watch(
                    "/api/v1/pods", seconds=60, labelSelector="gpubroker.dev/lease", resourceVersion=version
                ):
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._see(event["object"])
                    elif event["type"] == "DELETED":
                        self._forget(event["object"])
            except (Refused, HTTPError, OSError, KeyError):
                self.over.wait(0.3)

    def _see(self, pod: Object) -> None:
        lease = pod["metadata"]["labels"]["gpubroker.dev/lease"]
        states = [each.get("state", {}) for each in pod["status"].get("containerStatuses", [])]
        begun = [state["running"]["startedAt"] for state in states if state.get("running")]
        if not begun or pod["status"].get("phase") != "Running":
            self._forget(pod)
            return
        self.since.setdefault(lease, datetime.fromisoformat(min(begun)))
        self.running[lease].add(pod["metadata"]["uid"])
        if len(self.running[lease]) > 1:
            self.twice.add(lease)

    def _forget(self, pod: Object) -> None:
        self.running[pod["metadata"]["labels"]["gpubroker.dev/lease"]].discard(pod["metadata"]["uid"])


def overshoot(world: World) -> int:
    """Count the tenants that hold more than they may, by their leases and not by what the quota says it counted."""
    with as_sweep():
        held = Counter[str]()
        for lease in Lease.objects.holding().select_related("offering"):
            held[lease.tenant_id] += lease.offering.milli_units * lease.quantity
    return sum(units > UNITS * 1000 for units in held.values())


def double_allocations() -> int:
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(TWICE)
        return int(cursor.fetchone()[0])


def leaked(world: World) -> list[str]:
    """Name what is left of leases in the cluster, and places that nobody gave back."""
    there = [
        f"{path} {each['metadata']['namespace']}/{each['metadata']['name']}"
        for path in LEFT
        for each in world.plane.api.items(path, labelSelector="gpubroker.dev/lease")
    ]
    with as_sweep():
        there += [f"place of {each.lease_id}" for each in Allocation.objects.filter(released_at=None)]
    return there + [f"units of {owner.tenant.name}" for owner in world.homes if owner.used(QuotaKind.UNITS)]


def seconds(world: World, witness: Witness) -> dict[str, int]:
    """Compare what was charged with the ledger, and the ledger with what the cluster's own pods say."""
    rating.rate(now=world.life.now)
    kept = conservation.over(first=world.began, last=world.life.now)
    early = 0
    with as_sweep():
        for step in Transition.objects.filter(after="active").order_by("lease_id", "seq"):
            began = witness.since.get(step.lease_id)
            before_it_ran = None if began is None else began - step.at
            if before_it_ran is None or before_it_ran > timedelta(seconds=TOLERATED_S):
                early += 1
    return {
        "charged_minus_active_s": kept.charged_minus_active,
        "active_without_place_s": kept.active_without_place,
        "card_seconds_unexplained": int(kept.cards("unexplained")),
        "leases_charged_before_their_pod_ran": early,
    }
