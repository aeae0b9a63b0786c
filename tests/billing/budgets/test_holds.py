"""A lease queues only with its money set aside; what it does not use is free again, and what it used is exact."""

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from billing.models import HoldPart
from billing.services import quotes
from billing.services.funds import budgets, needs, settling
from billing.services.funds.holds import BudgetExceeded
from billing.services.funds.needs import Outlook, Use, uses
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases import growing
from broker.services.leases.request import Wanted
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import budget, hold_of, meter, months, stands
from tests.billing.histories import EURO, at, reprice
from tests.world import NOW, Home, Life, alive, fresh, offering

pytestmark = pytest.mark.django_db
HOUR = 3600


def test_a_lease_sets_aside_all_that_it_may_come_to_before_it_queues(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 500, life)
        life.ask(kestrel, offering(), quantity=2, max_duration_s=2 * HOUR)
        assert stands(purse, life) == (0, 400, 100)


def test_a_lease_beyond_its_budget_holds_nothing(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 500, life)
        life.ask(kestrel, offering(), quantity=4)
        with pytest.raises(BudgetExceeded) as refusal:
            life.ask(kestrel, offering(), quantity=2)
        assert refusal.value.detail == (
            "The budget of this project for 2026-11 is €5.00; €1.00 of it is left,"
            " and this could come to €2.00 of that month."
        )
        assert refusal.value.extra == {"budget": purse.pk}
        assert stands(purse, life) == (0, 400, 100)
    with as_tenant(kestrel.tenant.pk):
        assert Lease.objects.count() == HoldPart.objects.count() == 1


def test_what_a_refusal_says_is_asked_for_is_rounded_up(kestrel: Home) -> None:
    with alive() as life:
        budget(kestrel, 50, life)
        with pytest.raises(BudgetExceeded, match=r"could come to €1\.01 of that month"):
            life.ask(kestrel, offering(), max_duration_s=HOUR + 1)


def test_what_leases_used_is_told_in_whatever_order_postgresql_answers(kestrel: Home) -> None:
    with alive() as life:
        lease = life.lease(kestrel, offering())
        life.run(60)
        life.release(lease)
        meter(life)
        with as_tenant(kestrel.tenant.pk):
            told = uses([lease.pk])[lease.pk]
            real = needs.database.rows
            with mock.patch.object(needs.database, "rows", lambda *asked: real(*asked)[::-1]):
                assert uses([lease.pk]) == {lease.pk: told}
        assert told.used == told.charged > 0


def test_every_budget_from_the_project_up_to_the_root_must_have_room(kestrel: Home) -> None:
    child, other = kestrel.child("docking"), kestrel.child("folding")
    with alive() as life:
        root, below = budget(kestrel, 300, life), budget(kestrel, 200, life, child)
        life.ask(kestrel, offering(), project=child, quantity=2)
        assert (stands(root, life), stands(below, life)) == ((0, 200, 100), (0, 200, 0))
        with pytest.raises(BudgetExceeded, match="budget of this project"):
            life.ask(kestrel, offering(), project=child)
        life.ask(kestrel, offering(), project=other)
        with pytest.raises(BudgetExceeded, match="budget of a project above this one"):
            life.ask(kestrel, offering(), project=other)
        assert (stands(root, life), stands(below, life)) == ((0, 300, 0), (0, 200, 0))


def test_what_a_lease_did_not_use_is_free_again_and_what_it_used_is_spent_to_the_second(
    kestrel: Home,
) -> None:
    with alive() as life:
        purse = budget(kestrel, 400, life)
        lease = life.lease(kestrel, offering(), quantity=4)
        started = fresh(lease).active_at
        assert started is not None
        life.run((started.replace(microsecond=0) + timedelta(minutes=45) - life.now).total_seconds())
        life.release(lease)
        assert stands(purse, life) == (300, 100, 0), "held until its last second is charged"
        life.run(60)
        assert fresh(lease).state == LeaseState.RELEASED
        meter(life)
        assert stands(purse, life) == (300, 0, 100)
        hold = hold_of(lease)
        assert hold is not None
        assert hold.settled_at == life.now


