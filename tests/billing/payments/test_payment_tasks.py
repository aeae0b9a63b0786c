"""Tasks, messages and metrics of payments."""

from datetime import timedelta
from typing import Any

import pytest

from billing import tasks
from billing.gateways.simulated import GatewayFault
from config import metrics
from ports import clock, outbox
from tests.billing.payments.payable_invoices import (
    CapturedMessages,
    create_final_invoice,
    fail_next_charges,
    process_payment,
    reload_invoice,
    request_payment,
)

pytestmark = pytest.mark.django_db


def read_gauges() -> dict[str, float]:
    return {sample.name: sample.value for family in metrics.database_gauges() for sample in family.samples}


def test_celery_beat_opens_due_payments_and_sends_pending_messages(
    enqueued: CapturedMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = create_final_invoice(), create_final_invoice()
    fail_next_charges(first, GatewayFault.UNREACHABLE)
    waiting = process_payment(request_payment(first))
    assert waiting.due_at is not None
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(outbox, "send", lambda *hint, **_: sent.append(hint))
    with clock.frozen_at(waiting.due_at):
        tasks.collect_due()
        assert {tenant for _, _, tenant in sent} == {first.tenant_id, second.tenant_id}
        for task, *subject in sent:
            assert task == "billing.collect"
            tasks.collect(*subject)
    assert [reload_invoice(each).status for each in (first, second)] == ["paid", "paid"]


def test_prometheus_gauges_report_invoices_due_and_pending_payments() -> None:
    now = clock.now()
    assert set(read_gauges().values()) == {0}
    paid, waiting, _ = create_final_invoice(), create_final_invoice(), create_final_invoice()
    process_payment(request_payment(paid))
    request_payment(waiting, now=now - timedelta(seconds=90))
    figures = read_gauges()
    assert (figures["gpubroker_invoices_due"], figures["gpubroker_payments_pending"]) == (2, 1)
    assert figures["gpubroker_payment_oldest_pending_seconds"] >= 90
