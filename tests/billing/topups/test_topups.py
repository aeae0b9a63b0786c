"""Wallet top-ups: collection, refusals, retries and automatic top-ups."""

from datetime import timedelta
from unittest import mock

import pytest
from django.db import DatabaseError

from billing import tasks
from billing.domain.payment_retries import MAX_UNEXPECTED_FAILURES
from billing.gateways.simulated import GatewayFault, SimulatedGateway
from billing.models import AutoTopUp, TopUp
from billing.services.ledger import invariant_checks, ledger_balances
from billing.services.payments.gateway_transactions import TransactionChanged
from billing.services.payments.topups import automatic_topups, topup_collection
from billing.services.payments.topups.topup_creation import TopUpRefused
from ports import clock, payments
from ports.payments import Declined, Succeeded
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.payments.payable_invoices import captured_messages
from tests.billing.topups.topup_setup import (
    charged_topups,
    fail_next_topups,
    process_topup,
    reload_topup,
    request_topup,
    topups_of,
    wallet_balance,
)
from tests.simulation import NOW, TenantContext

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=5)


def test_a_top_up_credits_the_wallet_once_it_is_collected(kestrel: TenantContext) -> None:
    made = request_topup(kestrel, 5000)
    assert (made.status, wallet_balance(kestrel)) == ("pending", 0)
    done = process_topup(made)
    assert (done.status, done.reference != "", wallet_balance(kestrel), charged_topups(kestrel)) == (
        "succeeded",
        True,
        5000,
        [5000],
    )
    process_topup(made)
    assert wallet_balance(kestrel) == 5000
    with staff_scope():
        assert ledger_balances.recomputed_trial_balance()[1] == ()
        assert [proof.name for proof in invariant_checks.check_invariants(now=LATER) if not proof.holds] == []
    with tenant_scope(kestrel.tenant.pk):
        rows = list(
            AuditEvent.objects.filter(action__startswith="topup.").order_by("pk").values_list("action", flat=True)
        )
    assert rows == ["topup.open", "topup.settle"]


@pytest.mark.parametrize("cents", [0, -1, 99, 5_000_001])
def test_a_top_up_outside_the_limits_is_refused_and_not_stored(kestrel: TenantContext, cents: int) -> None:
    with pytest.raises(InvalidValue, match="A top-up must be"):
        request_topup(kestrel, cents)
    assert topups_of(kestrel) == []


def test_a_top_up_without_a_gateway_is_refused(kestrel: TenantContext) -> None:
    with payments.using_gateway(None), pytest.raises(TopUpRefused, match="does not collect payments"):
        request_topup(kestrel, 100)


def test_a_second_top_up_during_a_pending_one_is_refused(kestrel: TenantContext) -> None:
    request_topup(kestrel, 100)
    with pytest.raises(TopUpRefused, match="is in progress"):
        request_topup(kestrel, 100)


def test_a_declined_top_up_credits_nothing_and_can_be_repeated(kestrel: TenantContext) -> None:
    fail_next_topups(kestrel, GatewayFault.DECLINED)
    done = process_topup(request_topup(kestrel, 100))
    assert (done.status, done.code, wallet_balance(kestrel)) == ("declined", "insufficient_funds", 0)
    assert process_topup(request_topup(kestrel, 100, now=LATER), now=LATER).status == "succeeded"


@pytest.mark.parametrize("silence", [GatewayFault.LOST, GatewayFault.UNREACHABLE, GatewayFault.SLOW])
def test_an_unanswered_top_up_is_retried_with_the_same_key(kestrel: TenantContext, silence: GatewayFault) -> None:
    fail_next_topups(kestrel, silence)
    waits = process_topup(request_topup(kestrel, 100))
    assert (waits.status, waits.last_error != "", waits.due_at > NOW) == ("pending", True, True)  # type: ignore[operator]
    assert topup_collection.TOPUPS.due(now=NOW) == []
    later = NOW + timedelta(hours=1)
    ((task, key, tenant),) = topup_collection.TOPUPS.due(now=later)
    assert (task, key, tenant) == ("billing.top_up", waits.pk, kestrel.tenant.pk)
    assert process_topup(waits, now=later).status == "succeeded"
    assert (wallet_balance(kestrel), charged_topups(kestrel)) == (100, [100])


