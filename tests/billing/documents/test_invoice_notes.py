"""What an invoice says about its payment: our account, the reference, and the customer's own order."""

from typing import Any

import pytest

from billing.models import Invoice
from billing.services.invoicing import billing_details
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.billing.documents.sample_documents import document_text, document_words
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, reload_invoice
from tests.billing.tax.taxed_tenants import LUMEN

pytestmark = pytest.mark.django_db
ACCOUNT = {"holder": "GPU Broker GmbH", "iban": "DE89370400440532013000", "bic": "COBADEFFXXX", "bank": "Commerzbank"}
PAID_TO = (
    "Account holder GPU Broker GmbH, IBAN DE89 3704 0044 0532 0130 00, BIC COBADEFFXXX, Commerzbank."
    " Reference: 2026-10-0001"
)


def words_of(invoice: Invoice) -> str:
    return document_words(document_text(reload_invoice(invoice)))


def set_order(tenant: Tenant, number: str) -> None:
    with tenant_scope(tenant.pk):
        billing_details.set_billing_details(tenant, party=LUMEN, po_number=number, actor=OPERATOR, now=NOW)


def test_invoice_keeps_the_account_and_order_that_it_was_issued_with(settings: Any) -> None:
    settings.SUPPLIER_BANK = ACCOUNT
    tenant, project = create_customer()
    set_order(tenant, " PO  4711 ")
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    invoice = close_month.close_period(tenant, "2026-10", now=NOW)
    assert invoice is not None
    settings.SUPPLIER_BANK = {**ACCOUNT, "iban": "FR1420041010050500013M02606"}
    set_order(tenant, "PO 4712")
    assert PAID_TO in words_of(invoice)
    assert ("Your order", "PO 4711") in document_text(reload_invoice(invoice)).facts
    with pytest.raises(InvalidValue):
        set_order(tenant, "x" * 200)


def test_invoice_without_an_account_names_none() -> None:
    assert "IBAN" not in words_of(create_final_invoice())
