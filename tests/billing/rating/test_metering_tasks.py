"""Metering tasks: rating, month close and reported price gaps."""

import pytest
from structlog.testing import capture_logs

from billing import tasks
from billing.services.invoicing import metering
from ports import clock
from tests.billing.histories import (
    EURO,
    HOUR,
    add_ended_lease,
    add_running_lease,
    charges_of,
    create_customer,
    create_priced_offering,
    invoices_of,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")


def test_metering_rates_leases_and_refreshes_the_draft() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), utc("2026-11-20 00:00:00"), HOUR)
    assert metering.run_metering(now=NOW).tenants == (tenant.pk,)
    assert [(i.status, i.total, i.refreshed_at) for i in invoices_of(tenant)] == [("draft", 100, NOW)]


def test_metering_tasks_close_months_and_log_price_gaps() -> None:
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(EURO), utc("2026-10-31 23:00:00"))
    other, elsewhere = create_customer()
    add_ended_lease(elsewhere, create_priced_offering(None), utc("2026-10-20 00:00:00"), HOUR)
    add_running_lease(elsewhere, create_priced_offering(None), utc("2026-10-20 00:00:00"))
    with clock.frozen_at(NOW), capture_logs() as logs:
        tasks.rate()
        tasks.close_due()
    assert {log["event"] for log in logs} == {"price gap", "price gap keeps a month open"}
    assert [(i.period.label, i.total) for i in invoices_of(tenant)] == [("2026-10", 100)]
    assert charges_of(other) == []
