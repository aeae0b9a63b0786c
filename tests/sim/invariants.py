"""Invariants after every step of a random run."""

from collections import Counter, defaultdict
from datetime import datetime, timedelta

from broker.domain.geometry.gpu_state import Geometry, PlacedSlice
from broker.domain.lifecycle.lease_transitions import ENDING_STATES, HOLDS_CAPACITY, NEXT_STATES
from broker.domain.lifecycle.relocation_states import STARTED_RELOCATION_STATES
from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.models import Allocation, Lease, Relocation, SimulatedPod, Transition
from broker.provisioners.base import spec_name
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from tenants.models import Quota, QuotaKind
from tenants.services.rls import system_scope
from tests.broker.domain.geometry.geometry_rules import geometry_faults
from tests.simulation import MODEL

SWEEP = timedelta(seconds=5)  # how often the beat repeats what is due
LOOKED_AT = {
    "provisioning": timedelta(seconds=15),
    "stopping": timedelta(seconds=15),
    "releasing": timedelta(seconds=15),
    "active": timedelta(minutes=5),
}
HOLDING = {state.value for state in HOLDS_CAPACITY}


class Watch:
    """Checks invariants on new transitions and all other rows."""

    def __init__(self, known: set[str]) -> None:
        self.known, self.position = known, 0
        self.last: dict[str, Transition] = {}

    def check(self, *, now: datetime) -> None:
        with system_scope():
            leases = {lease.pk: lease for lease in Lease.objects.select_related("offering", "project")}
            held = list(Allocation.objects.filter(released_at=None))
            limits = list(Quota.objects.all())
            moves = list(Relocation.objects.values_list("lease_id", "state"))
            news = list(Transition.objects.filter(position__gt=self.position).order_by("position"))
        self._ledger(news, leases)
        self._places(leases, held)
        self._beside(leases, [each.lease_id for each in held if each.is_relocation], moves)
        # A place that a lease left in the middle of a move is taken until it is proven that nothing is left there.
        moved = {pk for pk, _ in moves}
        self._pods(leases, [each for each in held if each.leaving_since and each.lease_id in moved])
        self._quotas(leases, limits)
        self._looks(leases, now)

    def _ledger(self, news: list[Transition], leases: dict[str, Lease]) -> None:
        for step in news:
            before = self.last.get(step.lease_id)
            assert step.before == (before.after if before else ""), f"{step}: not bound to {before}"
            if before:
                assert LeaseState(step.after) in NEXT_STATES[LeaseState(step.before)], f"{step} after {before}"
                assert (step.seq, step.prev_at) == (before.seq + 1, before.at)
                assert step.at >= before.at
                assert step.reason != "none" or step.after not in ENDING_STATES, f"{step} for no reason"
                placed = step.after == LeaseState.PROVISIONING
                assert step.generation == before.generation + placed, f"{step}: the fence did not rise"
            self.last[step.lease_id], self.position = step, step.position
        for lease in leases.values():
            step = self.last[lease.pk]
            assert (lease.state, lease.seq, lease.state_since) == (step.after, step.seq, step.at), lease.pk
            assert (lease.end_reason != "none") == (lease.state in ENDING_STATES), f"{lease.pk}: {lease.end_reason}"
            if lease.active_at and lease.ended_at:
                assert lease.ends_at
                assert lease.active_at <= lease.ended_at <= lease.ends_at, "charged beyond its end"

    def _places(self, leases: dict[str, Lease], held: list[Allocation]) -> None:
        gpus: defaultdict[str, set[PlacedSlice]] = defaultdict(set)
        count: Counter[str] = Counter()
        spec = gpu_model_spec(MODEL)
        for each in held:
            profile = spec.profile(each.profile, Isolation(each.isolation))
            gpus[each.gpu_id].add(PlacedSlice(profile.placed_at(each.placement.lower), profile))
            if each.is_relocation:
                continue  # held beside the one that its lease is at
            if each.leaving_since is not None:
                continue  # its lease went on without it; nobody else may have it yet
            count[each.lease_id] += 1
            assert each.generation == leases[each.lease_id].generation
        for gpu, slices in gpus.items():
            assert geometry_faults(Geometry(frozenset(slices)), grid=spec.grid) == (), gpu
        for lease in leases.values():
            wanted = lease.quantity if lease.state in HOLDING else 0
            assert count[lease.pk] == wanted, f"{lease.pk} is {lease.state} and holds {count[lease.pk]}"

    def _beside(self, leases: dict[str, Lease], beside: list[str], moves: list[tuple[str, str]]) -> None:
        """Check that only a relocating lease has two allocations."""
        moving = {pk for pk, state in moves if state in STARTED_RELOCATION_STATES}
        for pk, count in Counter(beside).items():
            assert count == 1, f"{pk} holds {count} places for one move"
            assert pk in moving, f"{pk} holds a second place and is not being moved"
            assert leases[pk].state not in ("active", "stopped", "released"), f"{pk} is {leases[pk].state}"

    def _pods(self, leases: dict[str, Lease], left: list[Allocation]) -> None:
        running = Counter(
            name.rpartition("-g")[0]
            for name in SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True)
        )
        twice = [name for name, times in running.items() if times > 1]
        assert not twice, f"runs twice at once: {twice}"
        held = {spec_name(lease.pk, lease.generation) for lease in leases.values() if lease.state in HOLDING}
        held |= {spec_name(each.lease_id, each.generation) for each in left}
        untold = set(SimulatedPod.objects.filter(gone_at=None, name__in=self.known - held))
        assert not untold, f"no lease accounts for {untold}, and who made them told them not to go"

    def _quotas(self, leases: dict[str, Lease], limits: list[Quota]) -> None:
        """Check that a quota equals the sum of the leases below it."""
        live = [lease for lease in leases.values() if lease.state != LeaseState.RELEASED]
        for quota in limits:
            below = [lease for lease in live if quota.project_id in lease.project.path]
            if quota.kind == QuotaKind.UNITS:
                held = sum(lease.quota_uses.get("units", {}).get("amount", 0) for lease in below)
                assert quota.used == held <= quota.limit, f"{quota.pk}: {quota.used}, not {held}"
            else:
                month = quota.window_start.isoformat() if quota.window_start else ""
                total = sum(lease.quota_uses["gpu_seconds"]["windows"].get(month, 0) for lease in below)
                assert total <= quota.used <= quota.limit, f"{quota.pk}: {quota.used}, less than {total}"

    def _looks(self, leases: dict[str, Lease], now: datetime) -> None:
        """Check that the sweep finds every lease whose message was lost."""
        for lease in leases.values():
            if (patience := LOOKED_AT.get(lease.state)) is not None:
                assert lease.due_at, f"{lease.pk} is {lease.state}, and nobody will ever look"
                assert lease.due_at + SWEEP <= now + patience, f"{lease.pk} is looked at only at {lease.due_at}"


def at_rest() -> list[str]:
    """Return what remains after all leases have ended."""
    with system_scope():
        left = [f"{lease.pk} is {lease.state}" for lease in Lease.objects.live()]
        left += [f"{a.lease_id} holds {a.gpu_id}" for a in Allocation.objects.filter(released_at=None)]
        left += [f"quota {q.pk} counts {q.used}" for q in Quota.objects.filter(kind="units", used__gt=0)]
    return left + [f"pod {name}" for name in SimulatedPod.objects.values_list("name", flat=True)]


def orphans() -> list[str]:
    """Return the pods without a lease."""
    with system_scope():
        live = {spec_name(*lease) for lease in Lease.objects.holding().values_list("id", "generation")}
    return [name for name in SimulatedPod.objects.values_list("name", flat=True) if name not in live]
