"""What waits for an operator's answer is on the control room and told to Prometheus."""

from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils.html import strip_tags

from billing.services import undecided
from billing.services.disputes import asking
from billing.services.undecided import Undecided
from config import metrics
from ports import clock
from tests.billing.corrections.corrected import BEN, CLEO, NOW, approved, close, proposed, ten_hours
from tests.billing.payments.bills import MIRA

pytestmark = pytest.mark.django_db
FIGURES = (
    "gpubroker_disputes_open",
    "gpubroker_dispute_oldest_seconds",
    "gpubroker_corrections_waiting",
    "gpubroker_corrections_waiting_for_second",
)


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with clock.standing_at(NOW):
        yield


def told() -> tuple[float, ...]:
    found = {sample.name: sample.value for family in metrics.money() for sample in family.samples}
    return tuple(found[name] for name in FIGURES)


def home(operator: Client) -> str:
    answer = operator.get("/ops/")
    assert answer.status_code == 200
    text = unescape(strip_tags(answer.content.decode().replace("<", " <")))
    return " ".join(text.split())


def test_nothing_waits_where_nothing_is_asked(operator: Client) -> None:
    assert told() == (0, 0, 0, 0)
    assert "no dispute or correction waits" in home(operator)


def test_prometheus_is_told_what_waits_until_it_is_decided(settings: Any) -> None:
    settings.CORRECTION_LIMIT = 0
    tenant, _, lease = ten_hours()
    invoice = close(tenant)
    (found,) = asking.dispute(
        invoice, lines={1: 500}, reason="it was down", actor=MIRA, now=NOW - timedelta(seconds=90)
    )
    waits = proposed(lease, 2, 5, now=NOW)
    assert told() == (1, 90, 1, 0)
    approved(waits, by=BEN, now=NOW)
    assert told() == (1, 90, 1, 1)
    approved(waits, by=CLEO, now=NOW)
    asking.withdraw(found, actor=MIRA, now=NOW)
    assert told() == (0, 0, 0, 0)


def test_the_control_room_names_what_waits(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Undecided(1, NOW, 2, 0, NOW)]
    monkeypatch.setattr(undecided, "look", lambda: found[0])
    shown = home(operator)
    assert "1 dispute to be answered" in shown
    assert "2 corrections to be approved" in shown
    assert "second person" not in shown
    found[0] = Undecided(0, None, 2, 1, NOW)
    shown = home(operator)
    assert "to be answered" not in shown
    assert "1 of them lacks only a second person" in shown
