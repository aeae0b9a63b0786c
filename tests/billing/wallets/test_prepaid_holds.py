"""Prepaid holds: one hour ahead, without funds, and at month end."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import Grant, Invoice, WalletPart
from billing.services.funds.costs.hold_context import open_lease_hold
from billing.services.funds.holds.budget_holds import BudgetExceeded, PaymentOverdue
from billing.services.funds.wallets import prepaid_holds
from billing.services.funds.wallets.prepaid_holds import PaymentRequired
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import invariant_checks, ledger_balances
from billing.services.periods import billing_periods
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases.lifecycle import extension
from broker.services.reconciler import lease_reconciler
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.budgets.budget_setup import budget_totals, create_budget, run_metering
from tests.billing.histories import EURO, set_price
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate
from tests.billing.wallets.prepaid_tenants import (
    available_cents,
    close_prepaid_month,
    find_prepaid_hold,
    give_credit,
    held_cents,
    make_prepaid,
    set_payment_terms,
)
from tests.simulation import Simulation, TenantContext, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db
HOUR = 3600
SLACK = 2  # cents for rounding


def run_minutes(sim: Simulation, minutes: int) -> None:
    """Let minutes pass, with a check each minute."""
    for _ in range(minutes):
        sim.run(60)
        run_metering(sim)


def test_an_empty_wallet_refuses_a_lease_and_holds_nothing(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        with pytest.raises(PaymentRequired) as refusal:
            sim.request_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        assert refusal.value.detail == (
            "€1.02 including tax is required for the next hour; €0.00 is available in the wallet, €1.02 is missing."
        )
        assert (refusal.value.status, refusal.value.code) == (402, "payment-required")
        assert held_cents(kestrel) == 0
        with tenant_scope(kestrel.tenant.pk):
            assert not Lease.objects.exists()


@pytest.mark.deep
def test_a_prepaid_lease_holds_one_hour_ahead(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 500)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        assert (held_cents(kestrel), available_cents(kestrel)) == (100 + SLACK, 398)
        run_minutes(sim, 60)
        assert 195 <= held_cents(kestrel) <= 200 + 2 * SLACK
        until = find_prepaid_hold(lease.pk, kestrel).covers_until
        assert until is not None
        assert timedelta(minutes=50) < until - sim.now <= timedelta(hours=1)
        sim.release_lease(reload_lease(lease))
        run_minutes(sim, 7)
        assert 100 <= held_cents(kestrel) <= 104


def test_a_short_lease_holds_at_most_its_maximum_cost(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 500)
        sim.request_lease(kestrel, offering(), max_duration_s=HOUR // 2)
        assert held_cents(kestrel) == 50 + SLACK


@pytest.mark.deep
def test_a_lease_without_funds_ends_before_its_hold_is_used_up(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 250)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        run_minutes(sim, 180)
        found = reload_lease(lease)
        assert (found.state, found.end_reason) == (LeaseState.RELEASED, EndReason.UNPAID)
        assert 200 <= held_cents(kestrel) <= 250
        sim.clock.at = sim.clock.at.replace(month=12, day=1, hour=1)
        run_metering(sim)
        invoice = close_prepaid_month(kestrel, sim)
        assert invoice is not None
        assert (invoice.to_pay, held_cents(kestrel)) == (0, 0)
        assert invoice.total <= 250
        with tenant_scope(kestrel.tenant.pk):
            assert Grant.objects.count() == 1  # nothing was ours to pay


def test_usage_of_a_late_stop_beyond_the_wallet_is_written_off(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 150)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        sim.run(5 * HOUR)  # nobody looked
        run_minutes(sim, 10)
        assert reload_lease(lease).end_reason == EndReason.UNPAID
        assert held_cents(kestrel) <= 150
        with tenant_scope(kestrel.tenant.pk):  # however often somebody looks, it is given once
            given = list(Grant.objects.values_list("pk", flat=True))
            for _ in range(3):
                prepaid_holds.settle_hold(open_lease_hold(reload_lease(lease), now=sim.now), now=sim.now)
            assert list(Grant.objects.values_list("pk", flat=True)) == given
        sim.clock.at = sim.clock.at.replace(month=12, day=1, hour=1)
        run_metering(sim)
        invoice = close_prepaid_month(kestrel, sim)
        assert invoice is not None
        assert invoice.total > 500
        assert invoice.to_pay == 0
        with tenant_scope(kestrel.tenant.pk):
            ours = Grant.objects.exclude(minor=150).get()
        assert ours.minor >= invoice.total - 150
        assert "was ended late" in ours.reason
        with staff_scope():
            assert ledger_balances.recomputed_trial_balance()[1] == ()
            assert [proof.name for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds] == []


def test_usage_beyond_the_hold_is_written_off_before_the_month_is_invoiced(kestrel: TenantContext) -> None:
    with simulate() as sim:
        sim.clock.at = sim.clock.at.replace(day=30, hour=20, minute=0)
        make_prepaid(kestrel)
        give_credit(kestrel, 300)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        done = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        sim.run(60)
        sim.release_lease(done)
        sim.run(5 * HOUR)  # nobody looked until an hour after the end of the month
        lease_reconciler.check_active_leases(now=sim.now)
        assert close_month.close_due_months(now=sim.now).months == 1
        with tenant_scope(kestrel.tenant.pk):
            invoice = Invoice.objects.get(period__label="2026-11")
            assert invoice.total >= 400
            assert invoice.to_pay == 0
            assert sum(each.minor for each in Grant.objects.exclude(minor=300)) >= invoice.total - 300
        assert reload_lease(lease).end_reason == EndReason.UNPAID
        assert reload_lease(done).state == LeaseState.RELEASED
        with staff_scope():
            assert ledger_balances.recomputed_trial_balance()[1] == ()
            assert [proof.name for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds] == []


def test_a_funded_lease_continues_past_the_end_of_the_month(kestrel: TenantContext) -> None:
    with simulate() as sim:
        sim.clock.at = sim.clock.at.replace(day=30, hour=23, minute=30)
        make_prepaid(kestrel)
        give_credit(kestrel, 900)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        sim.run(HOUR)
        lease_reconciler.check_active_leases(now=sim.now)
        assert close_month.close_due_months(now=sim.now).months == 1
        assert reload_lease(lease).state == LeaseState.ACTIVE
        with tenant_scope(kestrel.tenant.pk):
            assert not Grant.objects.exclude(minor=900).exists()


def test_a_prepaid_month_without_usage_closes_without_an_invoice(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        with tenant_scope(kestrel.tenant.pk):
            billing_periods.ensure_periods(kestrel.tenant, since=sim.now, until=sim.now)
        sim.clock.at = sim.clock.at.replace(month=12, day=1, hour=1)
        assert close_month.close_due_months(now=sim.now).months == 1
        with tenant_scope(kestrel.tenant.pk):
            assert not Invoice.objects.exists()


def test_a_late_hold_renewal_covers_the_hours_already_used(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 1000)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        sim.run(3 * HOUR)
        run_minutes(sim, 2)
        assert reload_lease(lease).state == LeaseState.ACTIVE
        assert 390 <= held_cents(kestrel) <= 410


def test_extensions_and_new_leases_are_checked_against_the_wallet(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 150)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=HOUR // 2)
        with tenant_scope(kestrel.tenant.pk):
            extension.extend_lease(lease, more_s=HOUR // 2, actor=kestrel.actor, now=sim.now)
        assert held_cents(kestrel) == 100 + SLACK
        with pytest.raises(PaymentRequired, match="is missing"):
            sim.request_lease(kestrel, offering())


def test_budget_and_wallet_limits_both_apply(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 150)
        limit = create_budget(kestrel, 300, sim)
        with pytest.raises(BudgetExceeded):
            sim.request_lease(kestrel, offering(), max_duration_s=4 * HOUR)
        sim.request_lease(kestrel, offering(), max_duration_s=2 * HOUR)
        with pytest.raises(PaymentRequired):
            sim.request_lease(kestrel, offering(), max_duration_s=HOUR)
        assert (budget_totals(limit, sim), held_cents(kestrel)) == ((0, 200, 100), 100 + SLACK)


def test_a_suspended_tenant_starts_no_lease_but_keeps_its_running_ones(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        set_payment_terms(kestrel, account_status="suspended")
        with pytest.raises(PaymentOverdue, match="new here") as refusal:
            sim.request_lease(kestrel, offering())
        assert (refusal.value.status, refusal.value.code) == (402, "payment-overdue")
        run_minutes(sim, 15)
        assert reload_lease(lease).state == LeaseState.ACTIVE
        set_payment_terms(kestrel, account_status="grace")
        sim.request_lease(kestrel, offering())


def test_running_leases_are_held_once_their_tenant_becomes_prepaid(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        waiting = sim.create_lease(kestrel, offering(), LeaseState.QUEUED, max_duration_s=9 * HOUR)
        give_credit(kestrel, 1000)
        run_minutes(sim, 10)
        assert held_cents(kestrel) == 0
        make_prepaid(kestrel, now=sim.now)
        run_metering(sim)
        assert held_cents(kestrel) > 200
        assert waiting.pk != lease.pk
        set_payment_terms(kestrel, now=sim.now)
        run_minutes(sim, 6)
        assert held_cents(kestrel) == 0


def test_leases_end_when_their_tenant_becomes_prepaid_without_funds(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        waiting = sim.create_lease(kestrel, offering(), LeaseState.QUEUED, quantity=8, max_duration_s=9 * HOUR)
        make_prepaid(kestrel, now=sim.now)
        run_minutes(sim, 2)
        assert {reload_lease(lease).end_reason, reload_lease(waiting).end_reason} == {EndReason.UNPAID}


def test_usage_before_the_change_to_prepaid_is_not_written_off(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        run_minutes(sim, 60)
        make_prepaid(kestrel, now=sim.now)
        run_minutes(sim, 10)
        assert reload_lease(lease).end_reason == EndReason.UNPAID
        assert held_cents(kestrel) >= 100
        with tenant_scope(kestrel.tenant.pk):
            assert not Grant.objects.exists()


def test_a_lease_ends_when_the_wallet_cannot_cover_a_higher_price(kestrel: TenantContext) -> None:
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 160)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        set_price(offering(), 20 * EURO, since=sim.now + timedelta(minutes=20))
        run_minutes(sim, 40)
        assert reload_lease(lease).end_reason == EndReason.UNPAID
        assert held_cents(kestrel) <= 160


def test_an_invoice_settles_the_holds_of_its_month_from_the_wallet(kestrel: TenantContext) -> None:
    with simulate() as sim:
        sim.clock.at = sim.clock.at.replace(day=30, hour=22, minute=30)
        make_prepaid(kestrel, now=sim.now)
        give_credit(kestrel, 1000, now=sim.now)
        lease = sim.create_lease(kestrel, offering(), max_duration_s=5 * HOUR)
        run_minutes(sim, 97)
        sim.run_with_sweeps(30)
        before = available_cents(kestrel, sim.now)
        invoice = close_prepaid_month(kestrel, sim)
        assert invoice is not None
        assert invoice.to_pay == 0
        assert before <= available_cents(kestrel, sim.now) <= before + 4
        with tenant_scope(kestrel.tenant.pk):
            assert {part.period.label for part in WalletPart.objects.select_related("period")} == {"2026-12"}
        run_minutes(sim, 30)
        assert reload_lease(lease).state == LeaseState.ACTIVE
        with tenant_scope(kestrel.tenant.pk):  # a look later, too: what is invoiced is not taken once more
            assert {part.period.label for part in WalletPart.objects.select_related("period")} == {"2026-12"}


def test_leases_that_ended_before_prepayment_are_held_with_the_running_ones(kestrel: TenantContext) -> None:
    with simulate() as sim:
        ended = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR)
        run_minutes(sim, 60)
        sim.release_lease(reload_lease(ended))
        stopped = sim.create_lease(kestrel, offering(), max_duration_s=9 * HOUR, volume=sim.create_volume(kestrel).pk)
        run_minutes(sim, 30)
        sim.stop_lease(stopped, kestrel)
        run_minutes(sim, 1)
        make_prepaid(kestrel, now=sim.now)
        assert 150 <= held_cents(kestrel) <= 156
        give_credit(kestrel, 1000)
        run_minutes(sim, 10)
        assert 150 <= held_cents(kestrel) <= 156
        assert reload_lease(stopped).state == LeaseState.STOPPED
        with tenant_scope(kestrel.tenant.pk):
            assert not Grant.objects.exclude(minor=1000).exists()


def test_a_lease_queued_over_the_end_of_a_month_holds_for_the_next_month_only(kestrel: TenantContext) -> None:
    with simulate() as sim:
        sim.clock.at = sim.clock.at.replace(day=30, hour=23, minute=50)
        make_prepaid(kestrel, now=sim.now)
        give_credit(kestrel, 1000, now=sim.now)
        sim.request_lease(kestrel, offering(), quantity=8, same_node=True, max_duration_s=HOUR)
        with tenant_scope(kestrel.tenant.pk):
            assert WalletPart.objects.count() == 2
        before = held_cents(kestrel)
        sim.clock.at += timedelta(minutes=12)
        run_metering(sim)
        with tenant_scope(kestrel.tenant.pk):
            assert WalletPart.objects.get().period.label == "2026-12"
        assert held_cents(kestrel) == 802 < before


def test_a_prepaid_hold_includes_tax_at_the_highest_possible_rate(kestrel: TenantContext, settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)
    set_tax_rate("DE", 7, category="reduced")
    with simulate() as sim:
        make_prepaid(kestrel)
        give_credit(kestrel, 1000)
        sim.request_lease(kestrel, offering(), max_duration_s=HOUR)
        assert held_cents(kestrel) == 119 + SLACK
