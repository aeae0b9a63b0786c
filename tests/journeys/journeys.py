"""Two traced request flows: requesting a lease, and closing a month."""

import json
from datetime import timedelta

from django.test import Client, override_settings

from billing import tasks
from billing.models import InvoiceStatus
from config.env import EnvironmentSettings
from ports import clock
from tests.billing.histories import (
    EURO,
    HOUR,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    periods_of,
    set_price,
    utc,
)
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate
from tests.journeys.traced_files import PassedFiles, passed_files
from tests.simulation import TenantContext, create_gpus, create_tenant, offering, simulate

PRODUCT_GATES = EnvironmentSettings.model_fields["lease_gates"].default
OPENS, MONTH, LATER = utc("2026-10-05 09:00:00"), "2026-10", utc("2026-11-01 12:00:00")


def request_lease() -> PassedFiles:
    """Trace a member's second `POST /leases`, with the default gates."""
    with override_settings(LEASE_GATES=PRODUCT_GATES), simulate(OPENS):
        create_gpus(2)
        set_price(offering(), EURO, since=OPENS - timedelta(days=1))
        kestrel = create_tenant("Kestrel")
        _post_lease(kestrel, "warm")
        return _post_lease(kestrel, "traced")


def _post_lease(owner: TenantContext, name: str) -> PassedFiles:
    body = {"name": name, "project": owner.project.pk, "offering": offering().pk, "max_duration_s": HOUR}
    client, token = Client(headers={"Host": "localhost"}), owner.token()
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": name}
    with passed_files() as passed:
        answer = client.post("/api/v1/leases", json.dumps(body), content_type="application/json", headers=headers)
    assert answer.status_code == 202, answer.content
    return passed


def close_a_month() -> PassedFiles:
    """Trace the task that closes the second tenant's month, of which one lease still runs."""
    what = create_priced_offering(EURO)
    set_tax_rate("DE", 19)
    for _ in range(2):
        tenant, project = create_customer("Europe/Berlin")
        add_running_lease(project, what, OPENS)
        with clock.frozen_at(LATER - timedelta(days=7)):
            tasks.rate()  # opens the month, as every half minute does
        with override_settings(SUPPLIER=LUMEN.as_dict()), clock.frozen_at(LATER), passed_files() as passed:
            tasks.close_due()
        assert [(month.label, month.status) for month in periods_of(tenant)] == [(MONTH, "closed"), ("2026-11", "open")]
        assert [invoice.status for invoice in invoices_of(tenant)] == [InvoiceStatus.FINALIZED]
    return passed


JOURNEYS = {
    "files executed by POST /leases": request_lease,
    "files executed by closing a month": close_a_month,
}
