"""Budget holds during relocation, restart, new budgets and failures."""

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from billing.models import Budget, Hold
from billing.services.funds.holds import hold_settlement
from billing.services.invoicing import metering
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases.lifecycle import stop_and_start
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import budget_totals, create_budget, exact_month_totals, find_hold, run_metering
from tests.billing.histories import EURO, set_price
from tests.simulation import Simulation, TenantContext, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db
HOUR = 3600


def taken_cents(budget: Budget) -> int:
    """Return what is taken of the current month, in cents, rounded up."""
    ((num, _),) = exact_month_totals(budget).values()
    return -(-num * 100 // (HOUR * EURO))


def relocate_lease(sim: Simulation, lease: Lease) -> None:
    """Move a lease from its GPU to another one."""
    with tenant_scope(lease.tenant_id):
        stop_and_start.pause_lease(
            reload_lease(lease), reason=EndReason.BY_OPERATOR, cause="moved", actor=SYSTEM, now=sim.now
        )
    sim.clock.at += timedelta(seconds=5)
    run_metering(sim)
    with tenant_scope(lease.tenant_id):
        row = reload_lease(lease)
        row.transition(LeaseState.STOPPED, LeaseState.QUEUED, now=sim.now, cause="moved")
        row.transition(LeaseState.PROVISIONING, now=sim.now, cause="moved", generation=row.generation + 1)
    sim.clock.at += timedelta(seconds=5)
    run_metering(sim)


@pytest.mark.parametrize("lowered", [False, True])
def test_a_relocated_lease_keeps_its_hold_and_is_not_ended(kestrel: TenantContext, lowered: bool) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 300, sim)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=3 * HOUR, volume=sim.create_volume(kestrel).pk)
        sim.run(600)
        if lowered:
            create_budget(kestrel, 50, sim)
        with mock.patch.object(hold_settlement.relocation_steps, "started_relocation", return_value=object()):
            relocate_lease(sim, lease)
        assert reload_lease(lease).state == LeaseState.PROVISIONING
        assert taken_cents(budget) == 300


def test_a_new_child_budget_frees_nothing_of_the_parent_budget(kestrel: TenantContext) -> None:
    child = kestrel.create_project("docking")
    with simulate() as sim:
        root = create_budget(kestrel, 100, sim)
        lease = sim.create_lease(kestrel, offering(), project=child)
        sim.run(1800)
        sim.release_lease(lease)
        sim.run(20)
        below = create_budget(kestrel, 500, sim, child)
        assert taken_cents(root) == 100
        spent, held, left = budget_totals(below, sim)
        assert spent + held + left == 500
        assert taken_cents(below) == 50, "what ran and is yet to be charged"


def test_a_new_budget_counts_uncharged_usage_of_ended_leases(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.create_lease(kestrel, offering())
        sim.run(1800)
        sim.release_lease(lease)
        sim.run(30)
        sim.clock.at += timedelta(hours=3)
        budget = create_budget(kestrel, 100, sim)
        assert taken_cents(budget) == 50
        run_metering(sim)
        sim.clock.at += timedelta(minutes=6)
        run_metering(sim)
        assert taken_cents(budget) == 50
        hold = find_hold(lease)
        assert hold is not None
        assert hold.settled_at is not None


def test_a_hold_until_a_fractional_end_is_cut_to_whole_seconds(kestrel: TenantContext) -> None:
    with simulate() as sim:
        end = sim.now + timedelta(hours=2, microseconds=500)
        budget = create_budget(kestrel, 3000, sim)
        sim.create_lease(kestrel, offering(), max_duration_s=3 * HOUR, end_date=end)
        set_price(offering(), 2 * EURO, since=sim.now.replace(microsecond=0) + timedelta(minutes=40))
        sim.clock.at += timedelta(minutes=6)
        run_metering(sim)
        assert budget_totals(budget, sim)[2] > 2600


def test_a_restart_before_the_last_seconds_are_charged_holds_them_too(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 300, sim)
        end = sim.now + timedelta(hours=3)
        lease = sim.create_lease(
            kestrel, offering(), max_duration_s=3 * HOUR, end_date=end, volume=sim.create_volume(kestrel).pk
        )
        sim.run(7200)
        sim.stop_lease(lease, kestrel)
        sim.run(15)
        sim.start_lease(lease, kestrel)
        assert taken_cents(budget) in (299, 300)
        run_metering(sim)
        assert taken_cents(budget) in (299, 300)


def test_a_lease_whose_hold_fails_does_not_block_the_other_holds(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 500, sim)
        ill, well = sim.create_lease(kestrel, offering()), sim.create_lease(kestrel, offering())
        sim.release_lease(well)
        sim.run(60)
        real = hold_settlement._update_holds

        def odd(lease: Lease, now: Any) -> None:
            if lease.pk == ill.pk:
                raise ValueError("odd")
            real(lease, now)

        with mock.patch.object(hold_settlement, "_update_holds", odd):
            lease_rating.rate_all_leases(now=sim.now)
            assert hold_settlement.settle_holds(now=sim.now) == 2
            assert hold_settlement.settle_holds(now=sim.now) == 0, "it is pushed back"
        settled = find_hold(well)
        assert settled is not None
        assert settled.settled_at == sim.now
        assert taken_cents(budget) in (100, 101)


def test_a_lease_admitted_without_the_budget_gate_is_still_counted(kestrel: TenantContext, settings: Any) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        gates = settings.LEASE_GATES
        settings.LEASE_GATES = gates[:2]
        lease = sim.request_lease(kestrel, offering(), quantity=3)
        settings.LEASE_GATES = gates
        metering.run_metering(now=sim.now)
        assert taken_cents(budget) == 300
        assert reload_lease(lease).state == LeaseState.QUEUED, "whoever was let in stays"


def test_a_lease_that_became_active_in_time_is_not_ended_for_budget(kestrel: TenantContext) -> None:
    with simulate() as sim:
        create_budget(kestrel, 100, sim)
        lease = sim.request_lease(kestrel, offering())
        set_price(offering(), 2 * EURO, since=sim.now + timedelta(seconds=1))
        sim.run(60)
        assert reload_lease(lease).state == LeaseState.ACTIVE
        sim.clock.at += timedelta(minutes=6)
        run_metering(sim)
        assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_hold_check_without_changes_writes_nothing(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        sim.create_lease(kestrel, offering())
        run_metering(sim)
        sim.clock.at += timedelta(minutes=6)
        with mock.patch("billing.services.funds.holds.budget_holds.write_budget_holds") as written:
            run_metering(sim)
        assert list(written.call_args.args[1]) == []
        with tenant_scope(budget.tenant_id):
            assert Hold.objects.get().checked_at == sim.now
