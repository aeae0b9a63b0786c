"""Evictions by operators, and changes to offerings."""

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Node, Offering, OfferingState
from broker.services.inventory import offering_admin
from broker.services.leases.lifecycle import eviction, termination
from broker.services.reports import queue_health
from ports import outbox
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue, ObjectNotFound, StaleVersion
from tenants.services.rls import staff_scope
from tests import simulation
from tests.simulation import OPERATOR, Simulation, TenantContext

pytestmark = pytest.mark.django_db


def test_an_operator_evicts_a_lease_with_a_recorded_reason(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    eviction.evict_lease(lease.pk, why="  the GPU   is replaced ", actor=OPERATOR, now=sim.now)
    step = simulation.transitions_of(lease)[-1]
    assert (step.after, step.reason, step.cause) == ("releasing", "by_operator", "the GPU is replaced")
    assert (step.actor_kind, step.actor_label) == ("staff", OPERATOR.label)


def test_evicting_a_queued_lease_releases_it(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, simulation.offering("1g.10gb"))
    eviction.evict_lease(lease.pk, why="asked for by mistake", actor=OPERATOR, now=sim.now)
    assert simulation.reload_lease(lease).state == LeaseState.RELEASED


def test_evicting_an_unknown_lease_is_not_found(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(ObjectNotFound):
        eviction.evict_lease("lse_nobody", why="cleaning", actor=OPERATOR, now=sim.now)


@pytest.mark.parametrize("why", ["", "   ", "x" * 151, "a\x00b"])
def test_an_eviction_with_an_invalid_reason_is_refused(sim: Simulation, kestrel: TenantContext, why: str) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    with pytest.raises(InvalidValue):
        eviction.evict_lease(lease.pk, why=why, actor=OPERATOR, now=sim.now)
    assert simulation.reload_lease(lease).state == LeaseState.ACTIVE


def test_a_node_eviction_releases_only_the_leases_of_that_node(sim: Simulation, kestrel: TenantContext) -> None:
    tern = simulation.create_tenant("Tern")
    first, second = (
        sim.create_lease(kestrel, simulation.offering("1g.10gb")),
        sim.create_lease(tern, simulation.offering("whole-gpu")),
    )
    node = simulation.node_of(first)
    simulation.create_fleet(simulation.SimulatedRack("west-2", "eu-west", "A100-80GB", nodes=1, gpus_per_node=1))
    elsewhere = sim.create_lease(kestrel, simulation.offering("whole-gpu", model="A100-80GB"))
    ended = eviction.evict_node_leases(node, why="power works", actor=OPERATOR, now=sim.now)
    assert {lease.pk for lease in ended} == {first.pk, second.pk}
    assert {simulation.reload_lease(lease).state for lease in (first, second)} == {LeaseState.RELEASING}
    assert simulation.reload_lease(elsewhere).state == LeaseState.ACTIVE
    assert eviction.evict_node_leases(node, why="power works", actor=OPERATOR, now=sim.now) == []


def test_a_node_eviction_skips_a_lease_that_already_ended(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim.create_lease(kestrel, simulation.offering("1g.10gb"))

    def over(*_: object, **__: object) -> None:
        raise termination.LeaseAlreadyOver("it ended", fix="nothing")

    monkeypatch.setattr(termination, "release_lease", over)
    assert eviction.evict_node_leases(Node.objects.get(), why="power works", actor=OPERATOR, now=sim.now) == []


def test_renaming_an_offering_twice_is_audited_once(sim: Simulation, kestrel: TenantContext) -> None:
    offering = simulation.offering("whole-gpu")
    offering_admin.rename_offering(offering, label=" H100,  whole ", actor=OPERATOR, now=sim.now)
    offering_admin.rename_offering(offering, label="H100, whole", actor=OPERATOR, now=sim.now)
    assert Offering.objects.get(pk=offering.pk).label == "H100, whole"
    with staff_scope():
        events = AuditEvent.objects.filter(action="offering.rename")
        assert [event.detail["after"] for event in events] == ["H100, whole"]


@pytest.mark.parametrize("label", ["", "x" * 121, "a\x07b"])
def test_an_invalid_offering_label_is_refused(kestrel: TenantContext, label: str) -> None:
    with pytest.raises(InvalidValue):
        offering_admin.rename_offering(
            simulation.offering("whole-gpu"), label=label, actor=OPERATOR, now=simulation.NOW
        )


def test_an_offering_can_be_published_and_retired_but_not_drafted_again(kestrel: TenantContext) -> None:
    offering = simulation.offering("whole-gpu")
    for state in (OfferingState.RETIRED, OfferingState.PUBLISHED, OfferingState.PUBLISHED):
        offering_admin.set_offering_state(offering, state, actor=OPERATOR, now=simulation.NOW)
        assert Offering.objects.get(pk=offering.pk).state == state
    with pytest.raises(offering_admin.OfferingStateConflict):
        offering_admin.set_offering_state(offering, OfferingState.DRAFT, actor=OPERATOR, now=simulation.NOW)


def test_renaming_a_stale_offering_is_refused(kestrel: TenantContext) -> None:
    mine, theirs = simulation.offering("whole-gpu"), simulation.offering("whole-gpu")
    offering_admin.rename_offering(theirs, label="Theirs", actor=OPERATOR, now=simulation.NOW)
    with pytest.raises(StaleVersion):
        offering_admin.rename_offering(mine, label="Mine", actor=OPERATOR, now=simulation.NOW)


def test_queue_health_counts_messages_due_and_overdue_leases(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "is_broker_reachable", lambda: True)
    with staff_scope():
        seen = queue_health.measure_queue_health(now=sim.now)
    assert (seen.messages, seen.oldest, seen.due_leases, seen.overdue_leases, seen.is_late) == (0, None, 0, 0, False)
    sim.create_lease(kestrel, simulation.offering("whole-gpu"), LeaseState.PROVISIONING)
    outbox._insert("broker.reconcile_lease", "lse_x", "", sim.now)
    sim.clock.at += 2 * queue_health.LATE_AFTER
    with staff_scope():
        seen = queue_health.measure_queue_health(now=sim.now)
    assert (seen.messages, seen.oldest, seen.due_leases, seen.overdue_leases) == (1, 2 * queue_health.LATE_AFTER, 1, 1)
    assert seen.is_late
    assert seen.valkey
    assert seen.last_observed_at is None
    active = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    with staff_scope():
        assert queue_health.measure_queue_health(now=sim.now).last_observed_at == active.seen_at
    assert Lease.objects.count() == 0  # only staff see the leases of other tenants
