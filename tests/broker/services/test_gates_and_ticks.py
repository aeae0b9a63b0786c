"""The doors a lease must pass, and the marks that close a metering segment."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import LazySettings

from broker.domain.states import LeaseState
from broker.models import Lease, NodeState
from broker.services import gates
from broker.services.leases.ticks import tick
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant
from tests.world import Life, cards, fresh, home, ledger, node_of, offering, set_node

called: list[str] = []


def first(lease: Lease, *, now: object) -> None:
    called.append(f"first {lease.name}")


def never(lease: Lease, *, now: object) -> None:
    called.append("never")
    raise Refused("No.", fix="Ask nicely.")


HERE = "tests.broker.services.test_gates_and_ticks"


def test_gates_are_passed_in_the_order_of_the_setting(life: Life, settings: LazySettings) -> None:
    cards(1)
    settings.LEASE_GATES = (f"{HERE}.first", f"{HERE}.never", f"{HERE}.first")
    kestrel = home()
    called.clear()
    import sys

    here = sys.modules[__name__]
    gates._load.cache_clear()
    sys.modules[HERE] = here
    with pytest.raises(Refused, match="No"):
        life.ask(kestrel, offering(), name="job")
    assert called == ["first job", "never"]


def test_a_gate_that_is_not_there_stops_the_start(settings: LazySettings) -> None:
    settings.LEASE_GATES = ("broker.services.quotas.gate", "broker.services.quotas.misspelt")
    with pytest.raises(ImportError, match="misspelt"):
        apps.get_app_config("broker").ready()


def test_the_broker_lives_with_the_quota_gate_alone(life: Life, settings: LazySettings) -> None:
    cards(1)
    settings.LEASE_GATES = ("broker.services.quotas.gate",)
    assert fresh(life.lease(home(), offering())).state == LeaseState.ACTIVE


def active(life: Life) -> Lease:
    """Return an active lease that was seen alive after everything these tests cut."""
    cards(1)
    lease = life.lease(home(), offering(), max_duration_s=3600)
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=life.now + timedelta(days=1))
    return fresh(lease)


def tick_at(lease: Lease, after_s: int) -> bool:
    with as_tenant(lease.tenant_id):
        at = fresh(lease).active_at
        assert at
        return tick(fresh(lease), at=at + timedelta(seconds=after_s))


def test_a_tick_closes_one_segment_and_begins_the_next(life: Life) -> None:
    lease = active(life)
    assert tick_at(lease, 600)
    last = ledger(lease)[-1]
    assert (last.before, last.after, last.cause) == ("active", "active", "metering tick")
    assert lease.active_at
    assert last.at == lease.active_at + timedelta(seconds=600)


def test_a_tick_twice_or_in_the_past_does_nothing(life: Life) -> None:
    lease = active(life)
    assert tick_at(lease, 600)
    assert not tick_at(lease, 600)
    assert not tick_at(lease, 300)


def test_no_tick_goes_beyond_the_end_of_a_lease(life: Life) -> None:
    lease = active(life)
    assert tick_at(lease, 7200)
    assert ledger(lease)[-1].at == lease.ends_at


def test_only_what_is_active_ticks(life: Life) -> None:
    lease = active(life)
    life.release(lease)
    assert not tick_at(lease, 600)


def test_a_silent_node_ticks_no_more(life: Life) -> None:
    lease = active(life)
    set_node(node_of(lease), NodeState.LOST, life)
    life.run(5)
    assert not tick_at(lease, 600)


def test_a_tick_that_meets_another_step_gives_way(life: Life) -> None:
    lease = active(life)
    with as_tenant(lease.tenant_id):
        stale = fresh(lease)
        assert tick_at(lease, 600)
        assert lease.active_at
        assert not tick(stale, at=lease.active_at + timedelta(seconds=700))


def test_a_lease_moves_only_inside_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    from broker.models import leases

    class Outside:
        in_atomic_block = False

    monkeypatch.setattr(leases, "connection", Outside())
    with pytest.raises(RuntimeError, match="inside its tenant's transaction"):
        Lease(state="queued").move(LeaseState.PROVISIONING, now=None)  # type: ignore[arg-type]
