"""A cluster that is only simulated, with a real one's manners: latencies, refusals, lost nodes, slow deletes.

Latencies are drawn from the order's own name, so that the same order always takes as long; a slice that is still cut
from the lease before it need not be cut. Faults come on request: an image named `refuse/…` is refused, `slow/…` takes
minutes to pull and to go, `brief/…` is done after half a minute, `fails/…` and `hungry/…` end badly after some seconds;
a node set to lost or a card set to unhealthy takes its pods along.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.backends.postgresql.psycopg_any import Jsonb
from django.db.models import Q

from broker.domain.placement.warmth import Cutting
from broker.domain.states import Isolation
from broker.domain.workloads import BATCH
from broker.models import Gpu, Health, Node, NodeState, SimulatedPod, SimulatedVolume
from broker.provisioners.base import Kept, Observation, Order, Remains, Seen
from ports.chance import Chance

# Makes the pod or returns the one that is there, in one round trip.
MAKE = """
INSERT INTO broker_simulatedpod (name, nodes, created_at, ready_at, refused, slow)
VALUES (%(name)s, %(nodes)s, %(created_at)s, %(ready_at)s, %(refused)s, %(slow)s)
ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING *
"""
PULL_S, START_S, DELETE_S, SPREAD = 2.6, 1.2, 0.8, 0.35
TICK_S = 0.001  # moments are kept to the microsecond: what is shorter than this is none
SLOW_S, SLOW_DELETE_S = 240.0, 60.0
BRIEF, ILL = timedelta(seconds=30), timedelta(seconds=10)
ILLS = {"fails/": "exit code 1", "hungry/": "it took more memory than it has (OOMKilled)"}


class SimulatedProvisioner:
    """Keeps its pods in a table of its own, so that several workers see one cluster."""

    def ensure(self, order: Order, *, now: datetime) -> Observation:
        pull_s, start_s = self._latencies(order)
        cut_s = _cut_s(order)
        made = {
            "name": order.name,
            "nodes": Jsonb(sorted({s.node for s in order.slices})),
            "created_at": now,
            "ready_at": now + timedelta(seconds=cut_s + pull_s + start_s),
            "refused": self._refusal(order),
            "slow": order.image.startswith("slow/"),
        }
        (pod,) = SimulatedPod.objects.raw(MAKE, made)
        if order.volume:
            self._keep(order, order.volume, now)
        return self._look(order, pod, now)

    def observe(self, order: Order, *, now: datetime) -> Observation:
        pod = SimulatedPod.objects.filter(name=order.name).first()
        return self._look(order, pod, now) if pod else Observation(Seen.GONE)

    def let_go(self, order: Order, remains: tuple[Remains, ...]) -> None:
        """Do nothing: a pod here is one row, which is started over in its place and goes only when it is removed."""

    def remove(self, order: Order, *, now: datetime) -> Observation:
        return self._remove(order.name, now)

    def names(self) -> list[str]:
        return list(SimulatedPod.objects.values_list("name", flat=True))

    def remove_named(self, name: str, *, now: datetime) -> None:
        self._remove(name, now)

    def remove_volume(self, volume: Kept, *, now: datetime) -> Observation:
        kept = SimulatedVolume.objects.filter(name=volume.id).first()
        if kept is None:
            return Observation(Seen.GONE)
        if kept.gone_at is None:
            delete_s = Chance(f"delete {volume.id}").lognormal(DELETE_S, SPREAD) / settings.SIMULATED_SPEED
            kept.gone_at = now + timedelta(seconds=delete_s)
            kept.save(update_fields=["gone_at"])
        if kept.gone_at > now:
            left = (kept.gone_at - now).total_seconds()
            return Observation(Seen.PENDING, "being deleted", again_in_s=left)
        kept.delete()
        return Observation(Seen.GONE)

    def _keep(self, order: Order, volume: Kept, now: datetime) -> None:
        """Make the volume at its first use; who writes to it is kept, so that a later order finds the earlier's."""
        made = {"size_gib": volume.size_gib, "made_at": now}
        SimulatedVolume.objects.get_or_create(name=volume.id, defaults=made)
        SimulatedVolume.objects.filter(name=volume.id).update(last_used_by=order.name)

    def _remove(self, name: str, now: datetime) -> Observation:
        pod = SimulatedPod.objects.filter(name=name).first()
        if pod is None:
            return Observation(Seen.GONE)
        if pod.gone_at is None:
            delete_s = SLOW_DELETE_S if pod.slow else Chance(f"delete {name}").lognormal(DELETE_S, SPREAD)
            pod.gone_at = now + timedelta(seconds=delete_s / settings.SIMULATED_SPEED)
            SimulatedPod.objects.filter(name=name, gone_at=None).update(gone_at=pod.gone_at)
        if pod.gone_at > now:
            return Observation(Seen.PENDING, "shutting down", again_in_s=(pod.gone_at - now).total_seconds())
        lost = Node.objects.filter(pk__in=pod.nodes, state=NodeState.LOST).first()
        if lost:  # it confirms nothing, and takes the pod down when it is back
            return Observation(Seen.LOST, f"node {lost.name} lost contact", last_seen=lost.state_since)
        SimulatedPod.objects.filter(name=name).delete()
        return Observation(Seen.GONE)

    def _look(self, order: Order, pod: SimulatedPod, now: datetime) -> Observation:
        if pod.refused:
            return Observation(Seen.REFUSED, pod.refused)
        if fault := self._fault(order):
            return fault
        if pod.gone_at is not None:
            return Observation(Seen.GONE, last_seen=pod.gone_at)
        if pod.ready_at and order.image.startswith("brief/") and pod.ready_at + BRIEF <= now:
            return Observation(Seen.ENDED, "its command is done", last_seen=pod.ready_at + BRIEF)
        if pod.ready_at and pod.ready_at + ILL <= now and (how := _ill(order)):
            return _ended_badly(order, how, at=pod.ready_at + ILL, now=now)
        if pod.ready_at and pod.ready_at <= now:
            return Observation(Seen.READY, "readiness verified")
        return self._progress(order, pod, now)

    def _fault(self, order: Order) -> Observation | None:
        bad = Q(health=Health.UNHEALTHY) | Q(node__state=NodeState.LOST)
        told = ("node__state", "node__name", "node__state_since", "index", "health_reason", "health_since")
        card = (
            Gpu.objects.filter(bad, pk__in=[s.gpu for s in order.slices])
            .order_by("pk")
            .values_list(*told)
            .first()
        )
        if card is None:
            return None
        state, node, node_since, index, reason, since = card
        if state == NodeState.LOST:
            text, since = f"node {node} lost contact", node_since
        else:
            why = f": {reason}" if reason else ""
            text = f"card {index} of {node} failed{why}"
        return Observation(Seen.LOST, text, last_seen=since)

    def _progress(self, order: Order, pod: SimulatedPod, now: datetime) -> Observation:
        pull_s, start_s = self._latencies(order)
        elapsed = (now - pod.created_at).total_seconds()
        left = max((pod.ready_at - now).total_seconds(), 0.05) if pod.ready_at else 1.0
        if elapsed < pull_s:
            percent = int(100 * elapsed / pull_s)
            return Observation(Seen.PENDING, "pulling image", percent, again_in_s=min(left, 0.7))
        # How long its card takes was told when it was made, and is told no more.
        if pod.ready_at and left > start_s and elapsed + left > pull_s + start_s + TICK_S:
            return Observation(
                Seen.PENDING, f"cutting {order.profile}", again_in_s=min(max(left - start_s, 0.05), 0.7)
            )
        return Observation(Seen.PENDING, "starting", again_in_s=min(left, 0.7))

    def _latencies(self, order: Order) -> tuple[float, float]:
        chance = Chance(order.name)
        pull_s = SLOW_S if order.image.startswith("slow/") else chance.lognormal(PULL_S, SPREAD)
        return pull_s / settings.SIMULATED_SPEED, chance.lognormal(START_S, SPREAD) / settings.SIMULATED_SPEED

    def _refusal(self, order: Order) -> str:
        if order.image.startswith("refuse/"):
            return f"the image {order.image} cannot be pulled: the registry says it does not exist"
        return ""


