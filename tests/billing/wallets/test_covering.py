"""Who pays beforehand runs on money that is there: an hour ahead is set aside, and no second without it is paid."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import Grant, Invoice, WalletPart
from billing.services import closing, periods, proofs
from billing.services.funds.holds import BudgetExceeded, Overdue
from billing.services.funds.looking import look_at
from billing.services.ledger import books
from billing.services.wallets import covering
from billing.services.wallets.covering import PaymentRequired
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services import reconcile
from broker.services.leases import growing
from tenants.services.walls import as_staff, as_tenant
from tests.billing.budgets.purses import budget, meter, stands
from tests.billing.histories import EURO, reprice
from tests.billing.tax.papers import LUMEN, taxed
from tests.billing.wallets.pockets import available, closed, credit, hold, prepaid, set_terms, taken
from tests.world import Home, Life, alive, fresh, offering

pytestmark = pytest.mark.django_db
HOUR = 3600
SLACK = 2  # cents for rounding


def runs(life: Life, minutes: int) -> None:
    """Let time pass, with a look each minute."""
    for _ in range(minutes):
        life.run(60)
        meter(life)


def test_without_money_nothing_begins_and_nothing_is_taken(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        with pytest.raises(PaymentRequired) as refusal:
            life.ask(kestrel, offering(), max_duration_s=9 * HOUR)
        assert refusal.value.detail == (
            "€1.02 have to be there, with tax, for the hour ahead; €0.00 of the wallet are free, €1.02 are missing."
        )
        assert (refusal.value.status, refusal.value.code) == (402, "payment-required")
        assert taken(kestrel) == 0
        with as_tenant(kestrel.tenant.pk):
            assert not Lease.objects.exists()


def test_an_hour_ahead_is_set_aside_and_follows_the_lease(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 500)
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        assert (taken(kestrel), available(kestrel)) == (100 + SLACK, 398)
        runs(life, 60)
        assert 195 <= taken(kestrel) <= 200 + 2 * SLACK
        until = hold(lease.pk, kestrel).covers_until
        assert until is not None
        assert timedelta(minutes=50) < until - life.now <= timedelta(hours=1)
        life.release(fresh(lease))
        runs(life, 7)
        assert 100 <= taken(kestrel) <= 104


def test_a_lease_that_ends_sooner_sets_aside_no_more_than_it_may_come_to(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 500)
        life.ask(kestrel, offering(), max_duration_s=HOUR // 2)
        assert taken(kestrel) == 50 + SLACK


def test_when_money_runs_out_the_lease_ends_before_its_cover_does(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 250)
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        runs(life, 180)
        found = fresh(lease)
        assert (found.state, found.end_reason) == (LeaseState.RELEASED, EndReason.UNPAID)
        assert 200 <= taken(kestrel) <= 250
        life.clock.at = life.clock.at.replace(month=12, day=1, hour=1)
        meter(life)
        invoice = closed(kestrel, life)
        assert invoice is not None
        assert (invoice.to_pay, taken(kestrel)) == (0, 0)
        assert invoice.total <= 250
        with as_tenant(kestrel.tenant.pk):
            assert Grant.objects.count() == 1  # nothing was ours to pay


def test_what_a_slow_stop_used_beyond_the_money_we_pay(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 150)
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        life.run(5 * HOUR)  # nobody looked
        runs(life, 10)
        assert fresh(lease).end_reason == EndReason.UNPAID
        assert taken(kestrel) <= 150
        with as_tenant(kestrel.tenant.pk):  # however often somebody looks, it is given once
            given = list(Grant.objects.values_list("pk", flat=True))
            for _ in range(3):
                covering.close(look_at(fresh(lease), now=life.now), now=life.now)
            assert list(Grant.objects.values_list("pk", flat=True)) == given
        life.clock.at = life.clock.at.replace(month=12, day=1, hour=1)
        meter(life)
        invoice = closed(kestrel, life)
        assert invoice is not None
        assert invoice.total > 500
        assert invoice.to_pay == 0
        with as_tenant(kestrel.tenant.pk):
            ours = Grant.objects.exclude(minor=150).get()
        assert ours.minor >= invoice.total - 150
        assert "was ended late" in ours.reason
        with as_staff():
            assert books.reckoned()[1] == ()
            assert [proof.name for proof in proofs.check(now=life.now) if not proof.holds] == []


def test_what_ran_on_over_the_end_of_a_month_is_ours_before_its_invoice_is_made(kestrel: Home) -> None:
    with alive() as life:
        life.clock.at = life.clock.at.replace(day=30, hour=20, minute=0)
        prepaid(kestrel)
        credit(kestrel, 300)
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        done = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        life.run(60)
        life.release(done)
        life.run(5 * HOUR)  # nobody looked until an hour after the end of the month
        reconcile.look_at_active(now=life.now)
        assert closing.close_due(now=life.now).months == 1
        with as_tenant(kestrel.tenant.pk):
            invoice = Invoice.objects.get(period__label="2026-11")
            assert invoice.total >= 400
            assert invoice.to_pay == 0
            assert sum(each.minor for each in Grant.objects.exclude(minor=300)) >= invoice.total - 300
        assert fresh(lease).end_reason == EndReason.UNPAID
        assert fresh(done).state == LeaseState.RELEASED
        with as_staff():
            assert books.reckoned()[1] == ()
            assert [proof.name for proof in proofs.check(now=life.now) if not proof.holds] == []


def test_what_has_money_for_another_hour_goes_on_over_the_end_of_a_month(kestrel: Home) -> None:
    with alive() as life:
        life.clock.at = life.clock.at.replace(day=30, hour=23, minute=30)
        prepaid(kestrel)
        credit(kestrel, 900)
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        life.run(HOUR)
        reconcile.look_at_active(now=life.now)
        assert closing.close_due(now=life.now).months == 1
        assert fresh(lease).state == LeaseState.ACTIVE
        with as_tenant(kestrel.tenant.pk):
            assert not Grant.objects.exclude(minor=900).exists()


def test_a_month_in_which_nothing_was_used_is_closed_as_it_is(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        with as_tenant(kestrel.tenant.pk):
            periods.ensure(kestrel.tenant, since=life.now, until=life.now)
        life.clock.at = life.clock.at.replace(month=12, day=1, hour=1)
        assert closing.close_due(now=life.now).months == 1
        with as_tenant(kestrel.tenant.pk):
            assert not Invoice.objects.exists()


def test_a_slow_look_takes_what_there_is_money_for(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 1000)
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        life.run(3 * HOUR)
        runs(life, 2)
        assert fresh(lease).state == LeaseState.ACTIVE
        assert 390 <= taken(kestrel) <= 410


def test_a_lease_that_is_extended_and_one_that_starts_again_pass_the_wallet(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 150)
        lease = life.lease(kestrel, offering(), max_duration_s=HOUR // 2)
        with as_tenant(kestrel.tenant.pk):
            growing.extend(lease, more_s=HOUR // 2, actor=kestrel.actor, now=life.now)
        assert taken(kestrel) == 100 + SLACK
        with pytest.raises(PaymentRequired, match="are missing"):
            life.ask(kestrel, offering())


def test_budget_and_wallet_both_have_to_have_room(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 150)
        limit = budget(kestrel, 300, life)
        with pytest.raises(BudgetExceeded):
            life.ask(kestrel, offering(), max_duration_s=4 * HOUR)
        life.ask(kestrel, offering(), max_duration_s=2 * HOUR)
        with pytest.raises(PaymentRequired):
            life.ask(kestrel, offering(), max_duration_s=HOUR)
        assert (stands(limit, life), taken(kestrel)) == ((0, 200, 100), 100 + SLACK)


def test_who_is_suspended_begins_nothing_new_and_what_runs_goes_on(kestrel: Home) -> None:
    with alive() as life:
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        set_terms(kestrel, standing="suspended")
        with pytest.raises(Overdue, match="new here") as refusal:
            life.ask(kestrel, offering())
        assert (refusal.value.status, refusal.value.code) == (402, "payment-overdue")
        runs(life, 15)
        assert fresh(lease).state == LeaseState.ACTIVE
        set_terms(kestrel, standing="grace")
        life.ask(kestrel, offering())


def test_what_runs_is_covered_once_its_tenant_pays_beforehand(kestrel: Home) -> None:
    with alive() as life:
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        waiting = life.lease(kestrel, offering(), LeaseState.QUEUED, max_duration_s=9 * HOUR)
        credit(kestrel, 1000)
        runs(life, 10)
        assert taken(kestrel) == 0
        prepaid(kestrel, now=life.now)
        meter(life)
        assert taken(kestrel) > 200
        assert waiting.pk != lease.pk
        set_terms(kestrel, now=life.now)
        runs(life, 6)
        assert taken(kestrel) == 0


def test_what_runs_ends_when_its_tenant_pays_beforehand_and_has_no_money(kestrel: Home) -> None:
    with alive() as life:
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        waiting = life.lease(kestrel, offering(), LeaseState.QUEUED, quantity=8, max_duration_s=9 * HOUR)
        prepaid(kestrel, now=life.now)
        runs(life, 2)
        assert {fresh(lease).end_reason, fresh(waiting).end_reason} == {EndReason.UNPAID}


def test_what_was_used_before_its_tenant_paid_beforehand_is_not_ours_to_pay(kestrel: Home) -> None:
    with alive() as life:
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        runs(life, 60)
        prepaid(kestrel, now=life.now)
        runs(life, 10)
        assert fresh(lease).end_reason == EndReason.UNPAID
        assert taken(kestrel) >= 100
        with as_tenant(kestrel.tenant.pk):
            assert not Grant.objects.exists()


def test_a_price_that_rises_is_covered_or_the_lease_ends(kestrel: Home) -> None:
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 160)
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        reprice(offering(), 20 * EURO, since=life.now + timedelta(minutes=20))
        runs(life, 40)
        assert fresh(lease).end_reason == EndReason.UNPAID
        assert taken(kestrel) <= 160


def test_an_invoice_takes_its_month_off_the_wallet_and_the_money_with_it(kestrel: Home) -> None:
    with alive() as life:
        life.clock.at = life.clock.at.replace(day=30, hour=22, minute=30)
        prepaid(kestrel, now=life.now)
        credit(kestrel, 1000, now=life.now)
        lease = life.lease(kestrel, offering(), max_duration_s=5 * HOUR)
        runs(life, 97)
        life.go(30)
        before = available(kestrel, life.now)
        invoice = closed(kestrel, life)
        assert invoice is not None
        assert invoice.to_pay == 0
        assert before <= available(kestrel, life.now) <= before + 4
        with as_tenant(kestrel.tenant.pk):
            assert {part.period.label for part in WalletPart.objects.select_related("period")} == {"2026-12"}
        runs(life, 30)
        assert fresh(lease).state == LeaseState.ACTIVE
        with as_tenant(kestrel.tenant.pk):  # a look later, too: what is invoiced is not taken once more
            assert {part.period.label for part in WalletPart.objects.select_related("period")} == {"2026-12"}


def test_what_ended_before_its_tenant_paid_beforehand_is_taken_with_what_runs(kestrel: Home) -> None:
    with alive() as life:
        ended = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        runs(life, 60)
        life.release(fresh(ended))
        stopped = life.lease(kestrel, offering(), max_duration_s=9 * HOUR, volume=life.volume(kestrel).pk)
        runs(life, 30)
        life.stop(stopped, kestrel)
        runs(life, 1)
        prepaid(kestrel, now=life.now)
        assert 150 <= taken(kestrel) <= 156
        credit(kestrel, 1000)
        runs(life, 10)
        assert 150 <= taken(kestrel) <= 156
        assert fresh(stopped).state == LeaseState.STOPPED
        with as_tenant(kestrel.tenant.pk):
            assert not Grant.objects.exclude(minor=1000).exists()


def test_what_waits_over_the_end_of_a_month_holds_for_the_month_in_which_it_begins(kestrel: Home) -> None:
    with alive() as life:
        life.clock.at = life.clock.at.replace(day=30, hour=23, minute=50)
        prepaid(kestrel, now=life.now)
        credit(kestrel, 1000, now=life.now)
        life.ask(kestrel, offering(), quantity=8, same_node=True, max_duration_s=HOUR)
        with as_tenant(kestrel.tenant.pk):
            assert WalletPart.objects.count() == 2
        before = taken(kestrel)
        life.clock.at += timedelta(minutes=12)
        meter(life)
        with as_tenant(kestrel.tenant.pk):
            assert WalletPart.objects.get().period.label == "2026-12"
        assert taken(kestrel) == 802 < before


def test_money_is_set_aside_with_the_highest_tax_that_may_be_owed(kestrel: Home, settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    taxed("DE", 19)
    taxed("DE", 7, category="reduced")
    with alive() as life:
        prepaid(kestrel)
        credit(kestrel, 1000)
        life.ask(kestrel, offering(), max_duration_s=HOUR)
        assert taken(kestrel) == 119 + SLACK