def test_a_stuck_top_up_is_retried_by_a_request_for_the_same_amount(kestrel: TenantContext) -> None:
    fail_next_topups(kestrel, GatewayFault.REJECTED)
    stuck = process_topup(request_topup(kestrel, 100))
    assert (stuck.status, stuck.code) == ("stuck", "bad_credentials")
    with pytest.raises(TopUpRefused, match="is stuck"):
        request_topup(kestrel, 200)
    again = request_topup(kestrel, 100, now=LATER)
    assert (again.pk, again.status) == (stuck.pk, "pending")
    assert process_topup(again, now=LATER).status == "succeeded"
    assert wallet_balance(kestrel) == 100


def test_a_top_up_settled_by_a_late_worker_is_not_retried(kestrel: TenantContext) -> None:
    fail_next_topups(kestrel, GatewayFault.REJECTED)
    stuck = process_topup(request_topup(kestrel, 100))
    lock = topup_collection.TOPUPS.lock

    def late(row: TopUp) -> None:
        with mock.patch.object(topup_collection.TOPUPS, "lock", lock):
            topup_collection.TOPUPS.settle(row, Succeeded("sim_late"), NOW)
        lock(row)

    refused = pytest.raises(TopUpRefused, match="has just succeeded")
    with mock.patch.object(topup_collection.TOPUPS, "lock", late), refused:
        request_topup(kestrel, 100, now=LATER)
    topup_collection.TOPUPS.settle(stuck, Succeeded("sim_late"), NOW)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(TransactionChanged, match="has changed in the meantime"):
        topup_collection.TOPUPS.reopen(stuck, now=LATER)
    assert (reload_topup(stuck).status, wallet_balance(kestrel)) == ("succeeded", 100)


def test_a_top_up_is_collected_only_by_the_gateway_it_started_with(kestrel: TenantContext) -> None:
    made = request_topup(kestrel, 100)
    with payments.using_gateway(None):
        assert "no longer configured" in process_topup(made).last_error
    assert charged_topups(kestrel) == []


def test_a_top_up_that_keeps_failing_unexpectedly_becomes_stuck(kestrel: TenantContext) -> None:
    made, now = request_topup(kestrel, 100), NOW
    with mock.patch.object(SimulatedGateway, "charge", side_effect=ZeroDivisionError("odd")):
        for _ in range(MAX_UNEXPECTED_FAILURES):
            with clock.frozen_at(now):
                tasks.top_up(made.pk, made.tenant_id)
            now += timedelta(hours=2)
    assert (reload_topup(made).status, reload_topup(made).code) == ("stuck", "unforeseen")
    odd = mock.patch.object(topup_collection.TOPUPS, "collect", side_effect=ZeroDivisionError)
    with clock.frozen_at(now), odd, pytest.raises(ZeroDivisionError):
        tasks.top_up(made.pk, made.tenant_id)