def test_what_runs_is_captured_as_it_is_charged(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        lease = life.lease(kestrel, offering(), volume=life.volume(kestrel).pk)
        life.run(1200)
        life.stop(lease, kestrel)
        meter(life)
        assert stands(purse, life) == (33, 67, 0), "it may yet go on"
        life.run(60)
        meter(life)
        assert stands(purse, life) == (33, 1, 66), "stopped it holds what it used, rounded up to a cent"
        life.start(lease, kestrel)
        assert stands(purse, life) == (33, 67, 0)
        meter(life)
        assert stands(purse, life) == (33, 67, 0)


def test_an_extension_takes_the_difference_or_nothing(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 300, life)
        lease = life.lease(kestrel, offering())
        extend(kestrel, life, lease, 2 * HOUR)
        assert stands(purse, life) == (0, 300, 0)
        with pytest.raises(BudgetExceeded):
            extend(kestrel, life, lease, HOUR)
        assert fresh(lease).max_duration_s == 3 * HOUR
        assert stands(purse, life) == (0, 300, 0)
        meter(life)
        assert stands(purse, life) == (0, 300, 0)


def extend(owner: Home, life: Life, lease: Lease, more_s: int) -> None:
    with as_tenant(owner.tenant.pk):
        growing.extend(lease, more_s=more_s, actor=owner.actor, now=life.now)


def test_where_there_is_no_budget_nothing_is_held(kestrel: Home) -> None:
    with alive() as life:
        assert hold_of(life.ask(kestrel, offering())) is None
        assert settling.look_again(now=life.now) == 0


def test_each_month_has_its_own_part_of_a_lease_that_crosses_its_border(kestrel: Home) -> None:
    with alive(at("2026-11-30 22:00:00")) as life:
        purse = budget(kestrel, 425, life)  # it may begin up to a quarter of an hour later
        lease = life.lease(kestrel, offering(), max_duration_s=6 * HOUR)
        started = fresh(lease).active_at
        assert started is not None
        late = int((started.replace(microsecond=0) - at("2026-11-30 22:00:00")).total_seconds())
        life.run(600)
        meter(life)
        with as_tenant(kestrel.tenant.pk):
            nums = [
                int(num) // EURO for num in HoldPart.objects.order_by("month").values_list("num", flat=True)
            ]
        assert nums == [2 * HOUR - late, 4 * HOUR + late]
        with pytest.raises(BudgetExceeded, match="for 2026-12"):
            life.ask(kestrel, offering(), max_duration_s=4 * HOUR)
        assert set(months_of(purse)) == {"2026-11", "2026-12"}


def months_of(purse: Any) -> dict[str, Any]:
    with as_tenant(purse.tenant_id):
        return {row.period.label: row for row in purse.months.select_related("period")}


def test_what_waits_over_the_border_of_a_month_takes_its_money_along(kestrel: Home) -> None:
    with alive(at("2026-11-30 23:30:00")) as life:
        purse = budget(kestrel, 100, life)
        lease = life.ask(kestrel, offering())
        assert months(purse) == {"2026-11": (50, 0), "2026-12": (75, 0)}
        life.clock.at = at("2026-11-30 23:51:00")
        meter(life)
        assert months(purse) == {"2026-11": (15, 0), "2026-12": (100, 0)}
        life.clock.at = at("2026-12-01 00:00:00")
        meter(life)
        assert months(purse) == {"2026-11": (0, 0), "2026-12": (100, 0)}
        assert hold_of(lease) is not None


def test_what_waits_and_has_no_room_any_longer_is_ended(kestrel: Home) -> None:
    with alive() as life:
        budget(kestrel, 100, life)
        lease = life.ask(kestrel, offering())
        reprice(offering(), 2 * EURO, since=life.now + timedelta(seconds=1))
        life.clock.at += timedelta(minutes=5)
        meter(life)
        found = fresh(lease)
        assert (found.state, found.end_reason) == (LeaseState.RELEASED, EndReason.BUDGET)


def test_what_runs_goes_on_when_its_price_rises_and_its_budget_says_so(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        lease = life.lease(kestrel, offering())
        started = fresh(lease).active_at
        assert started is not None
        reprice(offering(), 3 * EURO, since=started.replace(microsecond=0) + timedelta(minutes=30))
        life.run(300)
        meter(life)
        assert fresh(lease).state == LeaseState.ACTIVE
        assert stands(purse, life) == (8, 192, 0)


def test_a_promised_price_is_what_is_held(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        wanted = {"max_duration_s": HOUR, "name": "promised"}
        with as_tenant(kestrel.tenant.pk):
            answer = quotes.quote(
                Wanted(offering_id=offering().pk, **wanted),
                project=kestrel.project,
                actor=kestrel.actor,
                now=life.now,
            )
        assert stands(purse, life) == (0, 0, 100), "a quote takes nothing"
        assert answer.refusal is None
        assert answer.offer is not None
        reprice(offering(), 9 * EURO, since=life.now + timedelta(seconds=1))
        life.clock.at += timedelta(seconds=2)
        life.ask(kestrel, offering(), quote=answer.offer.sealed, **wanted)
        assert stands(purse, life) == (0, 100, 0)


def test_a_quote_says_that_the_budget_has_no_room(kestrel: Home) -> None:
    with alive() as life:
        budget(kestrel, 99, life)
        with as_tenant(kestrel.tenant.pk):
            answer = quotes.quote(
                Wanted(offering_id=offering().pk, max_duration_s=HOUR, name="a"),
                project=kestrel.project,
                actor=kestrel.actor,
                now=life.now,
            )
        assert isinstance(answer.refusal, BudgetExceeded)


def test_a_fixed_end_is_the_most_that_is_held(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        life.ask(kestrel, offering(), max_duration_s=9 * HOUR, end_date=NOW + timedelta(minutes=30))
        assert stands(purse, life) == (0, 50, 50)


def test_a_budget_of_nought_lets_nothing_queue(kestrel: Home) -> None:
    with alive() as life:
        budget(kestrel, 0, life)
        with pytest.raises(BudgetExceeded, match=r"is €0\.00; €0\.00 of it is left"):
            life.ask(kestrel, offering())


def test_a_budget_that_is_set_later_counts_what_was_spent_and_what_lives(kestrel: Home) -> None:
    with alive() as life:
        over = life.lease(kestrel, offering(), LeaseState.RELEASED)
        life.run(7200)
        meter(life)
        stopped = life.lease(kestrel, offering(), volume=life.volume(kestrel).pk)
        life.stop(stopped, kestrel)
        life.run(60)
        meter(life)
        life.ask(kestrel, offering())
        purse = budget(kestrel, 1000, life)
        spent, held, left = stands(purse, life)
        with as_tenant(kestrel.tenant.pk):
            charged = sum(sum(use.by_month.values()) for use in uses([over.pk, stopped.pk]).values())
        assert spent == charged * 100 // (HOUR * EURO) or spent == charged * 100 // (HOUR * EURO) + 1
        assert held in (100, 101)
        assert spent + held + left in (1000, 1001)
        assert hold_of(over) is None
        meter(life)
        assert stands(purse, life)[0] == spent


def test_a_limit_below_what_is_taken_only_stops_new_leases(kestrel: Home) -> None:
    with alive() as life:
        budget(kestrel, 300, life)
        lease = life.lease(kestrel, offering())
        purse = budget(kestrel, 50, life)
        assert purse.version == 2
        assert stands(purse, life) == (0, 100, 0)
        life.run(600)
        meter(life)
        assert fresh(lease).state == LeaseState.ACTIVE


def test_a_budget_that_is_taken_away_holds_nobody(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        lease = life.lease(kestrel, offering())
        with as_tenant(kestrel.tenant.pk):
            budgets.remove(purse, actor=kestrel.actor, now=life.now)
        life.ask(kestrel, offering(), quantity=4)
        life.run(600)
        meter(life)
        assert fresh(lease).state == LeaseState.ACTIVE
        again = budget(kestrel, 1000, life)
        assert stands(again, life) == (83, 417, 500)


def test_a_lease_that_used_all_its_time_comes_to_what_is_charged(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 500, life)
        lease = life.lease(kestrel, offering())
        use = Use(HOUR, HOUR, {1: HOUR * EURO})
        with as_tenant(kestrel.tenant.pk):
            found = fresh(lease)
            assert Outlook(kestrel.tenant, [found]).needed(found, use, now=life.now) == use.by_month
        assert stands(purse, life)[2] == 400


def test_a_lease_that_is_over_keeps_its_hold_until_its_last_second_is_charged(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        lease = life.lease(kestrel, offering())
        life.run(36)
        life.release(lease)
        life.run(60)
        assert settling.look_again(now=life.now) == 1
        hold = hold_of(lease)
        assert hold is not None
        assert hold.settled_at is None
        assert stands(purse, life)[2] == 0
        meter(life)
        life.run(301)
        meter(life)
        assert stands(purse, life)[2] == 99
