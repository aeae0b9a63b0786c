"""Money that is put into a wallet is there once, whatever is repeated, lost or slow; and nothing is taken twice."""

from datetime import timedelta
from unittest import mock

import pytest
from django.db import DatabaseError

from billing import tasks
from billing.domain.collecting import MOST_FALLS
from billing.gateways.simulated import Ill, SimulatedGateway
from billing.models import AutoTopUp, TopUp
from billing.services import proofs
from billing.services.ledger import books
from billing.services.moves.moving import Moved
from billing.services.topups import by_itself, collecting
from billing.services.topups.opening import NotNow
from ports import clock, payments
from ports.payments import Declined, Succeeded
from tenants.models import AuditEvent
from tenants.services.refusals import Invalid
from tenants.services.walls import as_staff, as_tenant
from tests.billing.payments.bills import heard
from tests.billing.topups.tills import balance, collect, every, fresh, ill, taken, top_up
from tests.world import NOW, Home

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=5)


def test_money_that_is_put_in_is_there_once_it_is_collected(kestrel: Home) -> None:
    made = top_up(kestrel, 5000)
    assert (made.status, balance(kestrel)) == ("pending", 0)
    done = collect(made)
    assert (done.status, done.reference != "", balance(kestrel), taken(kestrel)) == (
        "succeeded",
        True,
        5000,
        [5000],
    )
    collect(made)
    assert balance(kestrel) == 5000
    with as_staff():
        assert books.reckoned()[1] == ()
        assert [proof.name for proof in proofs.check(now=LATER) if not proof.holds] == []
    with as_tenant(kestrel.tenant.pk):
        told = list(
            AuditEvent.objects.filter(action__startswith="topup.")
            .order_by("pk")
            .values_list("action", flat=True)
        )
    assert told == ["topup.open", "topup.settle"]


@pytest.mark.parametrize("cents", [0, -1, 99, 5_000_001])
def test_what_is_too_little_or_too_much_is_refused_and_nothing_is_booked(kestrel: Home, cents: int) -> None:
    with pytest.raises(Invalid, match="A wallet takes from"):
        top_up(kestrel, cents)
    assert every(kestrel) == []


def test_where_nobody_collects_it_is_said(kestrel: Home) -> None:
    with payments.through(None), pytest.raises(NotNow, match="collects no payments"):
        top_up(kestrel, 100)


def test_one_is_under_way_at_a_time(kestrel: Home) -> None:
    top_up(kestrel, 100)
    with pytest.raises(NotNow, match="is under way"):
        top_up(kestrel, 100)


def test_a_decline_ends_it_and_puts_nothing_in(kestrel: Home) -> None:
    ill(kestrel, Ill.DECLINED)
    done = collect(top_up(kestrel, 100))
    assert (done.status, done.code, balance(kestrel)) == ("declined", "insufficient_funds", 0)
    assert collect(top_up(kestrel, 100, now=LATER), now=LATER).status == "succeeded"


@pytest.mark.parametrize("silence", [Ill.LOST, Ill.UNREACHABLE, Ill.SLOW])
def test_a_silence_is_asked_about_again_with_the_same_key(kestrel: Home, silence: Ill) -> None:
    ill(kestrel, silence)
    waits = collect(top_up(kestrel, 100))
    assert (waits.status, waits.trouble != "", waits.due_at > NOW) == ("pending", True, True)  # type: ignore[operator]
    assert collecting.due(now=NOW) == []
    later = NOW + timedelta(hours=1)
    ((task, key, tenant),) = collecting.due(now=later)
    assert (task, key, tenant) == ("billing.top_up", waits.pk, kestrel.tenant.pk)
    assert collect(waits, now=later).status == "succeeded"
    assert (balance(kestrel), taken(kestrel)) == (100, [100])


def test_what_a_gateway_never_takes_waits_for_a_person_who_asks_for_the_same(kestrel: Home) -> None:
    ill(kestrel, Ill.REJECTED)
    stuck = collect(top_up(kestrel, 100))
    assert (stuck.status, stuck.code) == ("stuck", "bad_credentials")
    with pytest.raises(NotNow, match="is stuck"):
        top_up(kestrel, 200)
    again = top_up(kestrel, 100, now=LATER)
    assert (again.pk, again.status) == (stuck.pk, "pending")
    assert collect(again, now=LATER).status == "succeeded"
    assert balance(kestrel) == 100


def test_what_a_late_worker_settles_meanwhile_is_not_asked_for_again(kestrel: Home) -> None:
    ill(kestrel, Ill.REJECTED)
    stuck = collect(top_up(kestrel, 100))
    lock = collecting.TOPUPS.lock

    def late(row: TopUp) -> None:
        with mock.patch.object(collecting.TOPUPS, "lock", lock):
            collecting.TOPUPS.settle(row, Succeeded("sim_late"), NOW)
        lock(row)

    refused = pytest.raises(NotNow, match="has just succeeded")
    with mock.patch.object(collecting.TOPUPS, "lock", late), refused:
        top_up(kestrel, 100, now=LATER)
    collecting.TOPUPS.settle(stuck, Succeeded("sim_late"), NOW)
    with as_tenant(kestrel.tenant.pk), pytest.raises(Moved, match="has just moved on"):
        collecting.TOPUPS.anew(stuck, now=LATER)
    assert (fresh(stuck).status, balance(kestrel)) == ("succeeded", 100)


