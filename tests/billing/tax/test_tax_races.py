"""Change of billing details during a month close."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.services.rls import tenant_scope
from tests.billing.histories import create_customer, invoices_of
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import ATELIER, charge_amounts, set_billing_details, set_tax_rate
from tests.database import OwnDatabase


def test_a_change_of_billing_details_waits_for_the_month_close(own_database: OwnDatabase) -> None:
    set_tax_rate("DE", 19)
    tenant, project = create_customer()
    charge_amounts(project, 200)
    lease_rating.rate_tenant_leases(tenant, now=NOW)

    def tell() -> None:
        try:
            set_billing_details(tenant, ATELIER)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as others:
        with tenant_scope(tenant.pk):
            close_month.close_period(tenant, "2026-10", now=NOW)
            later = others.submit(tell)
            with pytest.raises(TimeoutError):
                later.result(timeout=0.5)
        later.result(timeout=20)
    (invoice,) = invoices_of(tenant)
    assert (invoice.treatment, invoice.tax) == ("domestic", 38)
    assert invoice.customer is not None
    assert invoice.customer["name"] == tenant.name