def test_a_top_up_whose_workers_keep_crashing_becomes_stuck(kestrel: TenantContext) -> None:
    made, now = request_topup(kestrel, 100), NOW
    for _ in range(MAX_UNEXPECTED_FAILURES):
        with (
            mock.patch.object(topup_collection.TOPUPS, "send_request", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            process_topup(made, now=now)
        now += timedelta(minutes=2)
    assert process_topup(made, now=now).status == "stuck"


def set_automatic_topup(owner: TenantContext, *, threshold: int = 1000, minor: int = 5000) -> AutoTopUp:
    with tenant_scope(owner.tenant.pk):
        return automatic_topups.set_automatic_topup(
            owner.tenant, threshold=threshold, minor=minor, actor=owner.actor, now=NOW
        )


def test_b18_a_wallet_below_its_threshold_is_topped_up_automatically_once(kestrel: TenantContext) -> None:
    set_automatic_topup(kestrel)
    assert [automatic_topups.open_due_topups(now=NOW), automatic_topups.open_due_topups(now=NOW)] == [1, 0]
    (made,) = topups_of(kestrel)
    assert (made.automatic, made.minor) == (True, 5000)
    process_topup(made)
    assert wallet_balance(kestrel) == 5000
    assert automatic_topups.open_due_topups(now=LATER) == 0
    set_automatic_topup(kestrel, threshold=6000)
    assert automatic_topups.open_due_topups(now=NOW) == 0  # in the same stretch of time
    assert automatic_topups.open_due_topups(now=LATER) == 1


def test_b18_a_pending_automatic_top_up_prevents_another(kestrel: TenantContext) -> None:
    set_automatic_topup(kestrel)
    automatic_topups.open_due_topups(now=NOW)
    assert automatic_topups.open_due_topups(now=LATER) == 0
    assert len(topups_of(kestrel)) == 1


def test_a_declined_automatic_top_up_stops_the_rule_until_it_is_set_again(kestrel: TenantContext) -> None:
    set_automatic_topup(kestrel)
    fail_next_topups(kestrel, GatewayFault.DECLINED)
    automatic_topups.open_due_topups(now=NOW)
    process_topup(topups_of(kestrel)[0])
    with tenant_scope(kestrel.tenant.pk):
        stopped = AutoTopUp.objects.get()
    assert (stopped.stopped_at, "insufficient funds" in stopped.why) == (NOW, True)
    assert automatic_topups.open_due_topups(now=LATER) == 0
    set_automatic_topup(kestrel)
    assert automatic_topups.open_due_topups(now=LATER) == 1


def test_no_automatic_top_up_opens_without_a_gateway_or_after_an_error(kestrel: TenantContext) -> None:
    set_automatic_topup(kestrel)
    with payments.using_gateway(None):
        assert automatic_topups.open_due_topups(now=NOW) == 0
    with mock.patch.object(automatic_topups, "_open_if_below", side_effect=DatabaseError("no")):
        assert automatic_topups.open_due_topups(now=NOW) == 0
    with tenant_scope(kestrel.tenant.pk):
        automatic_topups.remove_automatic_topup(kestrel.tenant, actor=kestrel.actor, now=NOW)
        automatic_topups.remove_automatic_topup(kestrel.tenant, actor=kestrel.actor, now=NOW)
        assert not automatic_topups._open_if_below(kestrel.tenant, NOW)


def test_the_scheduled_task_opens_top_ups_and_repeats_lost_messages(kestrel: TenantContext) -> None:
    set_automatic_topup(kestrel)
    with clock.frozen_at(NOW), captured_messages() as enqueued, mock.patch("ports.outbox.send") as sent:
        tasks.collect_due()
    assert [hint[0] for hint in enqueued] == ["billing.top_up"]
    assert sent.call_args.args[0] == "billing.top_up"


def test_b15_a_top_up_settled_repeatedly_is_credited_once(kestrel: TenantContext) -> None:
    made = request_topup(kestrel, 5000)
    with tenant_scope(kestrel.tenant.pk):
        row = TopUp.objects.get(pk=made.pk)
    for _ in range(3):
        topup_collection.TOPUPS.settle(row, Succeeded("sim_1"), NOW)
    assert wallet_balance(kestrel) == 5000


def test_a_late_answer_does_not_change_a_settled_top_up(kestrel: TenantContext) -> None:
    made = request_topup(kestrel, 5000)
    with tenant_scope(kestrel.tenant.pk):
        old = TopUp.objects.get(pk=made.pk)
    done = process_topup(made)
    topup_collection.TOPUPS.settle(old, Declined("too late", "late"), NOW)
    topup_collection.TOPUPS.mark_stuck(old, "too late", "late", NOW)
    topup_collection.TOPUPS.schedule_retry(old, 10, "too late", NOW)
    assert reload_topup(made).__dict__ | {"_state": None} == done.__dict__ | {"_state": None}
