"""What the beat, a hint and Prometheus find: the doors of payments, each of which does one thing."""

from datetime import timedelta
from typing import Any

import pytest

from billing import tasks
from billing.gateways.simulated import Ill
from config import metrics
from ports import clock, doorbell
from tests.billing.payments.bills import Rung, bill, collect, fresh, ill, pay

pytestmark = pytest.mark.django_db


def told() -> dict[str, float]:
    return {sample.name: sample.value for family in metrics.money() for sample in family.samples}


def test_the_beat_opens_what_is_due_and_sends_what_waits(rung: Rung, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = bill(), bill()
    ill(first, Ill.UNREACHABLE)
    waiting = collect(pay(first))
    assert waiting.due_at is not None
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(doorbell, "send", lambda *hint: sent.append(hint))
    with clock.standing_at(waiting.due_at):
        tasks.collect_due()
        assert {tenant for _, _, tenant in sent} == {first.tenant_id, second.tenant_id}
        for task, *subject in sent:
            assert task == "billing.collect"
            tasks.collect(*subject)
    assert [fresh(each).status for each in (first, second)] == ["paid", "paid"]


def test_prometheus_is_told_what_is_still_to_be_collected() -> None:
    now = clock.now()
    assert set(told().values()) == {0}
    paid, waiting, _ = bill(), bill(), bill()
    collect(pay(paid))
    pay(waiting, now=now - timedelta(seconds=90))
    figures = told()
    assert (figures["gpubroker_invoices_due"], figures["gpubroker_payments_pending"]) == (2, 1)
    assert figures["gpubroker_payment_oldest_seconds"] >= 90
