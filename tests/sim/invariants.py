"""What must be true after every single step, whatever failed."""

from collections import Counter, defaultdict
from datetime import timedelta

from broker.domain.geometry import Geometry, Held, faults
from broker.domain.lifecycle import HOLDS_CAPACITY, may_become
from broker.domain.states import Isolation, LeaseState
from broker.models import Allocation, Lease, SimulatedPod, Transition
from broker.provisioners.base import order_name
from broker.services.catalogue import spec_of
from tenants.models import Quota, QuotaKind
from tenants.services.walls import as_sweep
from tests.world import MODEL

HOLDING = {state.value for state in HOLDS_CAPACITY}


class Watch:
    """Reads the ledger only where it is new, and everything else whole: the worlds are small."""

    def __init__(self) -> None:
        self.position = 0
        self.last: dict[str, Transition] = {}

    def check(self) -> None:
        with as_sweep():
            leases = {lease.pk: lease for lease in Lease.objects.select_related("offering", "project")}
            held = list(Allocation.objects.filter(released_at=None))
            limits = list(Quota.objects.all())
            news = list(Transition.objects.filter(position__gt=self.position).order_by("position"))
        self._ledger(news, leases)
        self._places(leases, held)
        self._pods(leases)
        self._quotas(leases, limits)

    def _ledger(self, news: list[Transition], leases: dict[str, Lease]) -> None:
        for step in news:
            before = self.last.get(step.lease_id)
            assert step.before == (before.after if before else ""), f"{step}: not bound to {before}"
            if before:
                assert may_become(LeaseState(step.before), LeaseState(step.after)), f"{step} after {before}"
                assert (step.seq, step.prev_at) == (before.seq + 1, before.at)
                assert step.at >= before.at
                placed = step.after == LeaseState.PROVISIONING
                assert step.generation == before.generation + placed, f"{step}: the fence did not rise"
            self.last[step.lease_id], self.position = step, step.position
        for lease in leases.values():
            step = self.last[lease.pk]
            assert (lease.state, lease.seq, lease.at) == (step.after, step.seq, step.at), lease.pk
            if lease.active_at and lease.ended_at:
                assert lease.ends_at
                assert lease.active_at <= lease.ended_at <= lease.ends_at, "charged beyond its end"

    def _places(self, leases: dict[str, Lease], held: list[Allocation]) -> None:
        cards: defaultdict[str, set[Held]] = defaultdict(set)
        count: Counter[str] = Counter()
        spec = spec_of(MODEL)
        for each in held:
            profile = spec.profile(each.profile, Isolation(each.isolation))
            cards[each.gpu_id].add(Held(profile.placed_at(each.placement.lower), profile))
            count[each.lease_id] += 1
            assert each.generation == leases[each.lease_id].generation
        for gpu, slices in cards.items():
            assert faults(Geometry(frozenset(slices)), grid=spec.grid) == (), gpu
        for lease in leases.values():
            wanted = lease.quantity if lease.state in HOLDING else 0
            assert count[lease.pk] == wanted, f"{lease.pk} is {lease.state} and holds {count[lease.pk]}"

    def _pods(self, leases: dict[str, Lease]) -> None:
        running = Counter(
            name.rpartition("-g")[0]
            for name in SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True)
        )
        twice = [name for name, times in running.items() if times > 1]
        assert not twice, f"runs twice at once: {twice}"
        for pod in SimulatedPod.objects.filter(gone_at=None):
            lease = leases.get("lse_" + pod.name[2:].rpartition("-g")[0])
            if lease and lease.state == LeaseState.RELEASED and lease.ended_at:
                # A worker may have been late by a moment; what it made is told to go with its next breath.
                late = pod.created_at > lease.ended_at - timedelta(seconds=1)
                assert late, f"{lease.pk} is released, and nobody told {pod.name} to go"

    def _quotas(self, leases: dict[str, Lease], limits: list[Quota]) -> None:
        """A quota counts what is held below it, whenever it was made: summed from the leases, not from its parts."""
        live = [lease for lease in leases.values() if lease.state != LeaseState.RELEASED]
        for quota in limits:
            below = [lease for lease in live if quota.project_id in lease.project.path]
            if quota.kind == QuotaKind.UNITS:
                held = sum(lease.quota_uses["units"]["amount"] for lease in below)
                assert quota.used == held <= quota.limit, f"{quota.pk}: {quota.used}, not {held}"
            else:
                month = quota.window_start.isoformat() if quota.window_start else ""
                asked = sum(lease.quota_uses["gpu_seconds"]["windows"].get(month, 0) for lease in below)
                assert asked <= quota.used <= quota.limit, f"{quota.pk}: {quota.used}, less than {asked}"


def at_rest() -> list[str]:
    """Say what is still about when every lease is over and the calm has lasted."""
    with as_sweep():
        left = [f"{lease.pk} is {lease.state}" for lease in Lease.objects.live()]
        left += [f"{a.lease_id} holds {a.gpu_id}" for a in Allocation.objects.filter(released_at=None)]
        left += [f"quota {q.pk} counts {q.used}" for q in Quota.objects.filter(kind="units", used__gt=0)]
    return left + [f"pod {name}" for name in SimulatedPod.objects.values_list("name", flat=True)]


def orphans() -> list[str]:
    """Name the pods that no lease accounts for."""
    with as_sweep():
        live = {order_name(*lease) for lease in Lease.objects.holding().values_list("id", "generation")}
    return [name for name in SimulatedPod.objects.values_list("name", flat=True) if name not in live]
