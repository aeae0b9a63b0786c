"""PostgreSQL constraints of leases, allocations and quotas."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Lease, Transition
from broker.models.keys import allocation_id
from tenants.models import Quota, QuotaKind
from tenants.services.rls import tenant_scope
from tests.database import OwnDatabase
from tests.simulation import (
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    simulate,
    soft_offering,
    transitions_of,
)

SECOND = timedelta(seconds=1)


def refused(tenant_id: str, attack: Callable[[], Any], match: str) -> None:
    with tenant_scope(tenant_id), pytest.raises(DatabaseError, match=match), transaction.atomic():
        attack()


def save_next_transition(last: Transition, /, **otherwise: Any) -> Callable[[], None]:
    """Return a function that stores the next transition with these changes."""
    step = Transition(**{f.attname: getattr(last, f.attname) for f in Transition._meta.concrete_fields})
    step.seq, step.prev_seq, step.prev_at = last.seq + 1, last.seq, last.at
    step.before, step.after, step.position = last.after, last.after, last.position + 1
    for name, value in otherwise.items():
        setattr(step, name, value)
    return lambda: step.save(force_insert=True)


@pytest.mark.parametrize(
    ("attack", "match"),
    [
        (lambda last: {"at": last.at - SECOND}, "transition_chained"),
        (
            lambda last: {"seq": last.seq, "prev_seq": last.prev_seq, "prev_at": last.prev_at},
            "transition_pkey",
        ),
        (lambda last: {"seq": last.seq + 2}, "transition_chained"),
        (lambda last: {"seq": last.seq + 2, "prev_seq": last.seq + 1}, "transition_follows"),
        (lambda last: {"prev_seq": None, "prev_at": None}, "transition_chained"),
        (lambda last: {"prev_at": last.at - SECOND}, "transition_follows"),
        (lambda last: {"at": last.at + SECOND / 2}, "transition_whole_seconds"),
        (lambda last: {"lease_id": "lse_none", "seq": 0, "prev_seq": None, "prev_at": None}, "of_a_lease"),
    ],
    ids=[
        "back-dated",
        "fork",
        "gap",
        "no predecessor",
        "new chain",
        "forged",
        "half a second",
        "no lease",
    ],
)
def test_a_transition_not_chained_to_the_previous_one_is_refused(
    sim: Simulation, attack: Callable[[Transition], dict[str, Any]], match: str
) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    last = transitions_of(lease)[-1]
    refused(lease.tenant_id, save_next_transition(last, **attack(last)), match)
    with tenant_scope(lease.tenant_id):
        save_next_transition(last)()
    assert len(transitions_of(lease)) == last.seq + 2


def test_no_transition_follows_released(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), LeaseState.RELEASED)
    last = transitions_of(lease)[-1]
    refused(lease.tenant_id, save_next_transition(last, after="active"), "nothing follows")
    refused(lease.tenant_id, save_next_transition(last, before="active"), "transition_released_once")


def test_transitions_cannot_be_changed_or_deleted_by_any_login(own_database: OwnDatabase) -> None:
    with simulate() as sim:
        create_gpus(1)
        lease = sim.create_lease(create_tenant(), offering())
    attacks = (
        "UPDATE broker_transition SET cause = 'x'",
        "DELETE FROM broker_transition",
        "TRUNCATE broker_transition",
    )
    logins = (
        (own_database.web_url, "permission denied"),
        (own_database.worker_url, "permission denied"),
        (own_database.owner_url, "append-only"),
    )
    for url, match in logins:
        for attack in attacks:
            with closing(psycopg.connect(url, autocommit=True)) as login:
                login.execute("SELECT set_config('app.tenant', %s, false)", [lease.tenant_id])
                with pytest.raises(psycopg.DatabaseError, match=match):
                    login.execute(attack)
    assert len(transitions_of(lease)) == 4


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def allocation_on_same_gpu(
    place: Allocation, owner: TenantContext, lease: Lease, **otherwise: Any
) -> Callable[[], Allocation]:
    """Return a function that stores an allocation on the same GPU."""
    same = {"gpu_id": place.gpu_id, "generation": 2, "profile": place.profile, "held_at": place.held_at}
    fields = {"isolation": place.isolation, "placement": NumericRange(6, 8)} | otherwise
    return lambda: Allocation.objects.create(pk=allocation_id(), tenant=owner.tenant, lease=lease, **same, **fields)


def test_overlapping_allocations_of_a_gpu_are_refused(sim: Simulation, kestrel: TenantContext) -> None:
    swift = create_tenant("Swift")
    place = held_allocations(sim.create_lease(kestrel, offering("3g.40gb")))[0]
    waiting = sim.request_lease(swift, offering("3g.40gb"))
    first, end = place.placement.lower, place.placement.upper
    for overlaps in (
        NumericRange(first, end),
        NumericRange(first, first + 1),
        NumericRange(end - 1, end + 1),
    ):
        attack = allocation_on_same_gpu(place, swift, waiting, placement=overlaps)
        refused(swift.tenant.pk, attack, "one_lease_per_place")
    with tenant_scope(swift.tenant.pk):
        allocation_on_same_gpu(place, swift, waiting, placement=NumericRange(end % 8, end % 8 + 4))()


def test_allocations_of_different_isolation_on_one_gpu_are_refused(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"))
    place = held_allocations(lease)[0]
    free = NumericRange(0, 2) if place.placement.lower >= 2 else NumericRange(2, 4)
    attack = allocation_on_same_gpu(place, kestrel, lease, isolation="soft", placement=free)
    refused(kestrel.tenant.pk, attack, "one_isolation_per_gpu")


@pytest.mark.parametrize("isolation", ["soft", "none"])
def test_leases_of_two_tenants_cannot_be_stored_on_one_shared_gpu(
    sim: Simulation, kestrel: TenantContext, isolation: str
) -> None:
    swift, quarter = create_tenant("Swift"), soft_offering(isolation=isolation)
    place = held_allocations(sim.create_lease(kestrel, quarter))[0]
    assert place.isolation == isolation
    theirs, ours = sim.request_lease(swift, quarter), sim.request_lease(kestrel, quarter)
    far = NumericRange((place.placement.lower + 4) % 8, (place.placement.lower + 4) % 8 + 2)
    refused(swift.tenant.pk, allocation_on_same_gpu(place, swift, theirs, placement=far), "one_tenant_per_soft_gpu")
    with tenant_scope(kestrel.tenant.pk):
        allocation_on_same_gpu(place, kestrel, ours, placement=far)()


def test_quota_use_above_its_limit_is_refused(kestrel: TenantContext) -> None:
    quota = kestrel.set_quota(QuotaKind.UNITS, 8_000)
    rows = Quota.objects.filter(pk=quota.pk)
    refused(kestrel.tenant.pk, lambda: rows.update(used=8_001), "quota_never_exceeded")
    refused(kestrel.tenant.pk, lambda: rows.update(used=-1), "quota_never_exceeded")
    refused(kestrel.tenant.pk, lambda: rows.update(soft_limit=8_001), "quota_soft_below_hard")
    with tenant_scope(kestrel.tenant.pk):
        assert rows.update(used=8_000) == 1