def _cut_s(order: Order) -> float:
    """Return how long the cards need for the slices of an order, all of them at once."""
    chance = Chance(f"cut {order.name}")
    cut_s, destroy_s = (
        chance.lognormal(median, SPREAD) if median else 0.0
        for median in (settings.SIMULATED_CUT_S, settings.SIMULATED_DESTROY_S)
    )
    ways = {each.cutting for each in order.slices}
    # A whole card and a share are not cut, but what is left of slices is in their way as well.
    cuts = order.isolation == Isolation.HARDWARE and not ways <= {None, Cutting.WARM}
    return (cuts * cut_s + (Cutting.ANEW in ways) * destroy_s) / settings.SIMULATED_SPEED


def _ill(order: Order) -> str:
    """Return how a program of its kind ends; empty for one that does not end badly."""
    return next((how for beginning, how in ILLS.items() if order.image.startswith(beginning)), "")


def _ended_badly(order: Order, how: str, *, at: datetime, now: datetime) -> Observation:
    """A batch is over with its command; everything else is started again and again."""
    if order.workload == BATCH.name:
        return Observation(Seen.ENDED, f"its command failed: {how}", last_seen=at)
    text = f"the program ended 1 times: {how}; it is started again"
    return Observation(Seen.PENDING, text, last_seen=now, runs=True)
