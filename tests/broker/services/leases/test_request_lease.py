"""Lease requests: validation, quota and transitions."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Offering
from broker.services.leases.lease_requests import (
    MAX_END_DATE_AHEAD,
    OfferingRetired,
    PlacementImpossible,
)
from tenants.models import AuditEvent, QuotaKind
from tenants.services.errors import InvalidValue, ObjectNotFound, QuotaExceeded
from tenants.services.rls import tenant_scope
from tests.simulation import (
    NOW,
    Simulation,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    soft_offering,
    state_path,
    transitions_of,
)


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_fleet()
    return create_tenant("Kestrel")


def count(owner: TenantContext) -> int:
    with tenant_scope(owner.tenant.pk):
        return Lease.objects.count()


def test_a_lease_is_queued_with_its_first_two_transitions(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering(), name=" fold-run-7 ")
    assert lease.state == LeaseState.QUEUED
    assert lease.name == "fold-run-7"
    assert state_path(lease) == "requested queued"
    first, second = transitions_of(lease)
    assert (first.actor_id, first.prev_at, second.prev_at) == (kestrel.actor.id, None, first.at)


def test_a_lease_request_enqueues_a_message_and_is_audited_with_its_actor(
    sim: Simulation, kestrel: TenantContext
) -> None:
    lease = sim.request_lease(kestrel, offering())
    assert [hint[2:] for hint in sim.messages] == [("broker.reconcile_lease", lease.pk, kestrel.tenant.pk)]
    with tenant_scope(kestrel.tenant.pk):
        event = AuditEvent.objects.get(action="lease.request", subject_id=lease.pk)
    assert (event.actor_id, event.actor_label) == (kestrel.actor.id, kestrel.actor.label)


def test_a_lease_request_beyond_quota_is_refused_and_uses_no_quota(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.UNITS, 6_999)
    with pytest.raises(QuotaExceeded) as refusal:
        sim.request_lease(kestrel, offering("whole-gpu"))
    assert "is 7 units; 0 are in use, 7 free, and this needs 7" in refusal.value.detail
    assert refusal.value.extra["quota"]["limit"] == 6_999
    assert count(kestrel) == 0
    assert kestrel.quota_used() == 0
    assert not sim.messages


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * 1000}, "name"),
        ({"name": "a\x07b"}, "name"),
        ({"name": "a\u2028b"}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "a\u200bb"}, "name"),
        ({"quantity": 0}, "quantity"),
        ({"quantity": 10**9}, "quantity"),
        ({"max_duration_s": 59}, "max_duration_s"),
        ({"max_duration_s": 10**9}, "max_duration_s"),
        ({"end_date": NOW - timedelta(days=1)}, "end_date"),
        ({"end_date": NOW + timedelta(seconds=30)}, "end_date"),
        ({"end_date": NOW + MAX_END_DATE_AHEAD + timedelta(seconds=1)}, "end_date"),
        ({"end_date": datetime(9999, 12, 31, 23, 59, tzinfo=ZoneInfo("America/New_York"))}, "end_date"),
    ],
)
def test_an_invalid_request_is_refused_with_its_field(
    sim: Simulation, kestrel: TenantContext, wanted: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidValue) as refusal:
        sim.request_lease(kestrel, offering(), **wanted)
    assert refusal.value.field == field
    assert refusal.value.fix.text
    assert count(kestrel) == 0


def test_unknown_and_draft_offerings_are_both_not_found(sim: Simulation, kestrel: TenantContext) -> None:
    drafted = offering()
    Offering.objects.filter(pk=drafted.pk).update(state="draft")
    with pytest.raises(ObjectNotFound):
        sim.request_lease(kestrel, drafted)
    with pytest.raises(ObjectNotFound):
        sim.request_lease(kestrel, Offering(pk="off_none"))


def test_a_lease_of_a_retired_offering_is_refused(sim: Simulation, kestrel: TenantContext) -> None:
    Offering.objects.update(state="retired")
    with pytest.raises(OfferingRetired):
        sim.request_lease(kestrel, offering())


def test_a_same_node_gang_too_large_for_any_node_is_refused_with_the_maximum(
    sim: Simulation, kestrel: TenantContext
) -> None:
    with pytest.raises(PlacementImpossible) as refusal:
        sim.request_lease(kestrel, offering("whole-gpu"), quantity=9, same_node=True)
    assert refusal.value.extra["most"] == 8
    assert "or allow several nodes" in refusal.value.fix.text


def test_a_gang_too_large_for_its_region_is_refused_with_the_maximum(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(PlacementImpossible) as refusal:
        sim.request_lease(kestrel, offering("1g.10gb"), quantity=8 * 7 + 1)
    assert refusal.value.extra["most"] == 56


def test_a_gang_that_fills_an_empty_node_is_accepted(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"), quantity=8, same_node=True)
    assert len(held_allocations(lease)) == 8


def test_a_same_node_gang_in_a_region_without_gpus_is_refused(sim: Simulation) -> None:
    create_gpus(1)
    owner = create_tenant()
    Offering.objects.update(region="nowhere")
    with pytest.raises(PlacementImpossible) as refusal:
        sim.request_lease(owner, offering("whole-gpu"), quantity=2, same_node=True)
    assert refusal.value.extra["most"] == 0


def test_a_lease_of_two_shares_is_refused(sim: Simulation, kestrel: TenantContext) -> None:
    """A pod gets one replica; a kubelet would refuse two."""
    with pytest.raises(InvalidValue, match="not twice the compute"):
        sim.request_lease(kestrel, soft_offering(), quantity=2)
    assert count(kestrel) == 0
