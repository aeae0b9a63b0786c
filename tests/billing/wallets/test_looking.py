"""What a look at a lease reads and marks, and what it does not count."""

from datetime import timedelta

import pytest

from billing.gateways.simulated import SimulatedGateway
from billing.models import BillingPeriod, BudgetMonth, Hold, Wallet
from billing.services import periods
from billing.services.funds.holds import months_of
from billing.services.funds.looking import look_at
from billing.services.wallets import money
from ports import payments
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import budget, meter
from tests.billing.payments.bills import heard
from tests.billing.topups.tills import collect, top_up
from tests.billing.wallets.pockets import COIN, credit
from tests.world import Home, alive, fresh, offering

pytestmark = pytest.mark.django_db


def test_a_hold_that_was_settled_is_open_again_once_its_lease_is_looked_at(kestrel: Home) -> None:
    with alive() as life:
        budget(kestrel, 1000, life)
        lease = life.lease(kestrel, offering())
        life.run(600)
        life.release(lease)
        life.go(10)
        meter(life)
        lease = fresh(lease)
        with as_tenant(kestrel.tenant.pk):
            assert Hold.objects.get().settled_at == life.now
            Hold.objects.update(seq=0)
            look = look_at(lease, now=life.now + timedelta(minutes=1))
            found = Hold.objects.get()
        assert (look.hold.id, look.hold.new) == (found.pk, False)
        assert (found.settled_at, found.seq) == (None, lease.seq)
        assert found.looked_at == life.now + timedelta(minutes=1)


def test_a_first_look_opens_a_hold_in_the_currency_of_its_tenant(kestrel: Home) -> None:
    with alive() as life:
        lease = life.ask(kestrel, offering())
        with as_tenant(kestrel.tenant.pk):
            look = look_at(lease, now=life.now)
            found = Hold.objects.get()
        assert (look.hold.id, look.hold.new, look.hold.covers_until) == (found.pk, True, None)
        assert (found.currency, found.opened_at, found.seq) == ("EUR", life.now, lease.seq)


def test_money_of_another_currency_is_not_counted(kestrel: Home) -> None:
    with alive() as life:
        credit(kestrel, 500)
        with payments.through(SimulatedGateway()), heard():
            collect(top_up(kestrel, 300))
        with as_tenant(kestrel.tenant.pk):
            rooms = {
                currency: money.room(Wallet(tenant=kestrel.tenant, currency=currency), until=life.now)
                for currency in ("EUR", "USD")
            }
        assert rooms == {"EUR": 800 * COIN, "USD": 0}


def test_no_month_is_made_that_was_over_before_its_budget_was_set(kestrel: Home) -> None:
    with alive() as life:
        set_ = budget(kestrel, 100, life)
        with as_tenant(kestrel.tenant.pk):
            periods.ensure(kestrel.tenant, since=life.now - timedelta(days=70), until=life.now)
            all_ = list(BillingPeriod.objects.values_list("pk", flat=True))
            months_of(kestrel.project.path, all_)
            made = set(BudgetMonth.objects.filter(budget=set_).values_list("period__label", flat=True))
        assert (len(all_), made) == (3, {"2026-11"})
