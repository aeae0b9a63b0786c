"""Holds follow their leases whatever happens to these: nothing that may still be charged is set free, nobody is ended
who was let in, and one that cannot be looked at keeps nobody else's waiting.
"""

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from billing.models import Budget, Hold
from billing.services import metering, rating
from billing.services.funds import settling
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases import stopping
from tenants.services.actors import SYSTEM
from tenants.services.walls import as_tenant
from tests.billing.budgets.purses import budget, hold_of, meter, months_exact, stands
from tests.billing.histories import EURO, reprice
from tests.world import Home, Life, alive, fresh, offering

pytestmark = pytest.mark.django_db
HOUR = 3600


def taken(purse: Budget) -> int:
    """Return what is taken of the present month, in cents, rounded up."""
    ((num, _),) = months_exact(purse).values()
    return -(-num * 100 // (HOUR * EURO))


def moves_away(life: Life, lease: Lease) -> None:
    """Let a lease leave its card for another one, as a move does."""
    with as_tenant(lease.tenant_id):
        stopping.pause(fresh(lease), reason=EndReason.BY_OPERATOR, cause="moved", actor=SYSTEM, now=life.now)
    life.clock.at += timedelta(seconds=5)
    meter(life)
    with as_tenant(lease.tenant_id):
        row = fresh(lease)
        row.move(LeaseState.STOPPED, LeaseState.QUEUED, now=life.now, cause="moved")
        row.move(LeaseState.PROVISIONING, now=life.now, cause="moved", generation=row.generation + 1)
    life.clock.at += timedelta(seconds=5)
    meter(life)


@pytest.mark.parametrize("lowered", [False, True])
def test_a_lease_that_is_moved_keeps_its_money_and_its_life(kestrel: Home, lowered: bool) -> None:
    with alive() as life:
        purse = budget(kestrel, 300, life)
        lease = life.lease(kestrel, offering(), max_duration_s=3 * HOUR, volume=life.volume(kestrel).pk)
        life.run(600)
        if lowered:
            budget(kestrel, 50, life)
        with mock.patch.object(settling.crossing, "begun", return_value=object()):
            moves_away(life, lease)
        assert fresh(lease).state == LeaseState.PROVISIONING
        assert taken(purse) == 300


def test_a_new_budget_below_frees_nothing_above(kestrel: Home) -> None:
    child = kestrel.child("docking")
    with alive() as life:
        root = budget(kestrel, 100, life)
        lease = life.lease(kestrel, offering(), project=child)
        life.run(1800)
        life.release(lease)
        life.run(20)
        below = budget(kestrel, 500, life, child)
        assert taken(root) == 100
        spent, held, left = stands(below, life)
        assert spent + held + left == 500
        assert taken(below) == 50, "what ran and is yet to be charged"


def test_a_new_budget_counts_what_is_uncharged_however_long_ago_it_ended(kestrel: Home) -> None:
    with alive() as life:
        lease = life.lease(kestrel, offering())
        life.run(1800)
        life.release(lease)
        life.run(30)
        life.clock.at += timedelta(hours=3)
        purse = budget(kestrel, 100, life)
        assert taken(purse) == 50
        meter(life)
        life.clock.at += timedelta(minutes=6)
        meter(life)
        assert taken(purse) == 50
        hold = hold_of(lease)
        assert hold is not None
        assert hold.settled_at is not None


def test_an_end_between_two_seconds_is_cut_to_the_second(kestrel: Home) -> None:
    with alive() as life:
        end = life.now + timedelta(hours=2, microseconds=500)
        purse = budget(kestrel, 3000, life)
        life.lease(kestrel, offering(), max_duration_s=3 * HOUR, end_date=end)
        reprice(offering(), 2 * EURO, since=life.now.replace(microsecond=0) + timedelta(minutes=40))
        life.clock.at += timedelta(minutes=6)
        meter(life)
        assert stands(purse, life)[2] > 2600


def test_a_start_before_the_last_seconds_are_charged_counts_them(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 300, life)
        end = life.now + timedelta(hours=3)
        lease = life.lease(
            kestrel, offering(), max_duration_s=3 * HOUR, end_date=end, volume=life.volume(kestrel).pk
        )
        life.run(7200)
        life.stop(lease, kestrel)
        life.run(15)
        life.start(lease, kestrel)
        assert taken(purse) in (299, 300)
        meter(life)
        assert taken(purse) in (299, 300)


def test_one_that_cannot_be_looked_at_keeps_nobody_elses_waiting(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 500, life)
        ill, well = life.lease(kestrel, offering()), life.lease(kestrel, offering())
        life.release(well)
        life.run(60)
        real = settling._bring_up

        def odd(lease: Lease, now: Any) -> None:
            if lease.pk == ill.pk:
                raise ValueError("odd")
            real(lease, now)

        with mock.patch.object(settling, "_bring_up", odd):
            rating.rate(now=life.now)
            assert settling.look_again(now=life.now) == 2
            assert settling.look_again(now=life.now) == 0, "it is pushed back"
        settled = hold_of(well)
        assert settled is not None
        assert settled.settled_at == life.now
        assert taken(purse) in (100, 101)


def test_what_was_let_in_without_the_gate_is_counted_all_the_same(kestrel: Home, settings: Any) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        gates = settings.LEASE_GATES
        settings.LEASE_GATES = gates[:2]
        lease = life.ask(kestrel, offering(), quantity=3)
        settings.LEASE_GATES = gates
        metering.meter(now=life.now)
        assert taken(purse) == 300
        assert fresh(lease).state == LeaseState.QUEUED, "whoever was let in stays"


def test_what_has_become_active_meanwhile_is_not_ended(kestrel: Home) -> None:
    with alive() as life:
        budget(kestrel, 100, life)
        lease = life.ask(kestrel, offering())
        reprice(offering(), 2 * EURO, since=life.now + timedelta(seconds=1))
        life.run(60)
        assert fresh(lease).state == LeaseState.ACTIVE
        life.clock.at += timedelta(minutes=6)
        meter(life)
        assert fresh(lease).state == LeaseState.ACTIVE


def test_a_look_that_finds_nothing_new_writes_nothing(kestrel: Home) -> None:
    with alive() as life:
        purse = budget(kestrel, 100, life)
        life.lease(kestrel, offering())
        meter(life)
        life.clock.at += timedelta(minutes=6)
        with mock.patch("billing.services.funds.holds.write") as written:
            meter(life)
        assert list(written.call_args.args[1]) == []
        with as_tenant(purse.tenant_id):
            assert Hold.objects.get().looked_at == life.now
