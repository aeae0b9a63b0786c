"""Budget holds of requested, running, stopped and ended leases."""

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from billing.models import HoldPart
from billing.services.funds.budgets import budget_settings
from billing.services.funds.costs import max_costs
from billing.services.funds.costs.max_costs import LeaseUsage, MaxCost, lease_usages
from billing.services.funds.holds import hold_settlement
from billing.services.funds.holds.budget_holds import BudgetExceeded
from billing.services.quotes import quote_answers
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle import extension
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import budget_totals, create_budget, find_hold, month_totals, run_metering
from tests.billing.histories import EURO, set_price, utc
from tests.simulation import NOW, Simulation, TenantContext, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db
HOUR = 3600


def test_a_lease_holds_its_maximum_cost_before_it_queues(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 500, sim)
        sim.request_lease(kestrel, offering(), quantity=2, max_duration_s=2 * HOUR)
        assert budget_totals(budget, sim) == (0, 400, 100)


def test_a_lease_beyond_its_budget_is_refused_and_holds_nothing(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 500, sim)
        sim.request_lease(kestrel, offering(), quantity=4)
        with pytest.raises(BudgetExceeded) as refusal:
            sim.request_lease(kestrel, offering(), quantity=2)
        assert refusal.value.detail == (
            "The budget of this project for 2026-11 is €5.00; €1.00 of it is left,"
            " and this lease could cost €2.00 in that month."
        )
        assert refusal.value.extra == {"budget": budget.pk}
        assert budget_totals(budget, sim) == (0, 400, 100)
    with tenant_scope(kestrel.tenant.pk):
        assert Lease.objects.count() == HoldPart.objects.count() == 1


def test_the_cost_in_a_budget_refusal_is_rounded_up(kestrel: TenantContext) -> None:
    with simulate() as sim:
        create_budget(kestrel, 50, sim)
        with pytest.raises(BudgetExceeded, match=r"could cost €1\.01 in that month"):
            sim.request_lease(kestrel, offering(), max_duration_s=HOUR + 1)


def test_lease_usages_do_not_depend_on_the_order_of_rows(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.create_lease(kestrel, offering())
        sim.run(60)
        sim.release_lease(lease)
        run_metering(sim)
        with tenant_scope(kestrel.tenant.pk):
            found = lease_usages([lease.pk])[lease.pk]
            real = max_costs.sql_statements.fetch_rows
            with mock.patch.object(max_costs.sql_statements, "fetch_rows", lambda *requests: real(*requests)[::-1]):
                assert lease_usages([lease.pk]) == {lease.pk: found}
        assert found.used == found.charged > 0


def test_every_budget_up_to_the_root_project_must_have_room(kestrel: TenantContext) -> None:
    child, other = kestrel.create_project("docking"), kestrel.create_project("folding")
    with simulate() as sim:
        root, below = create_budget(kestrel, 300, sim), create_budget(kestrel, 200, sim, child)
        sim.request_lease(kestrel, offering(), project=child, quantity=2)
        assert (budget_totals(root, sim), budget_totals(below, sim)) == ((0, 200, 100), (0, 200, 0))
        with pytest.raises(BudgetExceeded, match="budget of this project"):
            sim.request_lease(kestrel, offering(), project=child)
        sim.request_lease(kestrel, offering(), project=other)
        with pytest.raises(BudgetExceeded, match="budget of a parent project"):
            sim.request_lease(kestrel, offering(), project=other)
        assert (budget_totals(root, sim), budget_totals(below, sim)) == ((0, 300, 0), (0, 200, 0))


def test_a_released_lease_spends_its_usage_and_frees_the_rest_of_its_hold(
    kestrel: TenantContext,
) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 400, sim)
        lease = sim.create_lease(kestrel, offering(), quantity=4)
        started = reload_lease(lease).active_at
        assert started is not None
        sim.run((started.replace(microsecond=0) + timedelta(minutes=45) - sim.now).total_seconds())
        sim.release_lease(lease)
        assert budget_totals(budget, sim) == (300, 100, 0), "held until its last second is charged"
        sim.run(60)
        assert reload_lease(lease).state == LeaseState.RELEASED
        run_metering(sim)
        assert budget_totals(budget, sim) == (300, 0, 100)
        hold = find_hold(lease)
        assert hold is not None
        assert hold.settled_at == sim.now


def test_a_stopped_lease_holds_only_its_usage_until_it_starts_again(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        lease = sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk)
        sim.run(1200)
        sim.stop_lease(lease, kestrel)
        run_metering(sim)
        assert budget_totals(budget, sim) == (33, 67, 0), "it may yet go on"
        sim.run(60)
        run_metering(sim)
        assert budget_totals(budget, sim) == (33, 1, 66), "stopped it holds what it used, rounded up to a cent"
        sim.start_lease(lease, kestrel)
        assert budget_totals(budget, sim) == (33, 67, 0)
        run_metering(sim)
        assert budget_totals(budget, sim) == (33, 67, 0)


