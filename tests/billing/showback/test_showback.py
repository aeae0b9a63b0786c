"""Show-back: monthly reports of costs, without payments, dunning, tax or ledger entries."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import Invoice, QueuedEmail
from billing.services.documents.invoice_documents import invoice_document
from billing.services.emails.invoice_emails import write_invoice_finalized
from billing.services.funds.accounts import account_terms
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import missing_postings
from billing.services.payments import payment_creation
from billing.services.payments.dunning import dunning_steps
from billing.services.payments.payment_status import payment_status
from billing.services.payments.topups import topup_creation
from billing.services.payments.topups.topup_creation import TopUpRefused
from billing.services.rating import lease_rating
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.billing.bank_receipts.receipts import account_sums, assert_books_hold
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW, create_final_invoice
from tests.billing.tax.taxed_tenants import set_tax_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments")]
BEFORE = utc("2026-10-01 00:00:00")


def set_terms(tenant: Tenant, payment: str) -> None:
    account_terms.set_account_terms(
        tenant, payment=payment, account_status="good", why="internal", actor=OPERATOR, now=BEFORE
    )


def close_october(tenant: Tenant) -> Invoice:
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    assert close_month.close_due_months(now=NOW).months >= 1
    with tenant_scope(tenant.pk):
        return Invoice.objects.select_related("period", "tenant").get(period__label="2026-10")


def create_report() -> Invoice:
    tenant, project = create_customer()
    set_terms(tenant, "showback")
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    return close_october(tenant)


def test_month_becomes_a_report_without_payment_tax_or_ledger(settings: Any) -> None:
    settings.SUPPLIER = {**settings.SUPPLIER, "name": "Us", "country": "DE"}
    set_tax_rate("DE", 19)
    invoice = create_report()
    assert (invoice.status, str(invoice), invoice.total, invoice.tax, invoice.due) == (
        "reported", "R-2026-10-0001", 200, 0, 0,
    )  # fmt: skip
    assert invoice.due_at is None
    missing_postings.post_missing(now=NOW)
    assert account_sums() == {}
    assert_books_hold()


def test_report_is_neither_collected_nor_dunned() -> None:
    invoice = create_report()
    assert payment_creation.open_due_payments(now=NOW) == 0
    assert dunning_steps.run_dunning(now=NOW + timedelta(days=90)) == 0
    with tenant_scope(invoice.tenant_id):
        assert payment_status(invoice).state == "nothing_due"
        with pytest.raises(TopUpRefused, match="only shown"):
            topup_creation.open_topup(invoice.tenant, minor=1000, actor=OPERATOR, now=NOW)


def test_report_says_what_it_is_in_document_and_e_mail() -> None:
    invoice = create_report()
    with tenant_scope(invoice.tenant_id):
        document = invoice_document(invoice)
        written = write_invoice_finalized(QueuedEmail.objects.get(kind="invoice-final"), NOW)
    assert (document.title, document.headline.more) == ("Cost report", "No payment is due.")
    assert [group.name for group in document.groups] != []
    assert written is not None
    assert "it is for information; no payment is due" in written.text.lower()


def test_reports_leave_no_gap_in_the_numbers_of_invoices() -> None:
    create_report()
    assert str(create_final_invoice()) == "2026-10-0001"


def test_setting_makes_every_tenant_without_terms_show_back(settings: Any) -> None:
    settings.DEFAULT_PAYMENT_TERMS = "showback"
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    assert close_october(tenant).status == "reported"
    paying, elsewhere = create_customer()
    set_terms(paying, "invoice")
    add_ended_lease(elsewhere, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    assert close_october(paying).status == "finalized"


def test_prepaid_tenant_changed_to_show_back_pays_nothing_from_its_wallet() -> None:
    tenant, project = create_customer()
    set_terms(tenant, "prepaid")
    set_terms(tenant, "showback")
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    assert close_october(tenant).status == "reported"
    assert account_sums() == {}
