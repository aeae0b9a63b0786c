"""Decisions awaiting an operator are on the control room page and in the metrics."""

from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from billing.services.invoicing.disputes import dispute_requests
from billing.services.reports import pending_decisions
from billing.services.reports.pending_decisions import PendingDecisions
from config import metrics
from ports import clock
from tests.billing.corrections.correction_setup import (
    BEN,
    CLEO,
    NOW,
    approve_correction,
    close_period,
    create_ten_hour_lease,
    propose_correction,
)
from tests.billing.payments.payable_invoices import MIRA

pytestmark = pytest.mark.django_db
FIGURES = (
    "gpubroker_disputes_open",
    "gpubroker_dispute_oldest_open_seconds",
    "gpubroker_corrections_pending",
    "gpubroker_corrections_pending_second_approval",
)


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.frozen_at(NOW):
        yield


def read_gauges() -> tuple[float, ...]:
    found = {sample.name: sample.value for family in metrics.database_gauges() for sample in family.samples}
    return tuple(found[name] for name in FIGURES)


def home(operator: Client) -> str:
    answer = operator.get("/ops/")
    assert answer.status_code == 200
    text = unescape(strip_tags(answer.content.decode().replace("<", " <")))
    return " ".join(text.split())


def test_no_decision_is_pending_without_a_request(operator: Client) -> None:
    assert read_gauges() == (0, 0, 0, 0)
    assert "no dispute or correction is open" in home(operator)


def test_prometheus_counts_pending_disputes_and_corrections(settings: Any) -> None:
    settings.CORRECTION_APPROVAL_THRESHOLD = 0
    tenant, _, lease = create_ten_hour_lease()
    invoice = close_period(tenant)
    (found,) = dispute_requests.dispute_lines(
        invoice, lines={1: 500}, reason="it was down", actor=MIRA, now=NOW - timedelta(seconds=90)
    )
    waits = propose_correction(lease, 2, 5, now=NOW)
    assert read_gauges() == (1, 90, 1, 0)
    approve_correction(waits, by=BEN, now=NOW)
    assert read_gauges() == (1, 90, 1, 1)
    approve_correction(waits, by=CLEO, now=NOW)
    dispute_requests.withdraw_dispute(found, actor=MIRA, now=NOW)
    assert read_gauges() == (0, 0, 0, 0)


def test_the_control_room_shows_open_disputes_and_corrections(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [PendingDecisions(1, NOW, 2, 0, NOW)]
    monkeypatch.setattr(pending_decisions, "count_pending_decisions", lambda: found[0])
    shown = home(operator)
    assert "1 dispute open" in shown
    assert "2 corrections to approve" in shown
    assert "second approval" not in shown
    found[0] = PendingDecisions(0, None, 2, 1, NOW)
    shown = home(operator)
    assert "dispute open" not in shown
    assert "1 of them lacks a second approval only" in shown