def test_only_the_gateway_that_it_was_begun_with_is_asked(kestrel: Home) -> None:
    made = top_up(kestrel, 100)
    with payments.through(None):
        assert "not set any longer" in collect(made).trouble
    assert taken(kestrel) == []


def test_what_fails_as_nobody_foresaw_is_tried_again_and_then_left_to_a_person(kestrel: Home) -> None:
    made, now = top_up(kestrel, 100), NOW
    with mock.patch.object(SimulatedGateway, "charge", side_effect=ZeroDivisionError("odd")):
        for _ in range(MOST_FALLS):
            with clock.standing_at(now):
                tasks.top_up(made.pk, made.tenant_id)
            now += timedelta(hours=2)
    assert (fresh(made).status, fresh(made).code) == ("stuck", "unforeseen")
    odd = mock.patch.object(collecting, "collect", side_effect=ZeroDivisionError)
    with clock.standing_at(now), odd, pytest.raises(ZeroDivisionError):
        tasks.top_up(made.pk, made.tenant_id)


def test_a_worker_that_dies_again_and_again_leaves_it_to_a_person(kestrel: Home) -> None:
    made, now = top_up(kestrel, 100), NOW
    for _ in range(MOST_FALLS):
        with (
            mock.patch.object(collecting.TOPUPS, "ask", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            collect(made, now=now)
        now += timedelta(minutes=2)
    assert collect(made, now=now).status == "stuck"


def rule(owner: Home, *, threshold: int = 1000, minor: int = 5000) -> AutoTopUp:
    with as_tenant(owner.tenant.pk):
        return by_itself.set_rule(owner.tenant, threshold=threshold, minor=minor, actor=owner.actor, now=NOW)


def test_b18_below_its_threshold_a_wallet_is_topped_up_by_itself_once(kestrel: Home) -> None:
    rule(kestrel)
    assert [by_itself.top_up_due(now=NOW), by_itself.top_up_due(now=NOW)] == [1, 0]
    (made,) = every(kestrel)
    assert (made.automatic, made.minor) == (True, 5000)
    collect(made)
    assert balance(kestrel) == 5000
    assert by_itself.top_up_due(now=LATER) == 0
    rule(kestrel, threshold=6000)
    assert by_itself.top_up_due(now=NOW) == 0  # in the same stretch of time
    assert by_itself.top_up_due(now=LATER) == 1


def test_b18_what_is_under_way_counts_as_there(kestrel: Home) -> None:
    rule(kestrel)
    by_itself.top_up_due(now=NOW)
    assert by_itself.top_up_due(now=LATER) == 0
    assert len(every(kestrel)) == 1


def test_after_a_decline_nothing_is_asked_for_until_somebody_says_so(kestrel: Home) -> None:
    rule(kestrel)
    ill(kestrel, Ill.DECLINED)
    by_itself.top_up_due(now=NOW)
    collect(every(kestrel)[0])
    with as_tenant(kestrel.tenant.pk):
        stopped = AutoTopUp.objects.get()
    assert (stopped.stopped_at, "not enough money" in stopped.why) == (NOW, True)
    assert by_itself.top_up_due(now=LATER) == 0
    rule(kestrel)
    assert by_itself.top_up_due(now=LATER) == 1


def test_where_nobody_collects_nothing_is_begun_and_one_tenant_keeps_nobody_waiting(kestrel: Home) -> None:
    rule(kestrel)
    with payments.through(None):
        assert by_itself.top_up_due(now=NOW) == 0
    with mock.patch.object(by_itself, "_look", side_effect=DatabaseError("no")):
        assert by_itself.top_up_due(now=NOW) == 0
    with as_tenant(kestrel.tenant.pk):
        by_itself.unset_rule(kestrel.tenant, actor=kestrel.actor, now=NOW)
        by_itself.unset_rule(kestrel.tenant, actor=kestrel.actor, now=NOW)
        assert not by_itself._look(kestrel.tenant, NOW)


def test_the_beat_tops_up_and_repeats_lost_hints(kestrel: Home) -> None:
    rule(kestrel)
    with clock.standing_at(NOW), heard() as rung, mock.patch("ports.doorbell.send") as sent:
        tasks.collect_due()
    assert [hint[0] for hint in rung] == ["billing.top_up"]
    assert sent.call_args.args[0] == "billing.top_up"


def test_b15_however_many_settle_it_at_once_it_is_booked_once(kestrel: Home) -> None:
    made = top_up(kestrel, 5000)
    with as_tenant(kestrel.tenant.pk):
        row = TopUp.objects.get(pk=made.pk)
    for _ in range(3):
        collecting.TOPUPS.settle(row, Succeeded("sim_1"), NOW)
    assert balance(kestrel) == 5000


def test_whatever_comes_after_it_is_settled_changes_nothing(kestrel: Home) -> None:
    made = top_up(kestrel, 5000)
    with as_tenant(kestrel.tenant.pk):
        old = TopUp.objects.get(pk=made.pk)
    done = collect(made)
    collecting.TOPUPS.settle(old, Declined("too late", "late"), NOW)
    collecting.TOPUPS.stick(old, "too late", "late", NOW)
    collecting.TOPUPS.wait(old, 10, "too late", NOW)
    assert fresh(made).__dict__ | {"_state": None} == done.__dict__ | {"_state": None}
