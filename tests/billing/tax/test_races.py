"""Whoever says who a tenant is, while its month is being closed."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from billing.services import closing, rating
from tenants.services.walls import as_tenant
from tests.billing.histories import customer, invoices
from tests.billing.payments.bills import NOW
from tests.billing.tax.papers import ATELIER, taxed, told, used
from tests.database import OwnDatabase


def test_whoever_says_who_it_is_waits_for_a_month_that_is_being_closed(own_database: OwnDatabase) -> None:
    taxed("DE", 19)
    tenant, project = customer()
    used(project, 200)
    rating.rate_tenant(tenant, now=NOW)

    def tell() -> None:
        try:
            told(tenant, ATELIER)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as others:
        with as_tenant(tenant.pk):
            closing.close_period(tenant, "2026-10", now=NOW)
            later = others.submit(tell)
            with pytest.raises(TimeoutError):
                later.result(timeout=0.5)
        later.result(timeout=20)
    (invoice,) = invoices(tenant)
    assert (invoice.treatment, invoice.tax) == ("domestic", 38)
    assert invoice.customer is not None
    assert invoice.customer["name"] == tenant.name
