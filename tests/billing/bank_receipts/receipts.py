"""Bank receipts as operators record them, and what the ledger says of them."""

from datetime import date, datetime

from django.db.models import Sum

from billing.domain.ledger import CREDIT_NORMAL_TYPES
from billing.models import AccountBalance, BankReceipt, Invoice
from billing.services.ledger import ledger_balances
from billing.services.ledger.invariant_checks import INVARIANTS
from billing.services.payments.bank_receipts.receipt_records import ReceiptTerms, ReceiptUse, record_receipt
from broker.services.reports import invariant_checks
from ports import ids
from tenants.models import Tenant
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.histories import OPERATOR
from tests.billing.payments.payable_invoices import NOW


def tenant_of(invoice: Invoice) -> Tenant:
    with tenant_scope(invoice.tenant_id):
        return Tenant.objects.get(pk=invoice.tenant_id)


def receive(
    invoice: Invoice,
    minor: int,
    *,
    pays: ReceiptUse = ReceiptUse.INVOICES,
    now: datetime = NOW,
    idem: str = "",
    payer_account: str = "",
) -> BankReceipt:
    """Record a transfer for an invoice, or for the oldest or none of its tenant."""
    terms = ReceiptTerms(
        minor=minor,
        currency=invoice.currency,
        received_on=date(2026, 11, 1),
        reference=str(invoice),
        payer="Kestrel Bio",
        payer_account=payer_account,
        pays=pays,
        invoices=(invoice.pk,) if pays is ReceiptUse.INVOICES else (),
    )
    return record_receipt(tenant_of(invoice), terms, idem=idem or ids.new("key"), actor=OPERATOR, now=now)


def balance_of(invoice: Invoice) -> int:
    """Return the tenant's balance."""
    with tenant_scope(invoice.tenant_id):
        return ledger_balances.available_balance(invoice.tenant_id, invoice.currency)


def account_sums() -> dict[str, int]:
    """Return the balances of all accounts by type, on the side where each grows; without those at zero."""
    with staff_scope():
        rows = AccountBalance.objects.values_list("account__type").annotate(sum=Sum("minor")).order_by()
        return {kind: int(minor) for kind, minor in rows if minor}


def assert_books_hold(now: datetime = NOW) -> None:
    """Check all invariants of the ledger, and that debits equal credits."""
    sums = account_sums()
    assert sum(-minor if kind in CREDIT_NORMAL_TYPES else minor for kind, minor in sums.items()) == 0
    with staff_scope():
        results = invariant_checks.check_invariants(INVARIANTS, now=now)
    assert [result for result in results if not result.holds] == []