def test_an_extension_holds_the_additional_cost_or_is_refused(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 300, sim)
        lease = sim.create_lease(kestrel, offering())
        extend(kestrel, sim, lease, 2 * HOUR)
        assert budget_totals(budget, sim) == (0, 300, 0)
        with pytest.raises(BudgetExceeded):
            extend(kestrel, sim, lease, HOUR)
        assert reload_lease(lease).max_duration_s == 3 * HOUR
        assert budget_totals(budget, sim) == (0, 300, 0)
        run_metering(sim)
        assert budget_totals(budget, sim) == (0, 300, 0)


def extend(owner: TenantContext, sim: Simulation, lease: Lease, more_s: int) -> None:
    with tenant_scope(owner.tenant.pk):
        extension.extend_lease(lease, more_s=more_s, actor=owner.actor, now=sim.now)


def test_a_lease_without_a_budget_holds_nothing(kestrel: TenantContext) -> None:
    with simulate() as sim:
        assert find_hold(sim.request_lease(kestrel, offering())) is None
        assert hold_settlement.settle_holds(now=sim.now) == 0


def test_a_lease_across_the_month_end_holds_a_part_in_each_month(kestrel: TenantContext) -> None:
    with simulate(utc("2026-11-30 22:00:00")) as sim:
        budget = create_budget(kestrel, 425, sim)  # it may begin up to a quarter of an hour later
        lease = sim.create_lease(kestrel, offering(), max_duration_s=6 * HOUR)
        started = reload_lease(lease).active_at
        assert started is not None
        late = int((started.replace(microsecond=0) - utc("2026-11-30 22:00:00")).total_seconds())
        sim.run(600)
        run_metering(sim)
        with tenant_scope(kestrel.tenant.pk):
            nums = [int(num) // EURO for num in HoldPart.objects.order_by("month").values_list("num", flat=True)]
        assert nums == [2 * HOUR - late, 4 * HOUR + late]
        with pytest.raises(BudgetExceeded, match="for 2026-12"):
            sim.request_lease(kestrel, offering(), max_duration_s=4 * HOUR)
        assert set(months_of(budget)) == {"2026-11", "2026-12"}


def months_of(budget: Any) -> dict[str, Any]:
    with tenant_scope(budget.tenant_id):
        return {row.period.label: row for row in budget.months.select_related("period")}


def test_the_hold_of_a_queued_lease_moves_to_the_next_month(kestrel: TenantContext) -> None:
    with simulate(utc("2026-11-30 23:30:00")) as sim:
        budget = create_budget(kestrel, 100, sim)
        lease = sim.request_lease(kestrel, offering())
        assert month_totals(budget) == {"2026-11": (50, 0), "2026-12": (75, 0)}
        sim.clock.at = utc("2026-11-30 23:51:00")
        run_metering(sim)
        assert month_totals(budget) == {"2026-11": (15, 0), "2026-12": (100, 0)}
        sim.clock.at = utc("2026-12-01 00:00:00")
        run_metering(sim)
        assert month_totals(budget) == {"2026-11": (0, 0), "2026-12": (100, 0)}
        assert find_hold(lease) is not None


def test_a_queued_lease_that_no_longer_fits_the_budget_is_ended(kestrel: TenantContext) -> None:
    with simulate() as sim:
        create_budget(kestrel, 100, sim)
        lease = sim.request_lease(kestrel, offering())
        set_price(offering(), 2 * EURO, since=sim.now + timedelta(seconds=1))
        sim.clock.at += timedelta(minutes=5)
        run_metering(sim)
        found = reload_lease(lease)
        assert (found.state, found.end_reason) == (LeaseState.RELEASED, EndReason.BUDGET)


def test_a_running_lease_continues_over_budget_after_a_price_increase(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        lease = sim.create_lease(kestrel, offering())
        started = reload_lease(lease).active_at
        assert started is not None
        set_price(offering(), 3 * EURO, since=started.replace(microsecond=0) + timedelta(minutes=30))
        sim.run(300)
        run_metering(sim)
        assert reload_lease(lease).state == LeaseState.ACTIVE
        assert budget_totals(budget, sim) == (8, 192, 0)


def test_a_quoted_lease_holds_the_quoted_price(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        wanted = {"max_duration_s": HOUR, "name": "promised"}
        with tenant_scope(kestrel.tenant.pk):
            answer = quote_answers.answer_quote(
                LeaseRequest(offering_id=offering().pk, **wanted),
                project=kestrel.project,
                actor=kestrel.actor,
                now=sim.now,
            )
        assert budget_totals(budget, sim) == (0, 0, 100), "a quote takes nothing"
        assert answer.refusal is None
        assert answer.offer is not None
        set_price(offering(), 9 * EURO, since=sim.now + timedelta(seconds=1))
        sim.clock.at += timedelta(seconds=2)
        sim.request_lease(kestrel, offering(), quote=answer.offer.sealed, **wanted)
        assert budget_totals(budget, sim) == (0, 100, 0)


def test_a_quote_reports_an_exceeded_budget(kestrel: TenantContext) -> None:
    with simulate() as sim:
        create_budget(kestrel, 99, sim)
        with tenant_scope(kestrel.tenant.pk):
            answer = quote_answers.answer_quote(
                LeaseRequest(offering_id=offering().pk, max_duration_s=HOUR, name="a"),
                project=kestrel.project,
                actor=kestrel.actor,
                now=sim.now,
            )
        assert isinstance(answer.refusal, BudgetExceeded)


def test_a_fixed_end_date_limits_the_held_cost(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        sim.request_lease(kestrel, offering(), max_duration_s=9 * HOUR, end_date=NOW + timedelta(minutes=30))
        assert budget_totals(budget, sim) == (0, 50, 50)


def test_a_zero_budget_refuses_every_lease(kestrel: TenantContext) -> None:
    with simulate() as sim:
        create_budget(kestrel, 0, sim)
        with pytest.raises(BudgetExceeded, match=r"is €0\.00; €0\.00 of it is left"):
            sim.request_lease(kestrel, offering())


def test_a_new_budget_counts_past_spend_and_existing_leases(kestrel: TenantContext) -> None:
    with simulate() as sim:
        over = sim.create_lease(kestrel, offering(), LeaseState.RELEASED)
        sim.run(7200)
        run_metering(sim)
        stopped = sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk)
        sim.stop_lease(stopped, kestrel)
        sim.run(60)
        run_metering(sim)
        sim.request_lease(kestrel, offering())
        budget = create_budget(kestrel, 1000, sim)
        spent, held, left = budget_totals(budget, sim)
        with tenant_scope(kestrel.tenant.pk):
            charged = sum(sum(use.by_month.values()) for use in lease_usages([over.pk, stopped.pk]).values())
        assert spent == charged * 100 // (HOUR * EURO) or spent == charged * 100 // (HOUR * EURO) + 1
        assert held in (100, 101)
        assert spent + held + left in (1000, 1001)
        assert find_hold(over) is None
        run_metering(sim)
        assert budget_totals(budget, sim)[0] == spent


def test_lowering_a_budget_below_its_holds_ends_no_running_lease(kestrel: TenantContext) -> None:
    with simulate() as sim:
        create_budget(kestrel, 300, sim)
        lease = sim.create_lease(kestrel, offering())
        budget = create_budget(kestrel, 50, sim)
        assert budget.version == 2
        assert budget_totals(budget, sim) == (0, 100, 0)
        sim.run(600)
        run_metering(sim)
        assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_removed_budget_limits_no_lease(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        lease = sim.create_lease(kestrel, offering())
        with tenant_scope(kestrel.tenant.pk):
            budget_settings.remove_budget(budget, actor=kestrel.actor, now=sim.now)
        sim.request_lease(kestrel, offering(), quantity=4)
        sim.run(600)
        run_metering(sim)
        assert reload_lease(lease).state == LeaseState.ACTIVE
        again = create_budget(kestrel, 1000, sim)
        assert budget_totals(again, sim) == (83, 417, 500)


def test_a_fully_used_lease_needs_exactly_its_charged_amount(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 500, sim)
        lease = sim.create_lease(kestrel, offering())
        use = LeaseUsage(HOUR, HOUR, {1: HOUR * EURO})
        with tenant_scope(kestrel.tenant.pk):
            found = reload_lease(lease)
            assert MaxCost(kestrel.tenant, [found]).needed(found, use, now=sim.now) == use.by_month
        assert budget_totals(budget, sim)[2] == 400


def test_an_ended_lease_keeps_its_hold_until_its_last_second_is_charged(kestrel: TenantContext) -> None:
    with simulate() as sim:
        budget = create_budget(kestrel, 100, sim)
        lease = sim.create_lease(kestrel, offering())
        sim.run(36)
        sim.release_lease(lease)
        sim.run(60)
        assert hold_settlement.settle_holds(now=sim.now) == 1
        hold = find_hold(lease)
        assert hold is not None
        assert hold.settled_at is None
        assert budget_totals(budget, sim)[2] == 0
        run_metering(sim)
        sim.run(301)
        run_metering(sim)
        assert budget_totals(budget, sim)[2] == 99
