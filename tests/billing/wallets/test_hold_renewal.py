"""Renewal of holds, and funds and months that do not count."""

from datetime import timedelta

import pytest

from billing.gateways.simulated import SimulatedGateway
from billing.models import BillingPeriod, BudgetMonth, Hold, Wallet
from billing.services.funds.costs.hold_context import open_lease_hold
from billing.services.funds.holds.budget_holds import ensure_budget_months
from billing.services.funds.wallets import wallet_balances
from billing.services.periods import billing_periods
from ports import payments
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import create_budget, run_metering
from tests.billing.payments.payable_invoices import captured_messages
from tests.billing.topups.topup_setup import process_topup, request_topup
from tests.billing.wallets.prepaid_tenants import COIN, give_credit
from tests.simulation import TenantContext, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db


def test_renewal_reopens_a_settled_hold(kestrel: TenantContext) -> None:
    with simulate() as sim:
        create_budget(kestrel, 1000, sim)
        lease = sim.create_lease(kestrel, offering())
        sim.run(600)
        sim.release_lease(lease)
        sim.run_with_sweeps(10)
        run_metering(sim)
        lease = reload_lease(lease)
        with tenant_scope(kestrel.tenant.pk):
            assert Hold.objects.get().settled_at == sim.now
            Hold.objects.update(seq=0)
            look = open_lease_hold(lease, now=sim.now + timedelta(minutes=1))
            found = Hold.objects.get()
        assert (look.hold.id, look.hold.created) == (found.pk, False)
        assert (found.settled_at, found.seq) == (None, lease.seq)
        assert found.checked_at == sim.now + timedelta(minutes=1)


def test_the_first_check_opens_a_hold_in_the_tenants_currency(kestrel: TenantContext) -> None:
    with simulate() as sim:
        lease = sim.request_lease(kestrel, offering())
        with tenant_scope(kestrel.tenant.pk):
            look = open_lease_hold(lease, now=sim.now)
            found = Hold.objects.get()
        assert (look.hold.id, look.hold.created, look.hold.covers_until) == (found.pk, True, None)
        assert (found.currency, found.opened_at, found.seq) == ("EUR", sim.now, lease.seq)


def test_funds_in_another_currency_are_not_counted(kestrel: TenantContext) -> None:
    with simulate() as sim:
        give_credit(kestrel, 500)
        with payments.using_gateway(SimulatedGateway()), captured_messages():
            process_topup(request_topup(kestrel, 300))
        with tenant_scope(kestrel.tenant.pk):
            rooms = {
                currency: wallet_balances.wallet_room(Wallet(tenant=kestrel.tenant, currency=currency), until=sim.now)
                for currency in ("EUR", "USD")
            }
        assert rooms == {"EUR": 800 * COIN, "USD": 0}


def test_no_budget_month_is_created_for_months_before_the_budget(kestrel: TenantContext) -> None:
    with simulate() as sim:
        set_ = create_budget(kestrel, 100, sim)
        with tenant_scope(kestrel.tenant.pk):
            billing_periods.ensure_periods(kestrel.tenant, since=sim.now - timedelta(days=70), until=sim.now)
            all_ = list(BillingPeriod.objects.values_list("pk", flat=True))
            ensure_budget_months(kestrel.project.path, all_)
            made = set(BudgetMonth.objects.filter(budget=set_).values_list("period__label", flat=True))
        assert (len(all_), made) == (3, {"2026-11"})
