"""Gates of lease requests, and metering ticks."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import LazySettings

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, NodeState
from broker.services.leases import lease_requests
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope
from tests.simulation import (
    Simulation,
    create_gpus,
    create_tenant,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    transitions_of,
)

called: list[str] = []


def first(lease: Lease, *, now: object) -> None:
    called.append(f"first {lease.name}")


def never(lease: Lease, *, now: object) -> None:
    called.append("never")
    raise ProblemError("No.", fix="Ask nicely.")


HERE = "tests.broker.services.leases.test_gates_and_metering_ticks"


def test_gates_are_checked_in_the_order_of_the_setting(sim: Simulation, settings: LazySettings) -> None:
    create_gpus(1)
    settings.LEASE_GATES = (f"{HERE}.first", f"{HERE}.never", f"{HERE}.first")
    kestrel = create_tenant()
    called.clear()
    import sys

    here = sys.modules[__name__]
    lease_requests._load_cached.cache_clear()
    sys.modules[HERE] = here
    with pytest.raises(ProblemError, match="No"):
        sim.request_lease(kestrel, offering(), name="job")
    assert called == ["first job", "never"]


def test_a_missing_gate_stops_the_application_start(settings: LazySettings) -> None:
    settings.LEASE_GATES = ("broker.services.quotas.gate", "broker.services.quotas.misspelt")
    with pytest.raises(ImportError, match="misspelt"):
        apps.get_app_config("broker").ready()


def test_leases_work_with_the_quota_gate_alone(sim: Simulation, settings: LazySettings) -> None:
    create_gpus(1)
    settings.LEASE_GATES = ("broker.services.quotas.gate",)
    assert reload_lease(sim.create_lease(create_tenant(), offering())).state == LeaseState.ACTIVE


def active(sim: Simulation) -> Lease:
    """Return an active lease that was last seen after all ticks of these tests."""
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), max_duration_s=3600)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=sim.now + timedelta(days=1))
    return reload_lease(lease)


def tick_at(lease: Lease, after_s: int) -> bool:
    with tenant_scope(lease.tenant_id):
        at = reload_lease(lease).active_at
        assert at
        return reload_lease(lease).add_metering_tick(at=at + timedelta(seconds=after_s))


def test_a_metering_tick_closes_one_segment_and_begins_the_next(sim: Simulation) -> None:
    lease = active(sim)
    assert tick_at(lease, 600)
    last = transitions_of(lease)[-1]
    assert (last.before, last.after, last.cause) == ("active", "active", "metering tick")
    assert lease.active_at
    assert last.at == lease.active_at + timedelta(seconds=600)


def test_a_repeated_or_past_metering_tick_does_nothing(sim: Simulation) -> None:
    lease = active(sim)
    assert tick_at(lease, 600)
    assert not tick_at(lease, 600)
    assert not tick_at(lease, 300)


def test_a_metering_tick_never_exceeds_the_end_of_a_lease(sim: Simulation) -> None:
    lease = active(sim)
    assert tick_at(lease, 7200)
    assert transitions_of(lease)[-1].at == lease.ends_at


def test_only_an_active_lease_is_metered(sim: Simulation) -> None:
    lease = active(sim)
    sim.release_lease(lease)
    assert not tick_at(lease, 600)


def test_a_lease_on_a_lost_node_is_not_metered(sim: Simulation) -> None:
    lease = active(sim)
    set_node_state(node_of(lease), NodeState.LOST, sim)
    sim.run(5)
    assert not tick_at(lease, 600)


def test_a_metering_tick_of_a_stale_lease_is_skipped(sim: Simulation) -> None:
    lease = active(sim)
    with tenant_scope(lease.tenant_id):
        stale = reload_lease(lease)
        assert tick_at(lease, 600)
        assert lease.active_at
        assert not stale.add_metering_tick(at=lease.active_at + timedelta(seconds=700))


def test_a_lease_changes_state_only_inside_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    from broker.models import leases

    class Outside:
        in_atomic_block = False

    monkeypatch.setattr(leases, "connection", Outside())
    with pytest.raises(RuntimeError, match="inside its tenant's transaction"):
        Lease(state="queued").transition(LeaseState.PROVISIONING, now=None)  # type: ignore[arg-type]
