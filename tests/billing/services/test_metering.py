"""The beat's two tasks: charge what ended, close what is over, and say what could not be charged."""

import pytest
from structlog.testing import capture_logs

from billing import tasks
from billing.services import metering
from ports import clock
from tests.billing.histories import EURO, HOUR, at, charges, customer, invoices, ran, runs, sold

pytestmark = pytest.mark.django_db
NOW = at("2026-11-21 09:00:00")


def test_metering_charges_and_shows_it_in_the_draft() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), at("2026-11-20 00:00:00"), HOUR)
    assert metering.meter(now=NOW).tenants == (tenant.pk,)
    assert [(i.status, i.total, i.refreshed_at) for i in invoices(tenant)] == [("draft", 100, NOW)]


def test_the_tasks_do_it_and_name_gaps_in_the_log() -> None:
    tenant, project = customer()
    runs(project, sold(EURO), at("2026-10-31 23:00:00"))
    other, elsewhere = customer()
    ran(elsewhere, sold(None), at("2026-10-20 00:00:00"), HOUR)
    runs(elsewhere, sold(None), at("2026-10-20 00:00:00"))
    with clock.standing_at(NOW), capture_logs() as logs:
        tasks.rate()
        tasks.close_due()
    assert {log["event"] for log in logs} == {"price gap", "price gap keeps a month open"}
    assert [(i.period.label, i.total) for i in invoices(tenant)] == [("2026-10", 100)]
    assert charges(other) == []
